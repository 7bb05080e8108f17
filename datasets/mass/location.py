"""Location of the files of MASS, which are available on request."""

from pathlib import Path

from jaxanon.datasets import sources

SUBJECT = r"(?:^|/)(01-0([1-5])-\d{4})[ _]"
SIGNALS = rf"{SUBJECT}PSG\.edf$"
STAGES = rf"{SUBJECT}(Annotations|Base)\.edf$"
FILES = f"{SIGNALS}|{STAGES}"
REMEDY = (
    "request MASS at http://ceams-carsm.ca/mass/, unpack it and pass source=FOLDER "
    "(--source FOLDER), the folder with '01-03-0001 PSG.edf', '01-03-0001 Base.edf' "
    "etc., or put these files into $JAXANON_DATA/mass."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder of signals and stages."""
    del cache
    folder = sources.find("mass", source, SIGNALS)
    if folder is None or not folder.is_dir():
        raise FileNotFoundError(f"mass was not found; {REMEDY}")
    return (folder,)
