"""A round taken apart between real clients and a server: what each of them computes."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine import layout as layouts


class Exchange(NamedTuple):
    """One message of each client of a cohort, and what the server makes of them.

    ``reply(key, state, step, client, data, own) -> (message, weight, own)`` is what
    client number ``client`` computes. ``state`` is what it was sent, see ``broadcast_state``;
    ``data`` are its own rows, as the first and only client of a population; ``own`` is
    what it kept, None where clients keep nothing. A message is ``(what is averaged,
    info)``, zeros where the weight is 0. ``merge(state, ids, total, weight) -> (state,
    info)`` is the server's part, of the weighted sum over the cohort ``ids``.
    ``direction(state, averaged)`` is how far a message moves what was sent, for its norm to
    be looked at. ``max_weight(num_rows)`` is the largest weight of so many rows. ``num``:
    so many of these follow each other in a round, and ``step`` counts them.
    ``is_valid(averaged) -> bool[]`` is whether an honest client could have sent it.
    """

    reply: Callable
    merge: Callable
    direction: Callable
    max_weight: Callable
    num: int = 1
    is_valid: Callable = lambda sent: True


class Parts(NamedTuple):
    """A round: ``cohort(key, state, num_clients) -> int32[m]``, then each ``Exchange``.

    ``end(state) -> state`` comes after the last of them.
    """

    cohort: Callable
    exchanges: tuple[Exchange, ...]
    end: Callable = lambda state: state


@functools.lru_cache(maxsize=8)  # The same functions, which compile once.
def split_algorithm(algorithm) -> Parts:
    """What clients and server of a ``FederatedAlgorithm`` compute, apart.

    Put together over a cohort they are ``algorithm.update``, up to rounding.

    Args:
      algorithm: a ``FederatedAlgorithm`` with ``stages``.

    Raises:
      ValueError: if the algorithm can't be taken apart.

    Example:
      The first of two clients goes half of the way to 4: from 0 it is 2 away.

      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedavg(lambda key: jnp.zeros(()), square, num_steps=1)
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
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
            "algorithm must have stages to run on real devices, and dp_fedavg and "
            "clustered have none; take one such as fedavg, atlas or meta."
        )
    exchanges = (_exchange(stages, 0, 1),)
    if stages.more_stages:
        exchanges += (_exchange(stages, 1, stages.more_stages),)
    return Parts(stages.cohort, exchanges, stages.finish)


def _exchange(stages, first, num):
    """That of ``num`` stages from the ``first`` on."""

    def reply(key, state, step, client, data, own):
        if hasattr(state, "own"):
            state = state._replace(own=jax.tree.map(lambda leaf: leaf[None], own))
        ids, counted = jnp.asarray(client)[None], jnp.ones(1, bool)
        # The only client of its data, whatever its number.
        at, stage = jnp.zeros(1, jnp.int32), first + step if first else 0
        (total, weight), kept = stages.work(key, state, data, ids, counted, at, stage)
        kept = None if own is None else jax.tree.map(lambda leaf: leaf[0], kept)
        return layouts.divide(total, weight), weight, kept

    def merge(state, ids, total, weight):
        if not hasattr(state, "own"):
            return stages.merge(state, ids, (total, weight), (), first)
        try:
            bare = state._replace(own=None)
            after, info = stages.merge(bare, ids, (total, weight), None, first)
        except AttributeError as error:  # While it is traced, of None.
            raise ValueError(
                "the server of this algorithm reads what clients keep, which never "
                "leaves them on real devices; take one such as FedPer or Atlas."
            ) from error
        return after._replace(own=state.own), info

    return Exchange(
        reply, merge, stages.direction, stages.max_weight, num, stages.is_valid
    )


