"""Shuffled messages: layers sent separately and anonymously at random times."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine import layout

_CHANNEL = 0x51075  # Folded into a round's key for the channel.


class Arrivals(NamedTuple):
    """Messages of one layer in a round, in order of arrival."""

    slot: np.ndarray  # int[k], ascending
    layer: Any  # tree of arrays [k, ...]


def shuffle_messages(key, sent: dict, senders: dict, num_slots: int):
    """Shuffles a round's messages: each layer arrives separately in a random slot.

    Every client draws a slot for every layer that it sends, and the channel removes the
    sender. Messages within a slot are in random order. An observer therefore cannot see
    which layers belong to one client, unless very few are sent.

    Shuffling gives no further protection: messages of one client may still be linked
    between rounds (see ``link_messages``). Accounting uses ε of the noise only and does
    not rely on amplification by shuffling. Known bounds assume identical randomisers
    with one message each, but clients here send different layers in every round.

    Args:
      key: typed PRNG key, different for each round.
      sent: dict of layers, each a tree of arrays ``[clients, ...]``.
      senders: dict of ``bool[clients]``, True if a client sends the layer.
      num_slots: T >= 1.

    Returns:
      Dict of ``Arrivals`` for layers with at least one sender, and a dict of
      ``int[k]``, the senders of the messages. The server does not see the senders; they
      are needed to evaluate attacks.

    Raises:
      ValueError: for ``num_slots`` below 1, or other layers in ``senders``.

    Example:
      >>> sent = {"a": jnp.array([1.0, 2.0, 3.0]), "b": jnp.array([4.0, 5.0, 6.0])}
      >>> senders = {"a": np.array([1, 0, 1], bool), "b": np.zeros(3, bool)}
      >>> arrivals, whose = shuffle_messages(
      ...     jax.random.key(0), sent, senders, num_slots=8)
      >>> sorted(arrivals), sorted(arrivals["a"].layer.tolist()), sum(whose["a"])
      (['a'], [1.0, 3.0], np.int64(2))

    References:
      Atlas, section 3.3.3 and figure 3.6; Sun, Qian and Chen, LDP-FL, arXiv 2007.15789,
      for split and shuffled parameters; Feldman, McMillan and Talwar, Hiding among the
      clones, FOCS 2021, for amplification by shuffling.
    """
    if num_slots < 1:
        raise ValueError(f"num_slots must be >= 1, got {num_slots!r}.")
    if set(sent) != set(senders):
        raise ValueError(
            f"senders must have the layers {sorted(sent)}, got {sorted(senders)}."
        )
    arrivals, whose = {}, {}
    for number, name in enumerate(sorted(sent)):
        ids = np.flatnonzero(np.asarray(senders[name]))
        if not len(ids):
            continue
        slot_key, tie_key = jax.random.split(jax.random.fold_in(key, number))
        slots = jax.random.randint(slot_key, (len(ids),), 0, num_slots)
        order = jnp.lexsort((jax.random.uniform(tie_key, (len(ids),)), slots))
        ids = ids[np.asarray(order)]
        take = lambda leaf, ids=ids: leaf[ids]
        layer = jax.tree.map(take, sent[name])
        arrivals[name] = Arrivals(np.asarray(slots[order]), layer)
        whose[name] = ids
    return arrivals, whose


class Round(NamedTuple):
    """The server's view of a round with shuffled layers, and the true senders."""

    before: dict  # layers as broadcast by the server
    arrivals: dict  # from ``shuffle_messages``
    whose: dict  # int[k] by layer, senders hidden from the server


def simulate_observed_shuffled(
    algorithm, key, state, clients, num_rounds: int, num_slots: int
):
    """Runs rounds of Atlas and records the arrivals of shuffled layers.

    It is ``jaxanon.federated.simulate_observed`` for a server that receives every layer
    separately.

    Args:
      algorithm: result of ``atlas``.
      key: typed PRNG key of the run.
      state: state from ``algorithm.init`` or from later rounds.
      clients: ``Population``.
      num_rounds: number of rounds >= 1.
      num_slots: see ``shuffle_messages``.

    Returns:
      The state after the rounds, and a list of ``Round``.

    Raises:
      ValueError: for ``num_rounds`` below 1, or an algorithm that does not send layers;
        also the conditions of ``shuffle_messages``.

    Example:
      >>> from jaxanon import federated as fed
      >>> loss = lambda p, x, key: 0.5 * (p["w"] - x) ** 2
      >>> algorithm = fed.atlas(
      ...     lambda key: {"w": jnp.zeros(())}, loss, steps=fed.Steps(num_steps=1),
      ...     num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = fed.stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, rounds = simulate_observed_shuffled(
      ...     algorithm, jax.random.key(1), state, clients, 1, num_slots=9)
      >>> sorted(rounds[0].arrivals["w"].layer.tolist()), state.params["w"]
      ([0.0, 2.0], Array(1., dtype=float32))
    """
    if num_rounds < 1:
        raise ValueError(f"num_rounds must be >= 1, got {num_rounds!r}.")

    found = []
    for _ in range(num_rounds):
        (message, weight), after = _round_of(algorithm, key, state, clients)
        if not (isinstance(message, tuple) and len(message) == 2):
            raise ValueError(
                "algorithm must send layers with flags, got another message; use atlas."
            )
        sent, flags = message
        senders = {name: np.asarray(x * weight) > 0 for name, x in flags.items()}
        # Independent of the clients' keys, which are split from the round's key.
        own_key = jax.random.fold_in(jax.random.fold_in(key, state.round), _CHANNEL)
        arrivals, whose = shuffle_messages(own_key, sent, senders, num_slots)
        found.append(Round(state.params, arrivals, whose))
        state = after
    return state, found


