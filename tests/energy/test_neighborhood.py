"""Number of neighbors, and devices that new homes share with a neighborhood."""

import numpy as np

from jaxanon import energy, federated
from jaxanon.energy import neighborhood

DAY = 1440


def test_who_hears_nobody_is_counted():
    """A ring of four homes; kind 1 is in homes 0 and 2, which are not neighbors."""
    kinds = np.array([[0, 1], [0, 2], [0, 1], [0, 3]])
    made = energy.build_neighborhood(
        np.ones((4, 9, 2)), kinds, graph=federated.ring_graph(4)
    )
    # Devices of kind 0 have two neighbors each, all others have none.
    assert neighborhood.count_neighbors(made) == {"mean": 1.0, "nobody": 4}
    power = np.ones((4, 9, 2))
    power[1, :, 1] = np.nan  # Absent devices do not count.
    made = energy.build_neighborhood(power, kinds)
    assert neighborhood.count_neighbors(made) == {"mean": (4 * 3 + 2) / 7, "nobody": 1}


def test_devices_are_known_by_a_day_that_is_the_same():
    rng = np.random.default_rng(0)
    old, new = rng.uniform(0, 9, (2, 2 * DAY, 2)), rng.uniform(0, 9, (3, 2 * DAY, 2))
    known = lambda: neighborhood.count_known_devices(
        energy.build_neighborhood(old), energy.build_neighborhood(new)
    )
    assert known() == 0
    new[0, DAY:, 1] = old[1, :DAY, 1]
    new[2, :DAY, 0] = old[0, DAY:, 1]
    assert known() == 2
    # Days of constant load do not count.
    new[1, :DAY, 0] = old[1, DAY:, 0] = 3
    assert known() == 2
