"""Where the files of Dataport lie, which are to be had with an account only."""

import re
from pathlib import Path

from jaxanon.datasets import sources

SIGNALS = r"(?:^|/)1minute_data(?:_(\w+))?\.csv(?:\.gz)?$"
PEOPLE = r"(?:^|/)metadata\.csv$"
FILES = f"{SIGNALS}|{PEOPLE}"
REMEDY = (
    "get the 1-minute data of a region at https://www.pecanstreet.org/dataport/ (an "
    "account is free for universities), and pass source=FOLDER (--source FOLDER), the "
    "one that holds 1minute_data_newyork.csv, 1minute_data_austin.csv and the like, or "
    "put them into $JAXANON_DATA/pecan_street."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """What holds the files: one folder, or as many zips as there are in it."""
    del cache
    found = sources.find("pecan_street", source, SIGNALS)
    if found is None:
        raise FileNotFoundError(f"pecan_street was not found; {REMEDY}")
    named = source is not None and Path(source).expanduser() == found
    if named or found.is_dir():
        return (found,)
    zips = sorted(found.parent.glob("*.zip"))
    beside = [file for file in found.parent.iterdir() if re.search(PEOPLE, file.name)]
    return (*(each for each in zips if sources.listing([each], FILES)), *beside)
