"""Client and server computations of a round, for deployment on real devices."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine import layout as layouts


class Exchange(NamedTuple):
    """One message per client of a cohort, and the server's aggregation.

    - ``reply(key, state, step, client, data, own) -> (message, weight, own)`` runs on
      client ``client``. ``state`` is the server's broadcast (see ``broadcast_state``).
      ``data`` is a population of this client only. ``own`` is its personal state, or
      None. A message is ``(averaged values, info)``, zeros if the weight is 0.
    - ``merge(state, ids, total, weight) -> (state, info)`` runs on the server, given
      the weighted sum over the cohort ``ids``.
    - ``direction(state, averaged)`` is the change relative to the broadcast, whose norm
      is checked.
    - ``max_weight(num_rows)`` is the maximum weight of a client with these rows.
    - ``num`` is the number of consecutive exchanges in a round, counted by ``step``.
    - ``is_valid(averaged) -> bool[]`` is False for messages that no honest client
      sends.
    """

    reply: Callable
    merge: Callable
    direction: Callable
    max_weight: Callable
    num: int = 1
    is_valid: Callable = lambda sent: True


class Parts(NamedTuple):
    """A round: ``cohort(key, state, num_clients) -> int32[m]``, then each ``Exchange``.

    ``end(state) -> state`` follows the last exchange.
    """

    cohort: Callable
    exchanges: tuple[Exchange, ...]
    end: Callable = lambda state: state


@functools.lru_cache(maxsize=8)  # Returns the same functions, which compile once.
def split_algorithm(algorithm) -> Parts:
    """Splits a ``FederatedAlgorithm`` into client and server computations.

    Combined over a cohort they equal ``algorithm.update`` up to rounding.

    Args:
      algorithm: ``FederatedAlgorithm`` with ``stages``.

    Raises:
      ValueError: if the algorithm cannot be split.

    Example:
      The first of two clients moves half of the way from 0 to 4.

      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedavg(
      ...     lambda key: jnp.zeros(()), square, steps=fed.Steps(num_steps=1))
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> (exchange,) = split_algorithm(algorithm).exchanges
      >>> data = fed.stack([jnp.array([4.0])])
      >>> message, weight, _ = exchange.reply(
      ...     jax.random.key(1), broadcast_state(state), 0, 0, data, None)
      >>> message[0], weight
      (Array(-2., dtype=float32), Array(1., dtype=float32))
    """
    stages = algorithm.stages
    if stages is None:
        raise ValueError(
            "algorithm must have stages to run on real devices, got None (as for "
            "dp_fedavg and centralized_clustering); use one such as fedavg or atlas."
        )
    exchanges = (_exchange(stages, 0, 1),)
    if stages.more_stages:
        exchanges += (_exchange(stages, 1, stages.more_stages),)
    return Parts(stages.cohort, exchanges, stages.finish)


def _exchange(stages, first, num):
    """Returns the exchange of ``num`` stages starting at ``first``."""

    def reply(key, state, step, client, data, own):
        if own is not None:
            state = state._replace(own=jax.tree.map(lambda leaf: leaf[None], own))
        ids, counted = jnp.asarray(client)[None], jnp.ones(1, bool)
        # The data holds only this client, at position 0.
        at, stage = jnp.zeros(1, jnp.int32), first + step if first else 0
        (total, weight), kept = stages.work(key, state, data, ids, counted, at, stage)
        kept = None if own is None else jax.tree.map(lambda leaf: leaf[0], kept)
        return layouts.divide(total, weight), weight, kept

    def merge(state, ids, total, weight):
        if state.own is None:
            return stages.merge(state, ids, (total, weight), None, first)
        try:
            bare = state._replace(own=None)
            after, info = stages.merge(bare, ids, (total, weight), None, first)
        except AttributeError as error:  # Raised for None while tracing.
            raise ValueError(
                "algorithm must not use personal states on the server, which real "
                "devices do not send; use one such as fedper or atlas."
            ) from error
        return after._replace(own=state.own), info

    return Exchange(
        reply, merge, stages.direction, stages.max_weight, num, stages.is_valid
    )


def subtract_broadcast(state, sent):
    """Subtracts the server's params from ``sent`` if both have the same structure.

    Example:
      >>> from jaxanon.federated import State
      >>> state = State(0, {"w": 1.0}, None, {})
      >>> subtract_broadcast(state, {"w": 3.0}), subtract_broadcast(state, 3.0)
      ({'w': 2.0}, 3.0)
    """
    if jax.tree.structure(sent) != jax.tree.structure(state.params):
        return sent
    return jax.tree.map(lambda new, old: new - old, sent, state.params)


def broadcast_state(state) -> Any:
    """Returns the server's state as sent to clients.

    It excludes the optimizer state, the running mean and personal states.

    Example:
      >>> from jaxanon.federated import State
      >>> broadcast_state(State(0, {"w": 1.0}, opt_state="momentum", hyper={}))
      State(round=0, params={'w': 1.0}, opt_state=None, hyper={}, average=None)
    """
    hidden = {"opt_state", "own", "average"} & set(state._fields)
    return state._replace(**dict.fromkeys(hidden))


def initial_own(state) -> Any:
    """Returns the initial personal state of a client, or None.

    Example:
      >>> from jaxanon.federated import PersonalState
      >>> initial_own(PersonalState(0, {}, {"w": jnp.zeros((3, 2))}, None, {}))
      {'w': Array([0., 0.], dtype=float32)}
    """
    if state.own is None:
        return None
    return jax.tree.map(lambda leaf: leaf[0], state.own)


def merge_messages(exchange: Exchange, state, ids, messages, weights):
    """Aggregates the messages of an exchange on the server.

    Args:
      exchange: ``Exchange``.
      state: state of the server.
      ids: ``int32[m]``, the cohort.
      messages: tree of arrays ``[m, ...]`` in the order of the cohort.
      weights: ``float[m]``; 0 for missing or rejected messages, which may hold any
        values.

    Returns:
      ``(state, info)``.

    Example:
      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedavg(
      ...     lambda key: jnp.zeros(()), square, steps=fed.Steps(num_steps=1))
      >>> (exchange,) = split_algorithm(algorithm).exchanges
      >>> messages = jnp.array([-2.0, jnp.nan]), {"loss": jnp.array([8.0, 0.0])}
      >>> state, info = merge_messages(exchange, algorithm.init(jax.random.key(0)),
      ...     jnp.arange(2), messages, jnp.array([1.0, 0.0]))
      >>> state.params, info["loss"]
      (Array(2., dtype=float32), Array(8., dtype=float32))
    """
    alike = layouts.Layout()
    total = layouts.sum_over_clients(lambda message: message, messages, weights, alike)
    return exchange.merge(state, ids, total, jnp.sum(weights))


FACTOR = 10.0  # Maximum norm of a message, relative to the round's median.

LEAST = 3  # Minimum number of messages for a meaningful median.


def pack(tree) -> dict[str, np.ndarray]:
    """Returns a tree's arrays on the host, keyed by their paths.

    Example:
      >>> pack({"w": np.zeros(2)})
      {"['w']": array([0., 0.])}
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def unpack(arrays: dict[str, np.ndarray], like):
    """Inverts ``pack``, with validation.

    Args:
      arrays: result of ``pack`` from an untrusted sender.
      like: tree of arrays or ``jax.ShapeDtypeStruct``.

    Raises:
      ValueError: if an array is missing, unknown, not finite, or of another shape or
        dtype.

    Example:
      >>> unpack({"['w']": np.ones(2)}, {"w": np.zeros(2)})
      {'w': array([1., 1.])}
    """
    leaves, treedef = jax.tree_util.tree_flatten_with_path(like)
    wanted = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
    missing, more = sorted(set(wanted) - set(arrays)), sorted(set(arrays) - set(wanted))
    if missing or more:
        raise ValueError(
            f"its arrays must match the model, got {len(missing)} missing "
            f"{missing[:3]} and {len(more)} unknown {more[:3]}."
        )
    for name, leaf in wanted.items():
        found = arrays[name]
        if found.shape != leaf.shape or found.dtype != leaf.dtype:
            raise ValueError(
                f"{name} must be {leaf.dtype}{list(leaf.shape)}, got "
                f"{found.dtype}{list(found.shape)}."
            )
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity.")
    return treedef.unflatten([arrays[name] for name in wanted])


