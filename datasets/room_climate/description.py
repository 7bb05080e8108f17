"""Description of the three rooms: channels and presets."""

import numpy as np

from jaxanon.datasets.description import Dataset, Preset
from jaxanon.datasets.room_climate.location import FILES, ROOMS, locate

NODES = (1, 2, 3)  # The nodes of all rooms.
MEASURED = {"temp": "°C", "humidity": "%", "light 1": "nm", "light 2": "nm"}
CHANNELS = tuple(f"{name}, node {node}" for node in NODES for name in MEASURED)
UNITS = tuple(MEASURED.values()) * len(NODES)
EVERY_S = 4
ACTIVITIES = ("away", "read", "stand", "walk", "work")
CLIMATE = [i for i, name in enumerate(CHANNELS) if not name.startswith("light")]


def climate(rows: np.ndarray) -> np.ndarray:
    """Returns temperature and humidity of each node, ``float[N, 6]``."""
    return rows[:, CLIMATE]


DATASET = Dataset(
    name="room_climate",
    about="3 rooms, 4 activities or away, temperature, humidity and light",
    rate_hz=1 / EVERY_S,
    attributes={"activity": ACTIVITIES, "subject": ROOMS},
    private=("subject",),
    presets={
        "two_minutes": Preset(
            about="three nodes, 128 s windows every 32 s",
            channels=CHANNELS,
            units=UNITS,
            length=32,
            stride=8,
        ),
        "climate": Preset(
            about="like two_minutes, without light",
            channels=tuple(CHANNELS[i] for i in CLIMATE),
            units=tuple(UNITS[i] for i in CLIMATE),
            length=32,
            stride=8,
            derive=climate,
        ),
    },
    splits=("time_block", "subject"),
    test_fraction=0.25,
    builder="jaxanon.datasets.room_climate.room_climate_dataset_builder:Builder",
    locate=locate,
    files=FILES,
)
