"""Description of the smart homes: channels and presets."""

import functools

import numpy as np

from jaxanon.datasets.description import Dataset, Preset
from jaxanon.datasets.smart_homes.location import FILES, HOUSES, ORDONEZ, locate
from jaxanon.datasets.smart_homes.minutes import AFTER, BEFORE
from jaxanon.datasets.smart_homes.naming import ACTIVITIES, TYPES

ON, CHANGED = ([f"{kind} {what}" for kind in TYPES] for what in ("on", "changed"))
CHANNELS = (*ON, *CHANGED, "sine of day", "cosine of day")


def _columns(columns: slice, rows: np.ndarray) -> np.ndarray:
    return rows[:, columns]


def _preset(about, keep, first=0):
    return Preset(
        about=about,
        channels=CHANNELS[first:],
        units=("1",) * (len(CHANNELS) - first),
        length=BEFORE + 1 + AFTER,
        stride=BEFORE,
        keep=keep,
        derive=functools.partial(_columns, slice(first, None)),
    )


DATASET = Dataset(
    name="smart_homes",
    about="7 homes, 11 activities, sensors of doors, beds, taps etc., by the minute",
    rate_hz=1 / 60,
    attributes={
        "activity": tuple(ACTIVITIES),
        "subject": (*HOUSES, *(f"Ordonez {home}" for home in ORDONEZ)),
    },
    private=("subject",),
    presets={
        "half_hour": _preset(
            "active and changed sensors in 30 min around the labelled minute",
            tuple(ACTIVITIES)[:-1],
        ),
        "changes": _preset(
            "only changed sensors, because doors stand open for days",
            tuple(ACTIVITIES)[:-1],
            first=len(TYPES),
        ),
        "other": _preset("with a class of other activities", tuple(ACTIVITIES)),
    },
    splits=("time_block", "subject"),
    test_fraction=0.2,
    whole_days=True,
    builder="jaxanon.datasets.smart_homes.smart_homes_dataset_builder:Builder",
    locate=locate,
    files=FILES,
)
