"""Who knows whom in a street: what devices hear, and what newcomers have in common."""

import numpy as np

from jaxanon.energy.homes import DAY
from jaxanon.energy.street import Street


def known_devices(street: Street, newcomers: Street) -> int:
    """How many devices of newcomers had a day that a device of the street had as well.

    To the watt, minute by minute, as homes have that are composed of the same devices;
    days of one load all along do not count.

    Args:
      street, newcomers: ``Street``, of whole days.

    Example:
      >>> from jaxanon.energy import street as made
      >>> one, other = np.arange(1440.0), np.arange(1440.0) % 7
      >>> homes = lambda *watts: made(np.stack(watts)[:, :, None])
      >>> known_devices(homes(one), homes(other, one))
      1
    """

    def days(power):
        rows = np.asarray(power).reshape(-1, DAY)
        return {hash(row.tobytes()) for row in rows if row.min() != row.max()}

    there = days(street.power[street.present])
    own = newcomers.power[newcomers.present]
    return sum(not there.isdisjoint(days(power)) for power in own)


def hearing(street: Street) -> dict:
    """Of how many others a device hears what they broadcast.

    A graph is of homes, and only devices of one kind hear each other: where homes have
    different ones a device has fewer neighbours than its home, or none.

    Args:
      street: ``Street``.

    Returns:
      ``mean``, over devices, and ``nobody``, how many hear nobody at all.

    Example:
      >>> from jaxanon.energy import street as made
      >>> kinds = np.array([[0, 1], [0, 2], [0, 1]])
      >>> hearing(made(np.ones((3, 60, 2)), kinds))
      {'mean': 1.3333333333333333, 'nobody': 1}
    """
    there = np.asarray(street.present)
    hears = (np.asarray(street.neighbours) > 0) & ~np.eye(len(there), dtype=bool)
    counts = hears.sum(axis=1)[there]
    if not len(counts):
        return {"mean": 0.0, "nobody": 0}
    return {"mean": float(counts.mean()), "nobody": int((counts == 0).sum())}
