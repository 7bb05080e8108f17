"""Location of the files of the five homes."""

from pathlib import Path

from jaxanon.datasets import sources

FILES = r"(?:^|/)(REFIT|UKDALE|IDEAL)_House(\d+)_(\d{4}-\d{2})\.(?:gzip|csv|csv\.gz)$"


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder or zip archive of the files, one per home and month."""
    del cache
    path = sources.find("households", source, FILES)
    if path is None:
        raise FileNotFoundError(
            "households was not found; download the folder Data of "
            "https://github.com/adrienpetralia/DeviceScope and pass "
            "source=FOLDER_OR_ZIP (--source FOLDER_OR_ZIP), or put it into "
            "$JAXANON_DATA/households."
        )
    return (path,)
