"""Registry of named data sets."""

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
    """Returns the names of all registered data sets.

    Example:
      >>> "smartwatch" in names()
      True
    """
    return tuple(_DATASETS)


def register(name: str, dataset: Dataset) -> Dataset:
    """Registers a data set, so that ``load`` finds it by name.

    Raises:
      TypeError: if ``dataset`` is not a ``Dataset``.
      ValueError: if ``name`` differs from ``dataset.name``, or is taken.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset must be a Dataset, got {type(dataset).__name__}.")
    if name != dataset.name:
        raise ValueError(
            f"name must be {dataset.name!r}, the data set's name, got {name!r}."
        )
    if _DATASETS.setdefault(name, dataset) != dataset:
        raise ValueError(f"name must be new, got {name!r}; choose another name.")
    return dataset


def find(name: str) -> Dataset:
    """Returns a registered data set; raises ValueError for an unknown name."""
    if name not in _DATASETS:
        raise ValueError(
            f"dataset must be one of {list(names())}, or the path of an .npz file, got "
            f"{name!r}; `jaxanon datasets import` converts .csv files to .npz."
            f"{choices.nearest(name, _DATASETS)}"
        )
    return _DATASETS[name]


def data_locations(name: str, data_dir=None) -> str:
    """Describes where the original files of a data set are, or how to get them.

    Downloads and reads nothing.

    Args:
      name: name of the data set.
      data_dir: folder for prepared data, as in ``load``.

    Returns:
      The paths, or ``"downloaded on first use"``, or the missing files and how to get
      them.

    Raises:
      ValueError: if the name is unknown.

    Example:
      >>> data_locations("smartwatch").endswith(".npy")
      True
    """
    dataset = find(name)
    try:
        with download.disabled():
            paths = dataset.locate(None, store.cache_folder(data_dir))
    except download.NotFetched:
        return "downloaded on first use"
    except (OSError, ValueError, ImportError) as error:
        return str(error)
    return " and ".join(map(str, paths))


def describe() -> list[dict]:
    """Returns one dict per data set, for listings.

    Returns:
      Dicts with ``name``, ``about``, ``rate_hz``, ``public``, ``private`` (both the
      defaults), ``targets`` (name -> unit), ``attributes`` (name -> number of classes,
      0 if it depends on the files), ``presets`` (name -> description, the default
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
