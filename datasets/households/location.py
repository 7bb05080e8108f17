"""Where the files of the five homes lie."""

from pathlib import Path

from jaxanon.datasets import sources

FILES = r"(?:^|/)(REFIT|UKDALE|IDEAL)_House(\d+)_(\d{4}-\d{2})\.(?:gzip|csv|csv\.gz)$"


def locate(source, cache: Path) -> tuple[Path, ...]:
    """The folder or zip of the files, one for each home and month."""
    del cache
    found = sources.find("households", source, FILES)
    if found is None:
        raise FileNotFoundError(
            "households was not found; get the folder Data of "
            "https://github.com/adrienpetralia/DeviceScope and pass "
            "source=FOLDER_OR_ZIP (--source FOLDER_OR_ZIP), or put it into "
            "$JAXANON_DATA/households."
        )
    return (found,)
