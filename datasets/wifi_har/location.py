"""Where the files of Wi-Fi HAR lie, and the table of its people."""

import zipfile
from pathlib import Path

from jaxanon.datasets import sources

# Environment 2; codes of sitting and standing still, lying down, and both turns.
SIGNALS = r"(?:^|/)E2_S(\d+)_C\d+_A(01|03|04|07|09)_T(\d+)\.csv$"
PEOPLE = r"(?:^|/)people\.csv$"
FILES = f"{SIGNALS}|{PEOPLE}"
REMEDY = (
    "get Environment 2 of https://data.mendeley.com/datasets/v38wjmz6f6/1, put the "
    "zips of its subjects, or what they hold, into one folder and pass source=FOLDER "
    "(--source FOLDER), or make it $JAXANON_DATA/wifi_har."
)
TABLE = (
    "write a file people.csv with the line 'subject,weight,height' and one line for "
    "each subject of Environment 2, in kg and cm, from the article of the data set "
    "(https://doi.org/10.1016/j.dib.2020.106534)"
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """What holds the signals, one place or several zips, and the table of people."""
    del cache
    found = sources.find("wifi_har", source, SIGNALS)
    if found is None:
        raise FileNotFoundError(f"wifi_har was not found; {REMEDY}")
    named = source is not None and Path(source).expanduser() == found
    places = (found,) if named or found.is_dir() else _zips(found.parent)
    if sources.listing(places, PEOPLE):
        return places
    people = found.parent / "people.csv"
    if not people.is_file():
        raise FileNotFoundError(
            f"people.csv is neither in {found} nor beside it, and the files of Wi-Fi "
            f"HAR do not say who is who: {TABLE}."
        )
    return (*places, people)


def _zips(folder: Path) -> tuple[Path, ...]:
    """Those of a folder that hold signals: one for each subject."""
    found = sorted(folder.glob("*.zip"))
    for path in found:
        if not zipfile.is_zipfile(path):
            raise ValueError(f"{path} is no whole zip; download it anew.")
    return tuple(path for path in found if sources.listing([path], SIGNALS))
