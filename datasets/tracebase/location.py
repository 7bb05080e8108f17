"""Location of the traces."""

from pathlib import Path

from jaxanon.datasets import sources

FILES = r"(?:^|/)tracebase_1min\.parquet$"


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the Parquet file, or the folder or zip archive with it."""
    del cache
    path = sources.find("tracebase", source, FILES)
    if path is None:
        raise FileNotFoundError(
            "tracebase was not found; create tracebase_1min.parquet from "
            "https://github.com/areinhardt/tracebase as described in "
            f"{Path(__file__).with_name('README.md')} and pass source=FOLDER_OR_FILE "
            "(--source FOLDER_OR_FILE), or put it into $JAXANON_DATA/tracebase."
        )
    return (path,)
