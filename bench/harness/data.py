"""Data that several benchmarks share, and a Blinder that is small enough for tests."""

import jax
import numpy as np

import jaxanon as ja
from jaxanon.datasets import Spec

SMOKE = {
    "hidden_sizes": (8,),
    "latent_dim": 2,
    "samples_per_class": 8,
    "query_size": 3,
    "extra": 4,
}
# What is compiled grows with steps and layers, and takes most of a smoke test.
SMOKE |= {
    "discriminator_hidden_sizes": (4,),
    "discriminator_rounds": 1,
    "discriminator_steps": 1,
}
SMOKE |= {"second_order": False, "shadows": False}


def load(smoke):
    """MotionSense where it is at hand, else the smartwatch recordings."""
    if smoke:
        return thin(ja.load("smartwatch", preset="acc10", private=["side"]))
    try:
        return ja.load("motion_sense", preset="mag4", private=["gender"])
    except OSError as error:
        print(f"MotionSense is not at hand ({error}); the smartwatch stands in.")
        return ja.load("smartwatch", private=["side"])


def thin(data, step=25):
    """Every so many windows, for a smoke test."""
    keep = lambda part: jax.tree.map(lambda rows: rows[::step], part)
    return data._replace(train=keep(data.train), test=keep(data.test))


def made_spec(name, time, channels=("x",), **more) -> Spec:
    """Of windows that are made up: four activities, two genders, one subject."""
    count = len(channels)
    classes = {"activity": tuple("abcd"), "gender": ("f", "m"), "subject": ("1",)}
    told = {"preset": name, "units": ("g",) * count, "rate_hz": 50.0, "split": "given"}
    told |= {"public": "activity", "private": ("gender",), "classes": classes}
    told |= {"mean": (0.0,) * count, "std": (1.0,) * count}
    return Spec(name=name, time=time, channels=channels, **told | more)


class Untouched:
    """Raw windows, as an anonymizer that changes nothing."""

    def anonymize(self, key, windows):
        """The windows."""
        del key
        return np.asarray(windows, np.float32)