def subtract_broadcast(state, sent):
    """``sent`` less what the server sent out, where it stands for the same things.

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
    """Of the server's state what clients get to see.

    That is not the server's optimizer, nor a running mean, nor what clients keep.

    Example:
      >>> from jaxanon.federated import State
      >>> broadcast_state(State(0, {"w": 1.0}, opt_state="momentum", hyper={}))
      State(round=0, params={'w': 1.0}, opt_state=None, hyper={}, average=None)
    """
    hidden = {"opt_state", "own", "average"} & set(state._fields)
    return state._replace(**dict.fromkeys(hidden))


def initial_own(state) -> Any:
    """What a client begins with, of the state that ``init`` made; None for nothing.

    Example:
      >>> from jaxanon.federated import PersonalState
      >>> initial_own(PersonalState(0, {}, {"w": jnp.zeros((3, 2))}, None, {}))
      {'w': Array([0., 0.], dtype=float32)}
    """
    if getattr(state, "own", None) is None:
        return None
    return jax.tree.map(lambda leaf: leaf[0], state.own)


def merge_messages(exchange: Exchange, state, ids, messages, weights):
    """The server's part of an exchange: the weighted sum, and what follows from it.

    Args:
      exchange: ``Exchange``.
      state: the server's.
      ids: ``int32[m]``, the cohort.
      messages: tree of arrays ``[m, ...]``, in its order.
      weights: ``float[m]``; 0 of those who sent nothing, or nothing good, whatever
        stands in their place.

    Returns:
      ``(state, info)``.

    Example:
      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedavg(lambda key: jnp.zeros(()), square, num_steps=1)
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


FACTOR = 10.0  # How many times the median norm of a round's messages one may have.

LEAST = 3  # Messages that have a median worth the name.


def pack(tree) -> dict[str, np.ndarray]:
    """A tree's arrays by the names of their places, on the host.

    Example:
      >>> pack({"w": np.zeros(2)})
      {"['w']": array([0., 0.])}
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def unpack(arrays: dict[str, np.ndarray], like):
    """The tree that ``pack`` took apart, if it is one like ``like`` and finite.

    Args:
      arrays: of ``pack``, from somebody who need not be trusted.
      like: a tree of arrays or ``jax.ShapeDtypeStruct``.

    Raises:
      ValueError: naming the array that is missing, nobody's, of another shape or type,
        or not finite.

    Example:
      >>> unpack({"['w']": np.ones(2)}, {"w": np.zeros(2)})
      {'w': array([1., 1.])}
    """
    leaves, treedef = jax.tree_util.tree_flatten_with_path(like)
    wanted = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
    missing, more = sorted(set(wanted) - set(arrays)), sorted(set(arrays) - set(wanted))
    if missing or more:
        raise ValueError(
            f"its arrays are others: {len(missing)} are missing {missing[:3]}, and "
            f"{len(more)} are nobody's {more[:3]}."
        )
    for name, leaf in wanted.items():
        found = arrays[name]
        if found.shape != leaf.shape or found.dtype != leaf.dtype:
            raise ValueError(
                f"{name} must be {leaf.dtype}{list(leaf.shape)}, got "
                f"{found.dtype}{list(found.shape)}."
            )
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError(f"{name} has numbers that are not finite.")
    return treedef.unflatten([arrays[name] for name in wanted])


def check_weight(weight: float, most: float) -> None:
    """Refuses what a client can't weigh.

    Raises:
      ValueError: unless ``weight`` is from 0 to ``most``, NaN included.

    Example:
      >>> check_weight(3.0, 5.0)
    """
    if not 0 <= weight <= most:
        raise ValueError(
            f"its weight must be from 0 to {most:g}, which the most rows that any "
            f"client may have allow, got {weight:g}."
        )


def norm(tree) -> float:
    """The Euclidean norm of all numbers of a tree together, in float64.

    Example:
      >>> norm({"w": np.array([3.0, 0.0]), "b": np.array(4.0)})
      5.0
    """
    squares = [np.sum(np.square(np.float64(leaf))) for leaf in jax.tree.leaves(tree)]
    return float(np.sqrt(sum(squares)))


def find_oversized(norms: dict[int, float], max_norm: float | None) -> dict[int, str]:
    """Whose messages are refused for their norms, and why.

    Args:
      norms: of each client's message.
      max_norm: the bound; None is ``FACTOR`` times the median of ``norms``, if there
        are ``LEAST`` of them or more, and the median is above 0.

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
    why = lambda found: f"its norm must be at most {bound:g}, got {found:g}."
    return {client: why(found) for client, found in norms.items() if not found <= bound}
