"""Location of the files of Dataport, which require an account."""

import re
from pathlib import Path

from jaxanon.datasets import sources

SIGNALS = r"(?:^|/)1minute_data(?:_(\w+))?\.csv(?:\.gz)?$"
PEOPLE = r"(?:^|/)metadata\.csv$"
FILES = f"{SIGNALS}|{PEOPLE}"
REMEDY = (
    "download the 1-minute data of a region at https://www.pecanstreet.org/dataport/ "
    "(accounts are free for universities) and pass source=FOLDER (--source FOLDER), "
    "the folder with 1minute_data_newyork.csv, 1minute_data_austin.csv etc., or put "
    "them into $JAXANON_DATA/pecan_street."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder, or all zip archives in it and the metadata next to them."""
    del cache
    path = sources.find("pecan_street", source, SIGNALS)
    if path is None:
        raise FileNotFoundError(f"pecan_street was not found; {REMEDY}")
    explicit = source is not None and Path(source).expanduser() == path
    if explicit or path.is_dir():
        return (path,)
    zips = sorted(path.parent.glob("*.zip"))
    metadata = [file for file in path.parent.iterdir() if re.search(PEOPLE, file.name)]
    return (*(each for each in zips if sources.listing([each], FILES)), *metadata)
