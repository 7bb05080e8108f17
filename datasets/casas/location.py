"""Where the files of the CASAS homes lie, which are to be had from their makers."""

from pathlib import Path

from jaxanon.datasets import sources

# Home -> its names at CASAS and in programs that read it.
HOMES = {
    "milan": "milan",
    "cairo": "cairo",
    "kyoto1": "kyoto1|adlnormal",
    "kyoto2": r"kyoto2|kyoto7|twor\.2009",
    "kyoto3": r"kyoto3|kyoto8|twor\.summer\.2009",
    "kyoto4": r"kyoto4|kyoto11|twor\.2010",
}
NAMES = "|".join(HOMES.values())
# Kyoto1 may be a file for each person and task.
FILES = rf"(?:^|/)({NAMES})(?:/data|/p\d+\.t([1-5]))?(?:\.txt)?$"
REMEDY = (
    "get the homes from https://casas.wsu.edu/datasets/ and put each one's file 'data' "
    "into a folder of the home's name (milan, cairo, kyoto1, kyoto2 for twor.2009, "
    "kyoto3 for twor.summer.2009, kyoto4 for twor.2010); pass source=FOLDER (--source "
    "FOLDER), the one that holds these, or make it $JAXANON_DATA/casas."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """The folder or zip that holds the files of some homes at least."""
    del cache
    found = sources.find("casas", source, FILES)
    if found is None:
        raise FileNotFoundError(f"casas was not found; {REMEDY}")
    return (found,)
