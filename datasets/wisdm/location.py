"""Location of the files of WISDM, of both sensors or of the accelerometer."""

import re
from pathlib import Path

from jaxanon.datasets import sources

# Only the original layout has the times that align both sensors.
WATCH = r"(?:^|/)raw/watch/(accel|gyro)/data_(\d+)_\1_watch\.txt$"
ACCEL = r"(?:^|/)data_(\d+)_accel_watch\.txt$"
REMEDY = (
    "extract wisdm-dataset.zip from the archive at "
    "https://archive.ics.uci.edu/dataset/507 and pass source=FOLDER_OR_ZIP (--source "
    "FOLDER_OR_ZIP), or put it into $JAXANON_DATA/wisdm."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder or zip archive with ``raw/watch``."""
    del cache
    return (_find(source, WATCH),)


def locate_accel(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder, or the zip archive with the accelerometers of most people."""
    del cache
    path = _find(source, ACCEL)
    if path.is_dir() or (source is not None and Path(source).expanduser() == path):
        return (path,)
    return (max(sorted(path.parent.glob("*.zip")), key=_num_people),)


def _find(source, pattern):
    path = sources.find("wisdm", source, pattern)
    if path is None:
        raise FileNotFoundError(f"wisdm was not found; {REMEDY}")
    return path


def _num_people(path):
    names = [entry[0] for entry in sources.listing([path], ACCEL)]
    return len({user for name in names for user in re.findall(ACCEL, name)})
