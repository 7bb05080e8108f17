"""Description of UCI HAPT, raw recordings of the people of UCI HAR."""

from pathlib import Path

import numpy as np

from jaxanon.datasets import sources
from jaxanon.datasets.description import Dataset, Preset, lengths

BASIC = ("walking", "upstairs", "downstairs", "sitting", "standing", "laying")
TRANSITIONS = (
    *("stand to sit", "sit to stand", "sit to lie"),
    *("lie to sit", "stand to lie", "lie to stand"),
)
SIGNALS = r"(?:^|/)(acc|gyro)_exp(\d+)_user(\d+)\.txt$"
LABELS = r"(?:^|/)RawData/labels\.txt$|^labels\.txt$"


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds the folder or zip archive of the original layout."""
    del cache
    path = sources.find("uci_hapt", source, SIGNALS)
    if path is None:
        raise FileNotFoundError(
            "uci_hapt was not found; download 'Smartphone-Based Recognition of Human "
            "Activities and Postural Transitions' from "
            "https://archive.ics.uci.edu/dataset/341 and pass source=FOLDER_OR_ZIP "
            "(--source FOLDER_OR_ZIP), or put it into $JAXANON_DATA/uci_hapt."
        )
    return (path,)


def magnitudes(rows: np.ndarray) -> np.ndarray:
    """Returns the norms of rotation rate and acceleration, ``float64[N, 2]``."""
    return lengths(rows[:, 3:], rows[:, :3])


def _preset(about, keep):
    return Preset(
        about=about,
        channels=tuple(
            f"{sensor}.{axis}" for sensor in ("acc", "gyro") for axis in "xyz"
        ),
        units=("g",) * 3 + ("rad/s",) * 3,
        length=128,
        stride=64,
        keep=keep,
    )


DATASET = Dataset(
    name="uci_hapt",
    about="30 people, 6 activities and 6 postural transitions, phone on the waist",
    rate_hz=50.0,
    attributes={
        "activity": BASIC + TRANSITIONS,
        "subject": tuple(str(number) for number in range(1, 31)),
    },
    private=("subject",),
    presets={
        "basic6": _preset("the 6 activities, 2.56 s windows every 1.28 s", BASIC),
        "mag3": Preset(
            about="magnitudes, 3 ways of walking, like mag5 of motion_sense",
            channels=("rotationRate", "acceleration"),
            units=("rad/s", "g"),
            length=128,
            stride=64,
            keep=BASIC[:3],
            derive=magnitudes,
        ),
        "acc10": Preset(
            about="acceleration at 10 Hz, 1 s windows, as in DEEProtect",
            channels=tuple(f"acc.{axis}" for axis in "xyz"),
            units=("g",) * 3,
            length=10,
            stride=10,
            keep=BASIC,
            derive=lambda rows: rows[:, :3],
            every=5,
        ),
        "all12": _preset(
            "the 6 activities and 6 postural transitions", BASIC + TRANSITIONS
        ),
    },
    splits=("time_block", "subject"),
    builder="jaxanon.datasets.uci_hapt.uci_hapt_dataset_builder:Builder",
    locate=locate,
    files=f"{SIGNALS}|{LABELS}",
)
