"""Neighborhoods: agents of homes, and their communication graph."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.energy.forecasting import compute_scale
from jaxanon.energy.homes import clean_power
from jaxanon.energy.modes import Levels, find_levels
from jaxanon.energy.saving import DAY
from jaxanon.federated import complete_graph, metropolis_weights


class Neighborhood(NamedTuple):
    """Data and mixing weights of all agents, ``homes x devices``."""

    power: jax.Array  # float32[agents, minutes], W
    scale: jax.Array  # float32[agents], W that correspond to 1 in a forecaster
    levels: Levels  # float32[agents] each
    present: jax.Array  # bool[agents]; whether the home has the device
    neighbor_weights: jax.Array  # float32[agents, agents]; mixing weights of the graph
    server_weights: jax.Array  # float32[agents, agents]; server weights per kind
    kind: jax.Array  # int32[agents]
    agent_id: jax.Array  # int32[agents]; index of the random stream


def count_known_devices(neighborhood: Neighborhood, new_homes: Neighborhood) -> int:
    """Counts devices of new homes that share a day with a device of the neighborhood.

    A day is shared if its loads are equal in every minute, as in composed homes that
    reuse devices. Days of constant load do not count.

    Args:
      neighborhood, new_homes: ``Neighborhood`` of whole days.

    Example:
      >>> from jaxanon.energy import build_neighborhood as build
      >>> one, other = np.arange(1440.0), np.arange(1440.0) % 7
      >>> homes = lambda *watts: build(np.stack(watts)[:, :, None])
      >>> count_known_devices(homes(one), homes(other, one))
      1
    """

    def days(power):
        rows = np.asarray(power).reshape(-1, DAY)
        return {hash(row.tobytes()) for row in rows if row.min() != row.max()}

    known = days(neighborhood.power[neighborhood.present])
    rows = new_homes.power[new_homes.present]
    return sum(not known.isdisjoint(days(power)) for power in rows)


def count_neighbors(neighborhood: Neighborhood) -> dict:
    """Counts the other agents whose broadcasts a device receives.

    The graph connects homes, but only devices of one kind exchange models. If homes
    have different devices, a device has fewer neighbors than its home, or none.

    Args:
      neighborhood: ``Neighborhood``.

    Returns:
      ``mean``, over devices, and ``nobody``, the number of devices without neighbors.

    Example:
      >>> from jaxanon.energy import build_neighborhood as made
      >>> kinds = np.array([[0, 1], [0, 2], [0, 1]])
      >>> count_neighbors(made(np.ones((3, 60, 2)), kinds))
      {'mean': 1.3333333333333333, 'nobody': 1}
    """
    present = np.asarray(neighborhood.present)
    hears = (np.asarray(neighborhood.neighbor_weights) > 0) & ~np.eye(
        len(present), dtype=bool
    )
    counts = hears.sum(axis=1)[present]
    if not len(counts):
        return {"mean": 0.0, "nobody": 0}
    return {"mean": float(counts.mean()), "nobody": int((counts == 0).sum())}


def build_neighborhood(
    power, kinds=None, *, learn_minutes=None, graph=None, names=None
) -> Neighborhood:
    """Builds a neighborhood with one agent for every device of every home.

    Only devices of one kind exchange models. Levels of the modes and scales are
    computed from the training minutes and, as in the chapter, are known from the start.

    Args:
      power: ``float[homes, minutes, devices]``, W, as in ``clean_power``.
      kinds: ``int[homes, devices]``; default: one kind per column.
      learn_minutes: number of training minutes, from the first; default: all.
      graph: symmetric ``bool[homes, homes]``, whether two homes communicate, from
        ``jaxanon.federated``; default: ``complete_graph``, as in the chapter.
      names: names of homes and of devices for messages, a pair; or None.

    Returns:
      ``Neighborhood``; agent ``home * devices + device`` is that device of that home.

    Raises:
      TypeError: if ``clean_power`` rejects the type of power.
      ValueError: if ``clean_power`` rejects the power; if kinds or graph have the wrong
        shape, the graph is not symmetric, or ``learn_minutes`` is out of range.

    Example:
      >>> made = build_neighborhood(np.ones((3, 60, 2)))
      >>> made.power.shape, (made.server_weights[0] > 0).tolist()
      ((6, 60), [True, False, True, False, True, False])
    """
    meters = clean_power(power, *(names or ()))
    homes, minutes, devices = meters.power.shape
    learn = minutes if learn_minutes is None else learn_minutes
    if not 1 <= learn <= minutes:
        raise ValueError(
            f"learn_minutes must be in [1, {minutes}], the number of minutes, got "
            f"{learn!r}."
        )
    columns = np.broadcast_to(np.arange(devices), (homes, devices))
    kinds = columns if kinds is None else np.asarray(kinds)
    graph = np.asarray(complete_graph(homes) if graph is None else graph)
    for name, shape, expected in (
        ("kinds", kinds.shape, (homes, devices)),
        ("graph", graph.shape, (homes, homes)),
    ):
        if shape != expected:
            raise ValueError(
                f"{name} must have shape {expected}, for {homes} homes of {devices} "
                f"devices, got {shape}."
            )
    if not (graph == graph.T).all():
        raise ValueError("graph must be symmetric; pass graph | graph.T.")
    kind, present = kinds.reshape(-1), meters.present.reshape(-1)
    alike = (kind[:, None] == kind[None]) & present[:, None] & present[None]
    home = np.repeat(np.arange(homes), devices)
    near = (graph | np.eye(homes, dtype=bool))[home[:, None], home[None]]
    rows = np.moveaxis(meters.power, 1, 2).reshape(-1, minutes)
    levels = find_levels(meters.power[:, :learn])
    return Neighborhood(
        power=jnp.asarray(rows),
        scale=compute_scale(jnp.asarray(rows[:, :learn])),
        levels=Levels(*(jnp.asarray(level.reshape(-1)) for level in levels)),
        present=jnp.asarray(present),
        neighbor_weights=metropolis_weights(alike & near),
        server_weights=jnp.asarray(_averaging_weights(alike)),
        kind=jnp.asarray(kind, jnp.int32),
        agent_id=jnp.arange(len(rows), dtype=jnp.int32),
    )


def _averaging_weights(alike):
    """Returns weights of the mean over each kind.

    Rows of a kind are bitwise equal, so equal models stay equal; Metropolis weights
    would give the remainder to the diagonal.
    """
    alike = alike | np.eye(len(alike), dtype=bool)
    return (alike / alike.sum(axis=1, keepdims=True)).astype(np.float32)
