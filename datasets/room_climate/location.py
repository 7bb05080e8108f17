"""Where the measurements of the three rooms lie."""

from pathlib import Path

from jaxanon.datasets import sources

ROOMS = tuple("ABC")
FILES = r"(?:^|/)room_climate-location_([ABC])-measurement(\d+)\.csv$"
REMEDY = (
    "get https://github.com/IoTsec/Room-Climate-Datasets and pass source=FOLDER_OR_ZIP "
    "(--source FOLDER_OR_ZIP), or put it into $JAXANON_DATA/room_climate."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """The folder or zip that holds measurements of all three rooms."""
    del cache
    found = sources.find("room_climate", source, FILES)
    if found is None:
        raise FileNotFoundError(f"room_climate was not found; {REMEDY}")
    names = [name for name, *_ in sources.listing([found], FILES)]
    of = lambda room: any(f"location_{room}-" in name for name in names)
    if missing := [room for room in ROOMS if not of(room)]:
        raise FileNotFoundError(
            f"{found} lacks measurements of the rooms {missing} of room_climate; "
            f"{REMEDY}"
        )
    return (found,)