@functools.partial(jax.jit, static_argnums=0)
def _round_of(algorithm, key, state, clients):
    """Returns the messages of all clients in a round, and the state after it."""
    one = lambda client: algorithm.message(key, state, clients, client)
    messages = jax.lax.map(one, jnp.arange(len(clients.mask)))
    return messages, algorithm.update(key, state, clients)[0]


def aggregate_arrivals(params: dict, arrivals: dict) -> dict:
    """Averages messages per layer on the server, equation 3.10.

    It does not use the senders, and the order of messages affects only rounding.

    Args:
      params: dict of previous layers, which are kept if no client sends them.
      arrivals: result of ``shuffle_messages``.

    Example:
      >>> arrivals = {"a": Arrivals(np.array([0, 2]), jnp.array([1.0, 3.0]))}
      >>> aggregate_arrivals({"a": jnp.array(9.0), "b": jnp.array(7.0)}, arrivals)["a"]
      Array(2., dtype=float32)
    """
    mean = lambda old, leaf: jnp.mean(leaf, axis=0).astype(old.dtype)
    found = {
        name: jax.tree.map(mean, params[name], got.layer)
        for name, got in arrivals.items()
    }
    return params | found


def num_bytes(arrivals: dict) -> int:
    """Returns the bytes of all messages: numbers and the identifier of the layer.

    Scores are not sent: the server does not need them and could recognise clients.

    Args:
      arrivals: result of ``shuffle_messages``.

    Example:
      >>> num_bytes({"a": Arrivals(np.array([0, 2]), jnp.zeros((2, 5)))})
      48
    """
    total = 0
    for got in arrivals.values():
        total += layout.HEADER_BYTES * len(got.slot)
        total += sum(leaf.nbytes for leaf in jax.tree.leaves(got.layer))
    return total


def link_messages(earlier, later, before, after) -> np.ndarray:
    """Links each later message of a layer to an earlier one, as a curious server.

    The server compares directions relative to its broadcasts, because a client's data
    change the layer in similar directions in each round. The most similar pairs are
    linked first, each message once. Surplus messages stay unlinked.

    Args:
      earlier, later: ``Arrivals`` of one layer in two rounds.
      before, after: the layer as broadcast by the server in each of the rounds.

    Returns:
      ``int[k]``, for each later message the index of an earlier one, or -1.

    Example:
      >>> first = Arrivals(np.array([0, 1]), jnp.array([[1.0, 0.0], [0.0, 1.0]]))
      >>> then = Arrivals(np.array([0, 3]), jnp.array([[0.1, 3.0], [4.0, 0.0]]))
      >>> link_messages(first, then, jnp.zeros(2), jnp.zeros(2)).tolist()
      [1, 0]
    """
    alike = _directions(later, after) @ _directions(earlier, before).T
    found = np.full(len(alike), -1)
    for _ in range(min(alike.shape)):
        row, column = np.unravel_index(np.argmax(alike), alike.shape)
        found[row] = column
        alike[row], alike[:, column] = -np.inf, -np.inf
    return found


def share_linked(earlier: Round, later: Round) -> tuple[float, float]:
    """Returns the fraction of messages that ``link_messages`` links correctly.

    It counts messages of clients that sent the layer in both rounds.

    Args:
      earlier, later: rounds from ``simulate_observed_shuffled``.

    Returns:
      The fraction and its chance level; NaN without such messages.

    Example:
      >>> rows, ids = jnp.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 1])
      >>> came = Round(
      ...     {"a": jnp.zeros(2)}, {"a": Arrivals(ids, rows)}, {"a": ids})
      >>> share_linked(came, came)
      (1.0, 0.5)
    """
    right, guessed = [], []
    for name in sorted(set(earlier.arrivals) & set(later.arrivals)):
        before, after = earlier.before[name], later.before[name]
        pair = earlier.arrivals[name], later.arrivals[name]
        guess = link_messages(*pair, before, after)
        sender = np.where(guess >= 0, earlier.whose[name][guess], -1)
        both = np.isin(later.whose[name], earlier.whose[name])
        right.extend((sender == later.whose[name])[both])
        num_messages = max(len(arrivals.slot) for arrivals in pair)
        guessed.extend(np.full(int(both.sum()), 1 / num_messages))
    if not right:
        return float("nan"), float("nan")
    return float(np.mean(right)), float(np.mean(guessed))


def _directions(arrivals, sent_out):
    """Returns ``float[k, n]``, normalised changes of messages since the broadcast."""
    moves = jax.tree.map(lambda leaf, old: leaf - old[None], arrivals.layer, sent_out)
    leaves = [np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(moves)]
    rows = np.concatenate(leaves, axis=1, dtype=np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
