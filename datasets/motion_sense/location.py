"""Location and download of the files of MotionSense."""

import hashlib
import re
import zipfile
from pathlib import Path

from jaxanon.datasets import download, sources

HOME = "https://github.com/mmalekzadeh/motion-sense/raw/master/data"
# Excludes raw sensors, whose folders B_Accelerometer_data and C_Gyroscope_data have the
# same layout.
SIGNALS = (
    r"^(?!.*(?:B_Accelerometer|C_Gyroscope))(?:.*/)?"
    r"(dws|ups|wlk|jog|std|sit)_(\d+)/sub_(\d+)\.csv$"
)
PEOPLE = r"(?:^|/)data_subjects_info\.csv$"
FILES = f"{SIGNALS}|{PEOPLE}"
# SHA-256 of (activity, trial, subject), size and CRC-32 of all 360 files.
COMPLETE = "5671b31195cc9010f70077d76ea0f14e263dda29acf3ee75df109f04acf135ca"
REMEDY = (
    f"download A_DeviceMotion_data.zip and data_subjects_info.csv from {HOME} to one "
    "folder and pass source=FOLDER (--source FOLDER), or put them into "
    "$JAXANON_DATA/motion_sense."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds or downloads the signals, and the table of people if it is separate."""
    signals = sources.find("motion_sense", source, SIGNALS)
    if signals is None:
        signals = _fetch(cache / "downloads" / "motion_sense")
    if sources.listing([signals], PEOPLE):
        return (signals,)
    people = signals.parent / "data_subjects_info.csv"
    if not people.is_file():
        raise FileNotFoundError(
            f"data_subjects_info.csv (attributes of the people) must be in {signals} "
            f"or next to it, but was not found; {REMEDY}"
        )
    return (signals, people)


def _fetch(folder: Path) -> Path:
    for name in ("data_subjects_info.csv", "A_DeviceMotion_data.zip"):
        download.fetch(f"{HOME}/{name}", folder / name, REMEDY)
    archive = folder / "A_DeviceMotion_data.zip"
    if not zipfile.is_zipfile(archive) or fingerprint(archive) != COMPLETE:
        raise ValueError(
            f"the download {archive} must have the expected content, but differs. If "
            f"it opens, pass source={str(archive)!r} to use it anyway; otherwise "
            f"delete it, {REMEDY}"
        )
    return archive


def fingerprint(archive: Path) -> str:
    """Returns a digest of the signals in a zip archive, independent of its packing."""
    files = sources.listing([archive], SIGNALS)
    matches = [(re.search(SIGNALS, name), size, crc) for name, size, crc in files]
    entries = [(match.groups(), size, crc) for match, size, crc in matches if match]
    return hashlib.sha256(repr(sorted(entries)).encode()).hexdigest()
