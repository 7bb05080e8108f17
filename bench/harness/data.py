"""Data shared by several benchmarks, and Blinder settings small enough for tests."""

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
# Compile time grows with steps and layers and dominates a smoke test.
SMOKE |= {
    "discriminator_hidden_sizes": (4,),
    "discriminator_rounds": 1,
    "discriminator_steps": 1,
}
SMOKE |= {"second_order": False, "shadows": False}


def load(smoke):
    """Loads MotionSense, or the smartwatch recordings if MotionSense is missing."""
    if smoke:
        return thin(ja.load("smartwatch", preset="acc10", private=["side"]))
    try:
        return ja.load("motion_sense", preset="mag4", private=["gender"])
    except OSError as error:
        print(f"MotionSense is not available ({error}); using smartwatch instead.")
        return ja.load("smartwatch", private=["side"])


def thin(data, step=25):
    """Keeps every ``step``-th window, for a smoke test."""
    keep = lambda part: jax.tree.map(lambda rows: rows[::step], part)
    return data._replace(train=keep(data.train), test=keep(data.test))


def made_spec(name, time, channels=("x",), **more) -> Spec:
    """Returns a spec of synthetic windows with 4 activities, 2 genders, 1 subject."""
    count = len(channels)
    classes = {"activity": tuple("abcd"), "gender": ("f", "m"), "subject": ("1",)}
    told = {"preset": name, "units": ("g",) * count, "rate_hz": 50.0, "split": "given"}
    told |= {"public": "activity", "private": ("gender",), "classes": classes}
    told |= {"mean": (0.0,) * count, "std": (1.0,) * count}
    return Spec(name=name, time=time, channels=channels, **told | more)


class Untouched:
    """An anonymizer that returns raw windows unchanged."""

    def anonymize(self, key, windows):
        """Returns ``windows``."""
        del key
        return np.asarray(windows, np.float32)
