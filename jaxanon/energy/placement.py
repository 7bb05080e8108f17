"""A street on several cores: kinds of device that never hear of each other."""

import concurrent.futures
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.energy.neighbourhood import Neighborhood
from jaxanon.energy.system import PFDRLSystem, SystemState, simulate
from jaxanon.kernels.checks import whole


def apart(
    street: Neighborhood, number: int
) -> tuple[list[np.ndarray], list[Neighborhood]]:
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
      >>> from jaxanon.energy import build_neighborhood
      >>> places, streets = apart(build_neighborhood(np.ones((2, 60, 3))), 2)
      >>> [own.tolist() for own in places], streets[1].power.shape
      ([[0, 2, 3, 5], [1, 4]], (2, 60))
    """
    whole("number", number, least=1)
    kinds, counts = np.unique(np.asarray(street.kind), return_counts=True)
    dealt = [[] for _ in range(min(number, len(kinds)))]
    for place in np.argsort(-counts, kind="stable"):
        sizes = [sum(counts[kinds == kind].sum() for kind in own) for own in dealt]
        dealt[int(np.argmin(sizes))].append(kinds[place])
    places = [np.flatnonzero(np.isin(street.kind, own)) for own in dealt]
    return places, [_of(street, own) for own in places]


def simulate_sharded(
    system: PFDRLSystem,
    key,
    states: Sequence[SystemState],
    streets: Sequence[Neighborhood],
    num_slots: int,
):
    """``simulate`` of several streets at once, each in a thread and a program of its
    own.

    On a CPU a program of small products keeps one core busy: with as many streets as
    cores all are. What comes of it is what ``simulate`` makes of the whole street,
    noise on broadcasts and lost messages included, but for rounding.

    Args:
      system, key, num_slots: of ``simulate``, the same for all.
      states: of ``system.init`` with the same key, or of an earlier call; donated.
      streets: of ``apart``.

    Returns:
      Lists of the new states, and of ``info``.

    Example:
      >>> from jaxanon import energy
      >>> config = energy.PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr", lookback=10, ahead=10),
      ...     dqn=energy.DQNConfig(batch_size=4), hidden_sizes=(8,), slot_min=10)
      >>> system = energy.pfdrl(config)
      >>> _, streets = apart(energy.build_neighborhood(np.ones((2, 60, 2))), 2)
      >>> states = [system.init(jax.random.key(0), own, alpha=1) for own in streets]
      >>> states, infos = simulate_sharded(
      ...     system, jax.random.key(1), states, streets, 3
      ... )
      >>> [info["minutes"].shape for info in infos]
      [(3, 2), (3, 2)]
    """

    # Of this thread, which others would not have.
    wide = jax.config.read("jax_enable_x64")

    def one(state, street):
        with jax.enable_x64(wide):
            return jax.block_until_ready(
                simulate(system, key, state, street, num_slots)
            )

    with concurrent.futures.ThreadPoolExecutor(len(streets), "street") as threads:
        found = [*threads.map(one, states, streets)]
    states, infos = zip(*found, strict=True)
    return [*states], [*infos]


def deal_state(
    system: PFDRLSystem,
    state: SystemState,
    places: Sequence,
    streets: Sequence[Neighborhood],
) -> list[SystemState]:
    """A street's state as those of the streets that ``apart`` made of it.

    Args:
      system: of ``pfdrl``.
      state: of the whole street, known on the host.
      places, streets: of ``apart``.

    Returns:
      A state for each, for ``simulate_sharded``.

    Example:
      >>> from jaxanon import energy
      >>> config = energy.PFDRLConfig(
      ...     forecast=energy.ForecastConfig(kind="lr"), hidden_sizes=(8,))
      >>> system, whole = (
      ...     energy.pfdrl(config),
      ...     energy.build_neighborhood(np.ones((2, 60, 2))),
      ... )
      >>> state = system.init(jax.random.key(0), whole, alpha=1)
      >>> parts = energy.apart(whole, 2)
      >>> states = deal_state(system, state, *parts)
      >>> states[0].control.params["dense_1"]["kernel"].shape
      (2, 2, 8)
      >>> again = collect_state(state, states, parts[0])
      >>> bool((again.fit_mail.age == state.fit_mail.age).all())
      True
    """

    def dealt(own, street):
        def one(leaf, small):
            part = np.asarray(leaf)
            for axis in _agent_axes(leaf, small):
                part = np.take(part, own, axis=axis)
            return jnp.asarray(part)

        return jax.tree.map(one, state, _like(system, state, street))

    return [dealt(*part) for part in zip(places, streets, strict=True)]


def collect_state(
    state: SystemState, states: Sequence[SystemState], places: Sequence
) -> SystemState:
    """The whole street's state of those of its parts: what ``deal_state`` undoes.

    Args:
      state: that was dealt out, of which its parts do not know all: what those know of
        each other who never hear each other.
      states: of ``deal_state`` or ``simulate_sharded``.
      places: of ``apart``.

    Example:
      See ``deal_state``.
    """

    def one(leaf, *parts):
        if not any(_agent_axes(leaf, part) for part in parts):
            return parts[0]
        whole = np.array(leaf)
        for own, part in zip(places, parts, strict=True):
            axes = _agent_axes(leaf, part)
            whole[_at(own, axes, whole.ndim)] = part
        return jnp.asarray(whole)

    return jax.tree.map(one, state, *states)


def _like(system, state, street):
    """Shapes of the state that a street has with a state's hyper-parameters."""
    hyper = state.hyper | {name: x[0] for name, x in state.control.hyper.items()}
    init = lambda seed, street: system.init(jax.random.key(seed), street, **hyper)
    return jax.eval_shape(init, 0, street)


def _agent_axes(leaf, small):
    """The axes along which a part has fewer: those of agents."""
    sizes = zip(leaf.shape, small.shape, strict=True)
    return [axis for axis, (whole, part) in enumerate(sizes) if whole != part]


def _at(own, axes, ndim):
    """Where a part lies in the whole."""
    found: list = [slice(None)] * ndim
    for place, axis in enumerate(axes):
        shape = [1] * len(axes)
        shape[place] = -1
        found[axis] = np.reshape(own, shape)
    return tuple(found)


def _of(street, own):
    """The street of some agents, who hear none of the others."""
    square = {
        name: getattr(street, name)[own][:, own] for name in ("neighbours", "everybody")
    }
    alone = street._replace(neighbours=None, everybody=None)
    return jax.tree.map(lambda leaf: leaf[own], alone)._replace(**square)
