"""Where the table of the room lies."""

from pathlib import Path

from jaxanon.datasets import sources

FILES = r"(?:^|/)Occupancy_Estimation\.csv$"


def locate(source, cache: Path) -> tuple[Path, ...]:
    """The table, or the folder or zip that holds it."""
    del cache
    found = sources.find("occupancy", source, FILES)
    if found is None:
        raise FileNotFoundError(
            "occupancy was not found; get Occupancy_Estimation.csv of "
            "https://archive.ics.uci.edu/dataset/864 and pass source=FOLDER_OR_FILE "
            "(--source FOLDER_OR_FILE), or put it into $JAXANON_DATA/occupancy."
        )
    if len(held := [name for name, *_ in sources.listing([found], FILES)]) > 1:
        raise ValueError(f"{found} must hold one table, got {held}; leave one of them.")
    return (found,)
