"""Distribution of a neighborhood's kinds of devices over the cores of a CPU."""

import concurrent.futures
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.energy.neighborhood import Neighborhood
from jaxanon.energy.system import PFDRLSystem, SystemState, simulate
from jaxanon.kernels.checks import whole


def shard_neighborhood(
    neighborhood: Neighborhood, num_shards: int
) -> tuple[list[np.ndarray], list[Neighborhood]]:
    """Splits a neighborhood into shards that each hold all agents of some kinds.

    Kinds are assigned in order of decreasing number of agents, each to the smallest
    shard. Agents keep their numbers and therefore their random streams.

    Args:
      neighborhood: ``Neighborhood`` with concrete arrays.
      num_shards: maximum number of shards; at most one shard per kind is made.

    Returns:
      The indices of each shard's agents in ``neighborhood``, ascending ``int[agents]``;
      and the shards.

    Raises:
      ValueError: if ``num_shards`` is less than 1.

    Example:
      >>> from jaxanon.energy import build_neighborhood
      >>> whole = build_neighborhood(np.ones((2, 60, 3)))
      >>> indices, shards = shard_neighborhood(whole, 2)
      >>> [own.tolist() for own in indices], shards[1].power.shape
      ([[0, 2, 3, 5], [1, 4]], (2, 60))
    """
    whole("num_shards", num_shards, least=1)
    kinds, counts = np.unique(np.asarray(neighborhood.kind), return_counts=True)
    dealt = [[] for _ in range(min(num_shards, len(kinds)))]
    for place in np.argsort(-counts, kind="stable"):
        sizes = [sum(counts[kinds == kind].sum() for kind in own) for own in dealt]
        dealt[int(np.argmin(sizes))].append(kinds[place])
    indices = [np.flatnonzero(np.isin(neighborhood.kind, own)) for own in dealt]
    return indices, [_subset(neighborhood, own) for own in indices]


def simulate_sharded(
    system: PFDRLSystem,
    key,
    states: Sequence[SystemState],
    shards: Sequence[Neighborhood],
    num_slots: int,
):
    """Runs ``simulate`` on all shards at once, each in its own thread and program.

    On a CPU, a program of small products uses one core; with one shard per core it uses
    all. The result equals ``simulate`` of the whole neighborhood up to rounding,
    including noise on broadcasts and lost messages.

    Args:
      system: result of ``pfdrl``.
      key: typed PRNG key of the run.
      states: states of ``system.init`` with the same key, or of an earlier call;
        donated.
      shards: shards of ``shard_neighborhood``.
      num_slots: number of slots, a Python int.

    Returns:
      Lists of the new states and of ``info``.

    Example:
      >>> from jaxanon import energy
      >>> config = energy.PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr", lookback=10, ahead=10),
      ...     dqn=energy.DQNConfig(batch_size=4), hidden_sizes=(8,), slot_min=10)
      >>> system = energy.pfdrl(config)
      >>> whole = energy.build_neighborhood(np.ones((2, 60, 2)))
      >>> _, shards = shard_neighborhood(whole, 2)
      >>> states = [system.init(jax.random.key(0), own, alpha=1) for own in shards]
      >>> states, infos = simulate_sharded(
      ...     system, jax.random.key(1), states, shards, 3
      ... )
      >>> [info["minutes"].shape for info in infos]
      [(3, 2), (3, 2)]
    """

    # The setting is local to a thread.
    wide = jax.config.read("jax_enable_x64")

    def one(state, neighborhood):
        with jax.enable_x64(wide):
            return jax.block_until_ready(
                simulate(system, key, state, neighborhood, num_slots)
            )

    with concurrent.futures.ThreadPoolExecutor(len(shards), "shard") as threads:
        results = [*threads.map(one, states, shards)]
    states, infos = zip(*results, strict=True)
    return [*states], [*infos]


def deal_state(
    system: PFDRLSystem,
    state: SystemState,
    indices: Sequence,
    shards: Sequence[Neighborhood],
) -> list[SystemState]:
    """Splits the state of a neighborhood into states of its shards.

    Args:
      system: result of ``pfdrl``.
      state: state of the whole neighborhood, with concrete arrays.
      indices, shards: results of ``shard_neighborhood``.

    Returns:
      One state per shard, for ``simulate_sharded``.

    Example:
      >>> from jaxanon import energy
      >>> config = energy.PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr"), hidden_sizes=(8,))
      >>> system, whole = (
      ...     energy.pfdrl(config),
      ...     energy.build_neighborhood(np.ones((2, 60, 2))),
      ... )
      >>> state = system.init(jax.random.key(0), whole, alpha=1)
      >>> parts = energy.shard_neighborhood(whole, 2)
      >>> states = deal_state(system, state, *parts)
      >>> states[0].control.params["dense_1"]["kernel"].shape
      (2, 2, 8)
      >>> again = collect_state(state, states, parts[0])
      >>> bool((again.fit_mail.age == state.fit_mail.age).all())
      True
    """

    def dealt(own, neighborhood):
        def one(leaf, small):
            part = np.asarray(leaf)
            for axis in _agent_axes(leaf, small):
                part = np.take(part, own, axis=axis)
            return jnp.asarray(part)

        return jax.tree.map(one, state, _state_shapes(system, state, neighborhood))

    return [dealt(*part) for part in zip(indices, shards, strict=True)]


def collect_state(
    state: SystemState, states: Sequence[SystemState], indices: Sequence
) -> SystemState:
    """Joins the states of shards to the state of the whole neighborhood.

    Args:
      state: the state before ``deal_state``; provides entries between agents of
        different shards, which shards lack.
      states: results of ``deal_state`` or ``simulate_sharded``.
      indices: indices of ``shard_neighborhood``.

    Example:
      See ``deal_state``.
    """

    def one(leaf, *parts):
        if not any(_agent_axes(leaf, part) for part in parts):
            return parts[0]
        whole = np.array(leaf)
        for own, part in zip(indices, parts, strict=True):
            axes = _agent_axes(leaf, part)
            whole[_index(own, axes, whole.ndim)] = part
        return jnp.asarray(whole)

    return jax.tree.map(one, state, *states)


def _state_shapes(system, state, neighborhood):
    """Returns the shapes of a neighborhood's state with given hyper-parameters."""
    hyper = state.hyper | {name: x[0] for name, x in state.control.hyper.items()}
    init = lambda seed, neighborhood: system.init(
        jax.random.key(seed), neighborhood, **hyper
    )
    return jax.eval_shape(init, 0, neighborhood)


def _agent_axes(leaf, small):
    """Returns the axes of agents, along which a shard is smaller."""
    sizes = zip(leaf.shape, small.shape, strict=True)
    return [axis for axis, (whole, part) in enumerate(sizes) if whole != part]


def _index(own, axes, ndim):
    """Returns the index of a shard in the whole array."""
    index: list = [slice(None)] * ndim
    for place, axis in enumerate(axes):
        shape = [1] * len(axes)
        shape[place] = -1
        index[axis] = np.reshape(own, shape)
    return tuple(index)


def _subset(neighborhood, own):
    """Returns the neighborhood of some agents, without mixing weights of others."""
    square = {
        name: getattr(neighborhood, name)[own][:, own]
        for name in ("neighbor_weights", "server_weights")
    }
    alone = neighborhood._replace(neighbor_weights=None, server_weights=None)
    return jax.tree.map(lambda leaf: leaf[own], alone)._replace(**square)
