"""A street on several cores: kinds of device that never hear of each other."""

import concurrent.futures
from collections.abc import Sequence

import jax
import numpy as np

from jaxanon.energy.pfdrl import System, SystemState, live
from jaxanon.energy.street import Street
from jaxanon.kernels.checks import whole


def apart(street: Street, number: int) -> tuple[list[np.ndarray], list[Street]]:
    """Deals a street's kinds of device out to streets, each with all of a kind.

    The kind with most agents goes first, each to the street that has fewest. Agents
    keep their numbers, and so the random numbers that they draw.

    Args:
      street: of ``street``, known on the host.
      number: how many streets at most; there are no more than kinds.

    Returns:
      ``int[own agents]`` of each, their places in ``street``, ascending; and the
      streets.

    Raises:
      ValueError: for fewer than one.

    Example:
      >>> from jaxanon.energy import street
      >>> places, streets = apart(street(np.ones((2, 60, 3))), 2)
      >>> [own.tolist() for own in places], streets[1].power.shape
      ([[0, 2, 3, 5], [1, 4]], (2, 60))
    """
    whole("number", number, least=1)
    kinds, counts = np.unique(np.asarray(street.kind), return_counts=True)
    dealt, sizes = [[] for _ in range(min(number, len(kinds)))], []
    for place in np.argsort(-counts, kind="stable"):
        sizes = [sum(counts[kinds == kind].sum() for kind in own) for own in dealt]
        dealt[int(np.argmin(sizes))].append(kinds[place])
    places = [np.flatnonzero(np.isin(street.kind, own)) for own in dealt]
    return places, [_of(street, own) for own in places]


def live_apart(
    system: System,
    key,
    states: Sequence[SystemState],
    streets: Sequence[Street],
    num_slots: int,
):
    """``live`` of several streets at once, each in a thread and a program of its own.

    On a CPU a program of small products keeps one core busy: with as many streets as
    cores all are. What comes of it is what ``live`` makes of the whole street, noise on
    broadcasts included, but for rounding and for which messages are lost or late:
    those are drawn by agents' places, and so the same in all streets.

    Args:
      system, key, num_slots: of ``live``, the same for all.
      states: of ``system.init`` with the same key, or of an earlier call; donated.
      streets: of ``apart``.

    Returns:
      Lists of the new states, and of ``info``.

    Example:
      >>> from jaxanon import energy
      >>> config = energy.PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr", lookback=10, ahead=10),
      ...     dqn=energy.DQNConfig(batch_size=4), hidden=(8, 8), slot_min=10)
      >>> system = energy.pfdrl(config)
      >>> _, streets = apart(energy.street(np.ones((2, 60, 2))), 2)
      >>> states = [system.init(jax.random.key(0), own, alpha=2) for own in streets]
      >>> states, infos = live_apart(system, jax.random.key(1), states, streets, 3)
      >>> [info["minutes"].shape for info in infos]
      [(3, 2), (3, 2)]
    """

    def one(state, street):
        return jax.block_until_ready(live(system, key, state, street, num_slots))

    with concurrent.futures.ThreadPoolExecutor(len(streets), "street") as threads:
        found = [*threads.map(one, states, streets)]
    states, infos = zip(*found, strict=True)
    return [*states], [*infos]


def _of(street, own):
    """The street of some agents, who hear none of the others."""
    square = {
        name: getattr(street, name)[own][:, own] for name in ("neighbours", "everybody")
    }
    alone = street._replace(neighbours=None, everybody=None)
    return jax.tree.map(lambda leaf: leaf[own], alone)._replace(**square)
