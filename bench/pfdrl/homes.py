"""Homes of the PFDRL benchmark, and their communication graphs."""

import warnings
from typing import NamedTuple

import jax
import numpy as np

from jaxanon import energy, federated
from jaxanon.energy.saving import DAY

DAYS, HELD_OUT = 24, 6
SIZES = {  # Composed and simulated homes; metered homes are complete.
    "tracebase": {"homes": 10, "devices": 8},
    "households": {},
    "simulated": {"homes": 10},
}
SMOKE = {"homes": 3, "devices": 2, "days": 2, "test_days": 1}


class Place(NamedTuple):
    """Homes with training days followed by test days."""

    name: str
    power: np.ndarray  # float[homes, minutes, devices], W; NaN for absent devices
    kinds: np.ndarray  # int[homes, devices]
    train_days: int
    test_days: int

    @property
    def homes(self):
        """Number of homes."""
        return len(self.power)


def some(place, which) -> Place:
    """Returns the place with a slice of its homes."""
    kinds = None if place.kinds is None else place.kinds[which]
    return place._replace(power=place.power[which], kinds=kinds)


def neighborhood(place, graph=None) -> energy.Neighborhood:
    """Returns the neighborhood of a place; ``graph`` as in ``jaxanon.federated``."""
    learn = place.train_days * DAY
    return energy.build_neighborhood(
        place.power, place.kinds, learn_minutes=learn, graph=graph
    )


def graph(name, homes, seed):
    """Returns a communication graph by name."""
    four = min(4, homes - 1 - homes % 2)
    made = {
        "everybody": lambda: None,
        "4-regular": lambda: federated.k_regular_graph(homes, four),
        "random, 0.3": lambda: federated.random_graph(jax.random.key(seed), homes, 0.3),
        "ring": lambda: federated.ring_graph(homes),
        "nobody": lambda: np.zeros((homes, homes), bool),
    }
    return made[name]()


def place(name, seed, **sizes) -> Place:
    """Returns homes by a name of ``energy.load_homes``."""
    sizes = {"days": DAYS, "test_days": HELD_OUT} | sizes
    found = energy.load_homes(name, seed=seed, **sizes)
    return Place(name, found.power, found.kinds, sizes["days"], sizes["test_days"])


def every(smoke, case, seed) -> list[Place]:
    """Returns the places of a question; warns about missing data sets."""
    if smoke:
        return [place("simulated", seed, **SMOKE)]
    places = []
    for name in (case,) if case else ("tracebase", "households"):
        try:
            places.append(place(name, seed, **SIZES[name]))
        except (OSError, ImportError) as error:
            warnings.warn(f"{name} is left out: {error}", stacklevel=2)
    return places
