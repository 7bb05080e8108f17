"""Where the files of MASS lie, which are to be had for the asking only."""

from pathlib import Path

from jaxanon.datasets import sources

SUBJECT = r"(?:^|/)(01-0([1-5])-\d{4})[ _]"
SIGNALS = rf"{SUBJECT}PSG\.edf$"
STAGES = rf"{SUBJECT}(Annotations|Base)\.edf$"
FILES = f"{SIGNALS}|{STAGES}"
REMEDY = (
    "ask for MASS at http://ceams-carsm.ca/mass/ and pass source=FOLDER (--source "
    "FOLDER), the one that holds '01-03-0001 PSG.edf', '01-03-0001 Base.edf' and so "
    "on, unpacked, or put that into $JAXANON_DATA/mass."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """The folder of the signals and of the stages."""
    del cache
    found = sources.find("mass", source, SIGNALS)
    if found is None or not found.is_dir():
        raise FileNotFoundError(f"mass was not found; {REMEDY}")
    return (found,)
