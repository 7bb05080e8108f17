"""Description of UCI HAR: channels and published windows."""

from pathlib import Path

import numpy as np

from jaxanon.datasets import sources
from jaxanon.datasets.description import Dataset, Preset, unchanged

ACTIVITIES = ("walking", "upstairs", "downstairs", "sitting", "standing", "laying")
CHANNELS = tuple(
    f"{signal}_{axis}"
    for signal in ("body_acc", "body_gyro", "total_acc")
    for axis in "xyz"
)
UNITS = ("g",) * 3 + ("rad/s",) * 3 + ("g",) * 3
SIGNALS = (
    r"(?:^|/)(train|test)/Inertial Signals/"
    r"((?:body_acc|body_gyro|total_acc)_[xyz])_\1\.txt$"
)
LABELS = r"(?:^|/)(train|test)/(subject|y)_\1\.txt$"


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder or zip archive of the original layout."""
    del cache
    path = sources.find("uci_har", source, SIGNALS)
    if path is None:
        raise FileNotFoundError(
            "uci_har was not found; extract 'UCI HAR Dataset.zip' from the archive at "
            "https://archive.ics.uci.edu/dataset/240 and pass source=FOLDER_OR_ZIP "
            "(--source FOLDER_OR_ZIP), or put it into $JAXANON_DATA/uci_har."
        )
    return (path,)


def sensors(rows: np.ndarray) -> np.ndarray:
    """Returns total acceleration and rotation rate, ``float[N, 6]``."""
    return np.concatenate([rows[:, 6:], rows[:, 3:6]], axis=1)


def _preset(about, channels, units, derive):
    return Preset(
        about=about,
        channels=channels,
        units=units,
        length=128,
        stride=64,
        derive=derive,
        precut=True,
    )


DATASET = Dataset(
    name="uci_har",
    about="30 people, 6 activities, phone on the waist, published windows",
    rate_hz=50.0,
    attributes={
        "activity": ACTIVITIES,
        "subject": tuple(str(number) for number in range(1, 31)),
    },
    private=("subject",),
    presets={
        "raw9": _preset("all 9 signals", CHANNELS, UNITS, unchanged),
        "raw6": _preset(
            "acceleration with gravity, and rotation rate",
            CHANNELS[6:] + CHANNELS[3:6],
            UNITS[6:] + UNITS[3:6],
            sensors,
        ),
    },
    splits=("given", "time_block", "subject"),
    builder="jaxanon.datasets.uci_har.uci_har_dataset_builder:Builder",
    locate=locate,
    files=f"{SIGNALS}|{LABELS}",
    last_train_trial=1,
    test_fraction=0.2,
)
