"""Location of the feature files of Sleep-EDF."""

import re
from pathlib import Path

from jaxanon.datasets import sources

NIGHT = r"SC4(\d\d)([12])[A-Z]0"
NPZ = rf"(?:^|/)(?:sleep_edf_features|{NIGHT})\.npz$"
ARRAYS = r"(?:^|_)[Xy]\.npy$"  # Members of such a file.
REMEDY = (
    "download the folder data/processed/sleep_edf_subjects of "
    "https://github.com/matteo-omizzolo/sleep-EDF and pass source=FOLDER (--source "
    "FOLDER), or put its files into $JAXANON_DATA/sleep_edf."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the ``.npz`` files, one per night or one for all nights."""
    del cache
    if source is not None and Path(source).suffix == ".npz":
        file = sources.expanded("source", source)
        if not file.is_file():
            raise FileNotFoundError(f"source {str(file)!r} is not a file; {REMEDY}")
        return (file,)
    folder = sources.find("sleep_edf", source, NPZ)
    if folder is None or not folder.is_dir():
        raise FileNotFoundError(f"sleep_edf was not found; {REMEDY}")
    return tuple(
        path for path in sorted(folder.rglob("*.npz")) if re.search(NPZ, path.name)
    )
