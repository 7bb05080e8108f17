"""Location of the files of MobiAct, which are available on request."""

import re
from pathlib import Path

from jaxanon.datasets import sources

SIGNALS = r"(?:^|/)(WAL|STD|JOG|STU)_(\d+)_1_annotated\.csv$"
PEOPLE = r"(?:^|/)(?i:readme\.txt)$"
FILES = f"{SIGNALS}|{PEOPLE}"
REMEDY = (
    "request MobiAct v2.0 at https://bmi.hmu.gr/the-mobifall-and-mobiact-datasets-2/, "
    "unpack it and pass source=FOLDER (--source FOLDER), the folder with 'Annotated "
    "Data' and Readme.txt, or put its content into $JAXANON_DATA/mobi_act."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the annotated signals, and the Readme.txt next to them if separate."""
    del cache
    signals = sources.find("mobi_act", source, SIGNALS)
    if signals is None:
        raise FileNotFoundError(f"mobi_act was not found; {REMEDY}")
    if sources.listing([signals], PEOPLE):
        return (signals,)
    for file in sorted(signals.parent.iterdir()):
        if re.search(PEOPLE, file.name):
            return (signals, file)
    raise FileNotFoundError(
        f"Readme.txt of MobiAct (age, height and weight of the people) must be in "
        f"{signals} or next to it, but was not found; {REMEDY}"
    )
