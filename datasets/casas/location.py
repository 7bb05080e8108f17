"""Location of the files of the CASAS homes, available from their authors."""

from pathlib import Path

from jaxanon.datasets import sources

# Home -> its names at CASAS and in published programs.
HOMES = {
    "milan": "milan",
    "cairo": "cairo",
    "kyoto1": "kyoto1|adlnormal",
    "kyoto2": r"kyoto2|kyoto7|twor\.2009",
    "kyoto3": r"kyoto3|kyoto8|twor\.summer\.2009",
    "kyoto4": r"kyoto4|kyoto11|twor\.2010",
}
NAMES = "|".join(HOMES.values())
# Kyoto1 may have one file per person and task.
FILES = rf"(?:^|/)({NAMES})(?:/data|/p\d+\.t([1-5]))?(?:\.txt)?$"
REMEDY = (
    "download the homes from https://casas.wsu.edu/datasets/ and put the file 'data' "
    "of each into a folder named milan, cairo, kyoto1, kyoto2 (for twor.2009), kyoto3 "
    "(for twor.summer.2009) or kyoto4 (for twor.2010); pass source=FOLDER (--source "
    "FOLDER), the parent folder, or use the folder $JAXANON_DATA/casas."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder or zip archive with the files of at least one home."""
    del cache
    path = sources.find("casas", source, FILES)
    if path is None:
        raise FileNotFoundError(f"casas was not found; {REMEDY}")
    return (path,)
