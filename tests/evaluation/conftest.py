"""A small data set with attributes known to be inferable, and anonymizers."""

import sys

import jax
import numpy as np
import pytest

from jaxanon.datasets import Data, Spec, Windows
from jaxanon.evaluation.anonymizers import train_raw_classifiers

TIME = 16
QUICK = {"attacks": ("forest",)}
CLASSES = {
    "activity": ("slow", "fast"),
    "side": ("left", "right"),
    "subject": ("ann", "bea", "cid"),
}


def spec(private=("side",), split="time_block", **changes):
    fields = {
        "name": "toy",
        "preset": "raw",
        "channels": ("x", "y", "z"),
        "units": ("g", "g", "g"),
        "rate_hz": 8.0,
        "time": TIME,
        "public": "activity",
        "private": tuple(private),
        "classes": CLASSES,
        "mean": (1.0, 2.0, 3.0),
        "std": (2.0, 3.0, 4.0),
        "split": split,
    }
    return Spec(**{**fields, **changes})


def part(seed, subjects, repeats):
    """Returns windows in order of subject, activity, side.

    After standardization, channel x has a wave of one or four cycles, y is at -1 or +1,
    and z has one level per subject.
    """
    rng = np.random.default_rng(seed)
    grid = np.array(
        [(s, a, b) for s in subjects for a in (0, 1) for _ in range(repeats)
         for b in (0, 1)]
    )  # fmt: skip
    subject, activity, side = grid.T
    cycles = np.where(activity, 4, 1)[:, None]
    phase = rng.uniform(size=(len(grid), 1))
    wave = 1.5 * np.sin(2 * np.pi * (cycles * np.arange(TIME) / TIME + phase))
    level = np.repeat(2.0 * side[:, None] - 1, TIME, 1)
    person = np.repeat(1.5 * subject[:, None] - 1.5, TIME, 1)
    z = np.stack([wave, level, person], -1) + 0.2 * rng.normal(size=(*wave.shape, 3))
    mean, std = np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0])
    labels = {"subject": subject, "activity": activity, "side": side}
    labels = {name: np.int32(values) for name, values in labels.items()}
    return Windows(np.float32(z * std + mean), labels)


def data(private=("side",)):
    """Returns 96 training and 96 test windows of the same three subjects."""
    return Data(spec(private), part(0, (0, 1, 2), 8), part(1, (0, 1, 2), 8))


def strangers(private=("side",)):
    """Returns data that train on ann and test on bea and cid."""
    own = spec(private, "subject")
    return Data(own, part(0, (0,), 24), part(1, (1, 2), 12))


class Run:
    """The result of ``train``, as far as an evaluation uses it."""

    def __init__(self, anonymize, folder=None, history=()):
        self.anonymize = anonymize
        self.folder = folder
        self.history = list(history)


def identity(key, windows):
    return windows


def flip_side(key, windows):
    """Mirrors channel y about its mean of 2."""
    return windows * np.float32([1, -1, 1]) + np.float32([0, 4, 0])


def noise(key, windows):
    return np.array(jax.random.normal(key, windows.shape))


@pytest.fixture(scope="session")
def cases():
    """Returns this module, which tests cannot import."""
    return sys.modules[__name__]


@pytest.fixture(scope="session")
def trained():
    """Returns raw-data classifiers of the small data set, and their progress."""
    told = []
    made = train_raw_classifiers(data(), progress=lambda *entry: told.append(entry[:2]))
    return made, told


@pytest.fixture(scope="session")
def raw_classifiers(trained):
    return trained[0]
