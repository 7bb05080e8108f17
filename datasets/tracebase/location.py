"""Where the traces lie."""

from pathlib import Path

from jaxanon.datasets import sources

FILES = r"(?:^|/)tracebase_1min\.parquet$"


def locate(source, cache: Path) -> tuple[Path, ...]:
    """The Parquet file, or what holds it."""
    del cache
    found = sources.find("tracebase", source, FILES)
    if found is None:
        raise FileNotFoundError(
            "tracebase was not found; make tracebase_1min.parquet of "
            "https://github.com/areinhardt/tracebase, as "
            f"{Path(__file__).with_name('README.md')} says, and pass "
            "source=FOLDER_OR_FILE (--source FOLDER_OR_FILE), or put it into "
            "$JAXANON_DATA/tracebase."
        )
    return (found,)
