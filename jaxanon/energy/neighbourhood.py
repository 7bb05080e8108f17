"""Who knows whom in a street: what devices hear, and what newcomers have in common."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.energy.forecasting import scale_of
from jaxanon.energy.homes import metered
from jaxanon.energy.modes import Levels, find_levels
from jaxanon.energy.saving import DAY
from jaxanon.federated import complete_graph, metropolis_weights


class Neighborhood(NamedTuple):
    """What all agents have and whom they hear; ``agents`` are homes x devices."""

    power: jax.Array  # float32[agents, minutes], W
    scale: jax.Array  # float32[agents], W that make a 1 for a forecaster
    levels: Levels  # float32[agents] each
    present: jax.Array  # bool[agents]; a device that the home has
    neighbours: jax.Array  # float32[agents, agents]; mixing weights of the graph
    everybody: jax.Array  # float32[agents, agents]; of all of a kind, as a server's
    kind: jax.Array  # int32[agents]
    number: jax.Array  # int32[agents]; whose random numbers an agent draws


def known_devices(street: Neighborhood, newcomers: Neighborhood) -> int:
    """How many devices of newcomers had a day that a device of the street had as well.

    To the watt, minute by minute, as homes have that are composed of the same devices;
    days of one load all along do not count.

    Args:
      street, newcomers: ``Neighborhood``, of whole days.

    Example:
      >>> from jaxanon.energy import build_neighborhood as made
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


def hearing(street: Neighborhood) -> dict:
    """Of how many others a device hears what they broadcast.

    A graph is of homes, and only devices of one kind hear each other: where homes have
    different ones a device has fewer neighbours than its home, or none.

    Args:
      street: ``Neighborhood``.

    Returns:
      ``mean``, over devices, and ``nobody``, how many hear nobody at all.

    Example:
      >>> from jaxanon.energy import build_neighborhood as made
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


def build_neighborhood(
    power, kinds=None, *, learn_minutes=None, graph=None, names=None
) -> Neighborhood:
    """Makes agents of homes: one for every device.

    Only devices of one kind learn of each other. Levels of the modes and the scale are
    those of the minutes one may learn from; as in the chapter, they are known from the
    beginning.

    Args:
      power: ``float[homes, minutes, devices]``, W, as ``metered`` takes it.
      kinds: ``int[homes, devices]``; None is that devices of one column are of a kind.
      learn_minutes: the first so many of them; None is all.
      graph: ``bool[homes, homes]``, which homes hear each other, symmetric, of
        ``jaxanon.federated``; None is ``complete_graph``, as in the chapter.
      names: of homes and of devices, for messages; a pair, or None.

    Returns:
      ``Neighborhood``; agent ``home * devices + device`` is that device of that home.

    Raises:
      TypeError: as ``metered``.
      ValueError: as ``metered``; if kinds or the graph have another shape, the graph is
        not symmetric, or ``learn_minutes`` are not among those there are.

    Example:
      >>> made = build_neighborhood(np.ones((3, 60, 2)))
      >>> made.power.shape, (made.everybody[0] > 0).tolist()
      ((6, 60), [True, False, True, False, True, False])
    """
    meters = metered(power, *(names or ()))
    homes, minutes, devices = meters.power.shape
    learn = minutes if learn_minutes is None else learn_minutes
    if not 1 <= learn <= minutes:
        raise ValueError(
            f"learn_minutes must lie in [1, {minutes}], the minutes there are, got "
            f"{learn!r}."
        )
    columns = np.broadcast_to(np.arange(devices), (homes, devices))
    kinds = columns if kinds is None else np.asarray(kinds)
    graph = np.asarray(complete_graph(homes) if graph is None else graph)
    for name, found, expected in (
        ("kinds", kinds.shape, (homes, devices)),
        ("graph", graph.shape, (homes, homes)),
    ):
        if found != expected:
            raise ValueError(
                f"{name} must have shape {expected}, for {homes} homes of {devices} "
                f"devices, got {found}."
            )
    if not (graph == graph.T).all():
        raise ValueError(
            "graph must be symmetric: whoever is heard hears; give graph | graph.T."
        )
    kind, present = kinds.reshape(-1), meters.present.reshape(-1)
    alike = (kind[:, None] == kind[None]) & present[:, None] & present[None]
    home = np.repeat(np.arange(homes), devices)
    near = (graph | np.eye(homes, dtype=bool))[home[:, None], home[None]]
    rows = np.moveaxis(meters.power, 1, 2).reshape(-1, minutes)
    levels = find_levels(meters.power[:, :learn])
    return Neighborhood(
        power=jnp.asarray(rows),
        scale=scale_of(jnp.asarray(rows[:, :learn])),
        levels=Levels(*(jnp.asarray(level.reshape(-1)) for level in levels)),
        present=jnp.asarray(present),
        neighbours=metropolis_weights(alike & near),
        everybody=jnp.asarray(_mean_of(alike)),
        kind=jnp.asarray(kind, jnp.int32),
        number=jnp.arange(len(rows), dtype=jnp.int32),
    )


def _mean_of(alike):
    """The mean over one's kind: rows that are the same to the bit, unlike weights that
    leave the rest to oneself, so that what begins alike stays alike."""
    alike = alike | np.eye(len(alike), dtype=bool)
    return (alike / alike.sum(axis=1, keepdims=True)).astype(np.float32)
