"""Description of MotionSense: channels, people and published preprocessing."""

import numpy as np

from jaxanon.datasets.description import Dataset, Preset, brackets, lengths
from jaxanon.datasets.motion_sense.location import FILES, locate

ACTIVITIES = ("dws", "ups", "wlk", "jog", "std", "sit")
MOVING = ("dws", "ups", "wlk", "jog")
CHANNELS = (
    *("attitude.roll", "attitude.pitch", "attitude.yaw"),
    *(
        f"{sensor}.{axis}"
        for sensor in ("gravity", "rotationRate", "userAcceleration")
        for axis in "xyz"
    ),
)
UNITS = ("rad",) * 3 + ("g",) * 3 + ("rad/s",) * 3 + ("g",) * 3

# Upper bounds of all classes but the last, in kg, cm and years. Weight has Blinder's
# classes; height and age have thirds of the 24 people.
BOUNDS = {"weight": (70, 90), "height": (168, 178), "age": (25, 30)}


def magnitudes(rows: np.ndarray) -> np.ndarray:
    """Returns the norms of rotation rate and total acceleration, ``float64[N, 2]``."""
    rows = rows.astype(np.float64)
    return lengths(rows[:, 6:9], acceleration(rows))


def acceleration(rows: np.ndarray) -> np.ndarray:
    """Returns the total acceleration (user and gravity), ``float[N, 3]``."""
    return rows[:, 9:12] + rows[:, 3:6]


def _magnitude_preset(about, keep, drop=()):
    return Preset(
        about=about,
        channels=("rotationRate", "acceleration"),
        units=("rad/s", "g"),
        length=128,
        stride=10,
        keep=keep,
        drop=drop,
        derive=magnitudes,
        stream=True,
    )


DATASET = Dataset(
    name="motion_sense",
    about="24 people, 6 activities, phone in the front pocket, 12 motion channels",
    rate_hz=50.0,
    attributes={
        "activity": ACTIVITIES,
        "gender": ("female", "male"),
        **{attribute: brackets(*bounds) for attribute, bounds in BOUNDS.items()},
        "subject": tuple(str(number) for number in range(1, 25)),
    },
    private=("gender",),
    presets={
        "mag4": _magnitude_preset("magnitudes, 4 activities, as in Blinder", MOVING),
        "mag5": _magnitude_preset(
            "magnitudes, 4 activities with statistics of 5, as in ObscureNet",
            (*MOVING, "std"),
            drop=("std",),
        ),
        "raw12": Preset(
            about="all 12 channels, 6 activities, 2.56 s windows every 1.28 s",
            channels=CHANNELS,
            units=UNITS,
            length=128,
            stride=64,
        ),
        "raw6": Preset(
            about="rotation rate and user acceleration, 4 activities, as in DySan",
            channels=CHANNELS[6:],
            units=UNITS[6:],
            length=125,
            stride=63,
            keep=MOVING,
            derive=lambda rows: rows[:, 6:],
        ),
        "acc10": Preset(
            about="acceleration at 10 Hz, 1 s windows, as in DEEProtect",
            channels=tuple(f"acceleration.{axis}" for axis in "xyz"),
            units=("g",) * 3,
            length=10,
            stride=10,
            derive=acceleration,
            every=5,
        ),
        "gen12": Preset(
            about="all 12 channels, 4 activities, 1 s windows, as in GEN",
            channels=CHANNELS,
            units=UNITS,
            length=50,
            stride=10,
            keep=MOVING,
        ),
    },
    splits=("trial", "subject", "time_block"),
    builder="jaxanon.datasets.motion_sense.motion_sense_dataset_builder:Builder",
    locate=locate,
    files=FILES,
    last_train_trial=9,
)
