"""Where the files of WISDM lie: those of both sensors, or of the accelerometer."""

import re
from pathlib import Path

from jaxanon.datasets import sources

# Of both sensors only the original layout holds the times by which they are aligned.
WATCH = r"(?:^|/)raw/watch/(accel|gyro)/data_(\d+)_\1_watch\.txt$"
ACCEL = r"(?:^|/)data_(\d+)_accel_watch\.txt$"
REMEDY = (
    "get wisdm-dataset.zip, which is inside the archive at "
    "https://archive.ics.uci.edu/dataset/507, and pass source=FOLDER_OR_ZIP (--source "
    "FOLDER_OR_ZIP), or put it into $JAXANON_DATA/wisdm."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """The folder or zip that holds ``raw/watch``."""
    del cache
    return (_find(source, WATCH),)


def locate_accel(source, cache: Path) -> tuple[Path, ...]:
    """Of the zips in a folder, the one with the accelerometers of most people."""
    del cache
    found = _find(source, ACCEL)
    if found.is_dir() or (source is not None and Path(source).expanduser() == found):
        return (found,)
    return (max(sorted(found.parent.glob("*.zip")), key=_people),)


def _find(source, pattern):
    found = sources.find("wisdm", source, pattern)
    if found is None:
        raise FileNotFoundError(f"wisdm was not found; {REMEDY}")
    return found


def _people(path):
    names = [entry[0] for entry in sources.listing([path], ACCEL)]
    return len({user for name in names for user in re.findall(ACCEL, name)})
