"""Where the files of MotionSense are, or are fetched from."""

import hashlib
import re
import zipfile
from pathlib import Path

from jaxanon.datasets import download, sources

HOME = "https://github.com/mmalekzadeh/motion-sense/raw/master/data"
# Raw sensors lie in folders of the same layout, B_Accelerometer_data and C_Gyroscope_.
SIGNALS = (
    r"^(?!.*(?:B_Accelerometer|C_Gyroscope))(?:.*/)?"
    r"(dws|ups|wlk|jog|std|sit)_(\d+)/sub_(\d+)\.csv$"
)
PEOPLE = r"(?:^|/)data_subjects_info\.csv$"
FILES = f"{SIGNALS}|{PEOPLE}"
# Of (activity, trial, subject), size and CRC-32 of all 360 files, wherever they lie.
COMPLETE = "5671b31195cc9010f70077d76ea0f14e263dda29acf3ee75df109f04acf135ca"
REMEDY = (
    f"get A_DeviceMotion_data.zip and data_subjects_info.csv from {HOME}, put both "
    "into one folder and pass source=FOLDER (--source FOLDER), or put them into "
    "$JAXANON_DATA/motion_sense."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """What holds the signals, and beside it the table of people if it is apart."""
    found = sources.find("motion_sense", source, SIGNALS)
    if found is None:
        found = _fetch(cache / "downloads" / "motion_sense")
    if sources.listing([found], PEOPLE):
        return (found,)
    people = found.parent / "data_subjects_info.csv"
    if not people.is_file():
        raise FileNotFoundError(
            f"data_subjects_info.csv is neither in {found} nor beside it; it says who "
            f"is who: {REMEDY}"
        )
    return (found, people)


def _fetch(folder: Path) -> Path:
    for name in ("data_subjects_info.csv", "A_DeviceMotion_data.zip"):
        download.fetch(f"{HOME}/{name}", folder / name, REMEDY)
    archive = folder / "A_DeviceMotion_data.zip"
    if not zipfile.is_zipfile(archive) or fingerprint(archive) != COMPLETE:
        raise ValueError(
            f"{archive}, just downloaded, is not the archive that this loader knows. "
            f"If it opens, pass source={str(archive)!r} to use it all the same; else "
            f"delete it, {REMEDY}"
        )
    return archive


def fingerprint(archive: Path) -> str:
    """Says whether a zip holds the very signals, however it was packed."""
    found = sources.listing([archive], SIGNALS)
    matches = [(re.search(SIGNALS, name), size, crc) for name, size, crc in found]
    entries = [(match.groups(), size, crc) for match, size, crc in matches if match]
    return hashlib.sha256(repr(sorted(entries)).encode()).hexdigest()
