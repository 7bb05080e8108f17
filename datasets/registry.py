"""The data sets that have a name."""

from jaxanon.datasets import choices, download, store
from jaxanon.datasets.casas.description import DATASET as CASAS
from jaxanon.datasets.cifar10.description import DATASET as CIFAR10
from jaxanon.datasets.description import Dataset
from jaxanon.datasets.households.description import DATASET as HOUSEHOLDS
from jaxanon.datasets.mass.description import DATASET as MASS
from jaxanon.datasets.mobi_act.description import DATASET as MOBI_ACT
from jaxanon.datasets.motion_sense.description import DATASET as MOTION_SENSE
from jaxanon.datasets.occupancy.description import DATASET as OCCUPANCY
from jaxanon.datasets.pecan_street.description import DATASET as PECAN_STREET
from jaxanon.datasets.room_climate.description import DATASET as ROOM_CLIMATE
from jaxanon.datasets.sleep_edf.description import DATASET as SLEEP_EDF
from jaxanon.datasets.smart_homes.description import DATASET as SMART_HOMES
from jaxanon.datasets.smartwatch.description import DATASET as SMARTWATCH
from jaxanon.datasets.tracebase.description import DATASET as TRACEBASE
from jaxanon.datasets.uci_hapt.description import DATASET as UCI_HAPT
from jaxanon.datasets.uci_har.description import DATASET as UCI_HAR
from jaxanon.datasets.wifi_har.description import DATASET as WIFI_HAR
from jaxanon.datasets.wisdm.description import DATASET as WISDM

_DATASETS = {
    dataset.name: dataset
    for dataset in (
        *(SMARTWATCH, MOTION_SENSE, UCI_HAPT, MOBI_ACT, WIFI_HAR, WISDM, UCI_HAR),
        *(SLEEP_EDF, MASS, SMART_HOMES, ROOM_CLIMATE, OCCUPANCY, CASAS, CIFAR10),
        *(HOUSEHOLDS, TRACEBASE, PECAN_STREET),
    )
}


def names() -> tuple[str, ...]:
    """The names that ``load`` knows.

    Example:
      >>> "smartwatch" in names()
      True
    """
    return tuple(_DATASETS)


def register(name: str, dataset: Dataset) -> Dataset:
    """Adds a data set, which ``load`` then knows by its name.

    Raises:
      TypeError: if it is no ``Dataset``.
      ValueError: if its name is another one, or taken.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset must be a Dataset, got {type(dataset).__name__}.")
    if name != dataset.name:
        raise ValueError(
            f"name must be the data set's, {dataset.name!r}, got {name!r}."
        )
    if _DATASETS.setdefault(name, dataset) != dataset:
        raise ValueError(f"name must be new, got {name!r}; choose another name.")
    return dataset


def find(name: str) -> Dataset:
    """The data set called ``name``; ValueError with all the names if there is none."""
    if name not in _DATASETS:
        raise ValueError(
            f"there is no data set {name!r}; choose one of {list(names())}, or pass "
            "the path of an .npz file, which jaxanon datasets import makes of .csv."
            f"{choices.nearest(name, _DATASETS)}"
        )
    return _DATASETS[name]


def whereabouts(name: str, data_dir=None) -> str:
    """Where the original files of a data set are found, or what there is to do.

    Nothing is downloaded, and what is found is not read.

    Args:
      name: of the data set.
      data_dir: as in ``load``.

    Returns:
      The paths; ``"downloaded when it is first used"``; or what is missing, and how to
      get it.

    Raises:
      ValueError: if there is no data set of that name.

    Example:
      >>> whereabouts("smartwatch").endswith(".npy")
      True
    """
    dataset = find(name)
    try:
        with download.none():
            found = dataset.locate(None, store.cache_folder(data_dir))
    except download.NotFetched:
        return "downloaded when it is first used"
    except (OSError, ValueError, ImportError) as error:
        return str(error)
    return " and ".join(map(str, found))


def describe() -> list[dict]:
    """One row per data set, for listings.

    Returns:
      Dicts of ``name``, ``about``, ``rate_hz``, ``public``, ``private`` (both the
      defaults), ``targets`` (name -> unit), ``attributes`` (name -> number of classes,
      0 if that is as many as there are), ``presets`` (name -> description, the default
      first) and ``splits`` (the default first).

    Example:
      >>> describe()[0]["attributes"]
      {'exercise': 7, 'side': 2, 'subject': 10}
    """
    return [
        {
            "name": dataset.name,
            "about": dataset.about,
            "rate_hz": dataset.rate_hz,
            "public": dataset.public,
            "private": dataset.private,
            "targets": dataset.targets,
            "attributes": {a: len(names) for a, names in dataset.attributes.items()},
            "presets": {name: preset.about for name, preset in dataset.presets.items()},
            "splits": dataset.splits,
        }
        for dataset in _DATASETS.values()
    ]
