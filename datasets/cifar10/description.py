"""Description of CIFAR-10: classes and presets of artificial clients."""

import numpy as np

from jaxanon.datasets.cifar10.location import FILES, locate
from jaxanon.datasets.description import Dataset, Preset

CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
SIDE = 32  # Pixels.
MAX_CLIENTS = 100


def brightness(rows: np.ndarray) -> np.ndarray:
    """Scales 0 to 255 to 0 to 1, ``float32``."""
    return rows.astype(np.float32) / np.float32(255)


def _preset(about, clients, alpha):
    return Preset(
        about=about,
        channels=("red", "green", "blue"),
        units=("1",) * 3,
        length=SIDE**2,
        stride=SIDE**2,
        derive=brightness,
        clients=clients,
        alpha=alpha,
    )


DATASET = Dataset(
    name="cifar10",
    about="60,000 photographs of 32 x 32 pixels, 10 classes, artificial clients",
    rate_hz=1.0,  # The unit of time is one pixel, row by row.
    attributes={
        "object": CLASSES,
        "subject": tuple(str(number) for number in range(1, MAX_CLIENTS + 1)),
    },
    private=("subject",),
    presets={
        "dirichlet": _preset("20 clients, Dirichlet with alpha 0.5 by class", 20, 0.5),
        "skewed": _preset("20 clients, Dirichlet with alpha 0.1 by class", 20, 0.1),
        "alike": _preset("20 clients, Dirichlet with alpha 100 by class", 20, 100.0),
        "clients100": _preset("100 clients, Dirichlet with alpha 0.5", 100, 0.5),
    },
    splits=("trial", "subject"),
    last_train_trial=1,  # The published training side.
    builder="jaxanon.datasets.cifar10.cifar10_dataset_builder:Builder",
    locate=locate,
    files=FILES,
)