def check_weight(weight: float, max_weight: float) -> None:
    """Checks the weight that a client reports.

    Raises:
      ValueError: unless ``weight`` is in [0, ``max_weight``]; NaN is rejected.

    Example:
      >>> check_weight(3.0, 5.0)
    """
    if not 0 <= weight <= max_weight:
        raise ValueError(
            f"its weight must be in [0, {max_weight:g}], the maximum for a client's "
            f"rows, got {weight:g}."
        )


def norm(tree) -> float:
    """Returns the Euclidean norm of all numbers of a tree in float64.

    Example:
      >>> norm({"w": np.array([3.0, 0.0]), "b": np.array(4.0)})
      5.0
    """
    squares = [np.sum(np.square(np.float64(leaf))) for leaf in jax.tree.leaves(tree)]
    return float(np.sqrt(sum(squares)))


def find_oversized(norms: dict[int, float], max_norm: float | None) -> dict[int, str]:
    """Returns the clients whose messages are too large, with the reason.

    Args:
      norms: norm of each client's message.
      max_norm: bound on the norm. None is ``FACTOR`` times the median of ``norms``, if
        there are at least ``LEAST`` norms and the median is above 0.

    Example:
      >>> find_oversized({0: 1.0, 1: 2.0, 2: 30.0}, None)
      {2: 'its norm must be at most 20, got 30.'}
      >>> find_oversized({0: 1.0, 1: 30.0}, None)
      {}
    """
    bound = max_norm
    if bound is None:
        if len(norms) < LEAST:
            return {}
        bound = FACTOR * float(np.median([*norms.values()]))
        if bound == 0:
            return {}
    reason = lambda norm: f"its norm must be at most {bound:g}, got {norm:g}."
    return {client: reason(n) for client, n in norms.items() if not n <= bound}
