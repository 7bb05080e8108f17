"""Location of the table of the room."""

from pathlib import Path

from jaxanon.datasets import sources

FILES = r"(?:^|/)Occupancy_Estimation\.csv$"


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the table, or the folder or zip archive with it."""
    del cache
    path = sources.find("occupancy", source, FILES)
    if path is None:
        raise FileNotFoundError(
            "occupancy was not found; download Occupancy_Estimation.csv of "
            "https://archive.ics.uci.edu/dataset/864 and pass source=FOLDER_OR_FILE "
            "(--source FOLDER_OR_FILE), or put it into $JAXANON_DATA/occupancy."
        )
    if len(tables := [name for name, *_ in sources.listing([path], FILES)]) > 1:
        raise ValueError(
            f"{path} must hold exactly one table, got {tables}; remove the others."
        )
    return (path,)
