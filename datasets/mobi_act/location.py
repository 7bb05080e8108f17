"""Where the files of MobiAct lie, which are to be had for the asking only."""

import re
from pathlib import Path

from jaxanon.datasets import sources

SIGNALS = r"(?:^|/)(WAL|STD|JOG|STU)_(\d+)_1_annotated\.csv$"
PEOPLE = r"(?:^|/)(?i:readme\.txt)$"
FILES = f"{SIGNALS}|{PEOPLE}"
REMEDY = (
    "ask for MobiAct v2.0 at https://bmi.hmu.gr/the-mobifall-and-mobiact-datasets-2/, "
    "unpack it and pass source=FOLDER (--source FOLDER), the one that holds 'Annotated "
    "Data' and Readme.txt, or put that into $JAXANON_DATA/mobi_act."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """What holds the annotated signals, and the Readme.txt beside it if it is apart."""
    del cache
    found = sources.find("mobi_act", source, SIGNALS)
    if found is None:
        raise FileNotFoundError(f"mobi_act was not found; {REMEDY}")
    if sources.listing([found], PEOPLE):
        return (found,)
    for file in sorted(found.parent.iterdir()):
        if re.search(PEOPLE, file.name):
            return (found, file)
    raise FileNotFoundError(
        f"Readme.txt of MobiAct is neither in {found} nor beside it; it says how old, "
        f"tall and heavy everybody is: {REMEDY}"
    )
