"""Location of the files of Wi-Fi HAR and of the table of its people."""

import zipfile
from pathlib import Path

from jaxanon.datasets import sources

# Environment 2; sitting still, lying down, standing still and both turns.
SIGNALS = r"(?:^|/)E2_S(\d+)_C\d+_A(01|03|04|07|09)_T(\d+)\.csv$"
PEOPLE = r"(?:^|/)people\.csv$"
FILES = f"{SIGNALS}|{PEOPLE}"
REMEDY = (
    "download Environment 2 of https://data.mendeley.com/datasets/v38wjmz6f6/1, put "
    "the zip archives of its subjects, or their content, into one folder and pass "
    "source=FOLDER (--source FOLDER), or use the folder $JAXANON_DATA/wifi_har."
)
TABLE = (
    "write a file people.csv with the header 'subject,weight,height' and one line per "
    "subject of Environment 2, in kg and cm, from the data set's article "
    "(https://doi.org/10.1016/j.dib.2020.106534)"
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder or zip archives of signals, and the table of people."""
    del cache
    signals = sources.find("wifi_har", source, SIGNALS)
    if signals is None:
        raise FileNotFoundError(f"wifi_har was not found; {REMEDY}")
    explicit = source is not None and Path(source).expanduser() == signals
    paths = (signals,) if explicit or signals.is_dir() else _zips(signals.parent)
    if sources.listing(paths, PEOPLE):
        return paths
    people = signals.parent / "people.csv"
    if not people.is_file():
        raise FileNotFoundError(
            f"people.csv (weight and height of the people) must be in {signals} or "
            f"next to it, but was not found; {TABLE}."
        )
    return (*paths, people)


def _zips(folder: Path) -> tuple[Path, ...]:
    """Returns the zip archives of signals in a folder, one per subject."""
    paths = sorted(folder.glob("*.zip"))
    for path in paths:
        if not zipfile.is_zipfile(path):
            raise ValueError(f"{path} is a damaged zip archive; download it again.")
    return tuple(path for path in paths if sources.listing([path], SIGNALS))
