"""Location of the measurements of the three rooms."""

from pathlib import Path

from jaxanon.datasets import sources

ROOMS = tuple("ABC")
FILES = r"(?:^|/)room_climate-location_([ABC])-measurement(\d+)\.csv$"
REMEDY = (
    "download https://github.com/IoTsec/Room-Climate-Datasets and pass "
    "source=FOLDER_OR_ZIP (--source FOLDER_OR_ZIP), or put it into "
    "$JAXANON_DATA/room_climate."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder or zip archive with measurements of all three rooms."""
    del cache
    path = sources.find("room_climate", source, FILES)
    if path is None:
        raise FileNotFoundError(f"room_climate was not found; {REMEDY}")
    names = [name for name, *_ in sources.listing([path], FILES)]
    present = lambda room: any(f"location_{room}-" in name for name in names)
    if missing := [room for room in ROOMS if not present(room)]:
        raise FileNotFoundError(
            f"{path} lacks measurements of the rooms {missing} of room_climate; "
            f"{REMEDY}"
        )
    return (path,)
