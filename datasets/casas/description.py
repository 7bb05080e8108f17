"""Description of the CASAS homes: tokens of events and lengths of windows."""

import functools

import numpy as np

from jaxanon.datasets.casas import tokens
from jaxanon.datasets.casas.activities import ACTIVITIES
from jaxanon.datasets.casas.location import FILES, HOMES, locate
from jaxanon.datasets.description import Dataset, Preset

EVENTS = 2000  # Events per window, as in FedAIoT.
ACTIVE = tuple(ACTIVITIES)[:-1]


def last(events: int, below: int, rows: np.ndarray) -> np.ndarray:
    """Returns the last ``events`` tokens less than ``below``, left-padded with zeros.

    Example:
      >>> last(4, 9, np.array([[3], [9], [5]], np.float32)).ravel()
      array([0., 0., 3., 5.], dtype=float32)
    """
    rows = rows[rows[:, 0] < below][-events:]
    if len(rows) == 0:
        return rows  # Gives no window.
    return np.pad(rows, ((events - len(rows), 0), (0, 0)))


def _preset(about, events=EVENTS, below=tokens.MOTION_DOORS_TEMPERATURE, keep=ACTIVE):
    return Preset(
        about=about,
        channels=("event",),
        units=("1",),
        length=events,
        stride=events,
        keep=keep,
        derive=functools.partial(last, events, below),
        tokens=below,
    )


DATASET = Dataset(
    name="casas",
    about="up to 6 homes, 11 activities, sequences of motion, door and heat events",
    rate_hz=1.0,  # The unit of time is one event.
    attributes={"activity": tuple(ACTIVITIES), "subject": tuple(HOMES)},
    private=("subject",),
    presets={
        "events2000": _preset("last 2,000 events, 11 activities, as in FedAIoT"),
        "events200": _preset("last 200 events of each sequence", 200),
        "sensors": _preset("last 2,000 events of all sensors", below=tokens.COUNT),
        "other": _preset("with a class of other events", keep=tuple(ACTIVITIES)),
    },
    splits=("time_block", "subject"),
    test_fraction=0.2,
    whole_days=True,
    builder="jaxanon.datasets.casas.casas_dataset_builder:Builder",
    locate=locate,
    files=FILES,
)
