"""Streets for the comparison with PFDRL: composed, metered and made up."""

import warnings
from typing import NamedTuple

import jax
import numpy as np

from jaxanon import energy, federated
from jaxanon.datasets import registry, store
from jaxanon.datasets.households.description import COLUMNS
from jaxanon.datasets.tracebase import homes as composed

DAY = 1440
TEST_SHARE = 0.2


class Place(NamedTuple):
    """Homes of which some days teach, and later ones test."""

    name: str
    power: np.ndarray  # float[homes, minutes, devices], W; NaN of what is not there
    kinds: np.ndarray | None  # int[homes, devices]
    train_days: int
    test_days: int

    @property
    def homes(self):
        return len(self.power)


def street(place, graph=None) -> energy.Street:
    """The place as agents; ``graph`` of ``jaxanon.federated``, or None."""
    learn = place.train_days * DAY
    return energy.street(place.power, place.kinds, learn_minutes=learn, graph=graph)


def graphs(homes, seed) -> dict:
    """Who hears whom, by name."""
    four = min(4, homes - 1 - homes % 2)
    key = jax.random.key(seed)
    return {
        "everybody": None,
        f"{four}-regular": federated.k_regular(homes, four),
        "random, 0.3": federated.random_graph(key, homes, 0.3),
        "ring": federated.ring(homes),
        "nobody": np.zeros((homes, homes), bool),
    }


def tracebase(homes, devices, days, seed) -> Place:
    """Homes composed of Tracebase's devices, the last fifth of their days held out."""
    found = composed(homes, days=days, num_types=devices, seed=seed)
    train = found.train_minutes // DAY
    return Place("Tracebase", found.power, found.types, train, days - train)


def households(days) -> Place:
    """The first so many days in a row that each of the five homes was metered.

    Appliances that a home lacks are NaN. A home that has no such days is left out.
    """
    longest = {}
    for one in store.read(registry.find("households"), None, None):
        start = int(-one.rows[0, 0] % DAY)
        rows = one.rows[start : start + days * DAY, 2:]
        if len(rows) == days * DAY:
            longest.setdefault(one.labels["subject"], rows)
    if not longest:
        raise ValueError(f"no home has {days} days without a gap; ask for fewer.")
    power = np.stack([longest[name] for name in sorted(longest)]).astype(np.float32)
    lacks = (power == 0).all(axis=1, keepdims=True)
    power = np.where(lacks, np.nan, power)
    test = max(1, round(TEST_SHARE * days))
    assert power.shape[2] == len(COLUMNS) - 1
    return Place("REFIT, UK-DALE, IDEAL", power, None, days - test, test)


def made_up(homes, days, seed) -> Place:
    """Homes of ``jaxanon.energy.households``, six devices each."""
    found = energy.households(jax.random.key(seed), homes, days)
    test = max(1, round(TEST_SHARE * days))
    return Place("made-up homes", np.asarray(found.power), None, days - test, test)


def every(smoke, case, seed) -> list[Place]:
    """The places that a question is asked of; those whose data are absent are named."""
    if smoke:
        return [made_up(3, 3, seed)]
    makers = {
        "tracebase": lambda: tracebase(10, 8, 30, seed),
        "households": lambda: households(30),
        "made-up": lambda: made_up(10, 30, seed),
    }
    places = []
    for name in (case,) if case else ("tracebase", "households"):
        try:
            places.append(makers[name]())
        except (OSError, ValueError, ImportError) as error:
            warnings.warn(f"{name} is left out: {error}", stacklevel=2)
    return places
