"""Location of the files of the seven homes."""

import re
from pathlib import Path

from jaxanon.datasets import sources

HOUSES = tuple("ABCDE")  # van Kasteren A to C, MIT D and E.
ORDONEZ = tuple("AB")
TABLES = r"(?:^|/)house([A-E])\.(sensors|activities|sensor_names|activity_names)$"
TEXTS = r"(?:^|/)Ordonez([AB])_(Sensors|ADLs)\.txt$"
FILES = f"{TABLES}|{TEXTS}"
REMEDY = (
    "put houseA to houseE (.sensors, .activities, .sensor_names, .activity_names) of "
    "https://github.com/agnesvanbelle/TL and Ordonez[AB]_Sensors.txt and "
    "Ordonez[AB]_ADLs.txt of https://archive.ics.uci.edu/dataset/271 into one folder "
    "and pass source=FOLDER_OR_ZIP (--source FOLDER_OR_ZIP), or use the folder "
    "$JAXANON_DATA/smart_homes."
)
WANTED = {
    *(
        f"house{home}.{part}"
        for home in HOUSES
        for part in ("sensors", "activities", "sensor_names", "activity_names")
    ),
    *(f"Ordonez{home}_{part}.txt" for home in ORDONEZ for part in ("Sensors", "ADLs")),
}


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder or zip archive with the files of all seven homes."""
    del cache
    path = sources.find("smart_homes", source, FILES)
    if path is None:
        raise FileNotFoundError(f"smart_homes was not found; {REMEDY}")
    present = {re.sub(".*/", "", name) for name, *_ in sources.listing([path], FILES)}
    if missing := sorted(WANTED - present):
        raise FileNotFoundError(f"{path} lacks {missing} of smart_homes; {REMEDY}")
    return (path,)
