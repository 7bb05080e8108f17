"""What a server sees of layers sent apart, at random times, with the names off."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine import layout

_CHANNEL = 0x51075  # Folded into a round's key: the channel's own.


class Arrivals(NamedTuple):
    """A round's messages of one layer, in the order in which they come."""

    slot: np.ndarray  # int[k], ascending
    layer: Any  # tree of arrays [k, ...]


def shuffle_messages(key, sent: dict, senders: dict, num_slots: int):
    """A round's messages as they arrive: each layer by itself, in a slot at random.

    Every client draws a slot for every layer that it sends, and the channel takes the
    names off; messages of one slot come in random order. So whoever sees them does not
    know which layers are of one client, unless so few are sent that it is plain.

    That is all it does. What it hides in other ways (whose windows these are, when a
    client's layers look like those of its last round) stays as it was: see ``link_messages``.
    ε is that of the noise, and no less for the shuffle, which no ledger here counts on:
    the bounds for shuffled messages are of randomisers that are all alike and see
    one message of each, and here clients' differ in what they send and come back every
    round.

    Args:
      key: typed PRNG key, another one for each round.
      sent: dict of layers, each a tree of arrays ``[clients, ...]``.
      senders: dict of ``bool[clients]``, who sends a layer.
      num_slots: T >= 1.

    Returns:
      Dict of ``Arrivals``, of layers that anyone sent, and a dict of ``int[k]``: whose
      each of them is, which the server does not see and who grades guesses has to know.

    Raises:
      ValueError: for ``num_slots`` below 1, or other layers in ``senders``.

    Example:
      >>> sent = {"a": jnp.array([1.0, 2.0, 3.0]), "b": jnp.array([4.0, 5.0, 6.0])}
      >>> senders = {"a": np.array([1, 0, 1], bool), "b": np.zeros(3, bool)}
      >>> arrivals, whose = shuffle_messages(jax.random.key(0), sent, senders, num_slots=8)
      >>> sorted(arrivals), sorted(arrivals["a"].layer.tolist()), sum(whose["a"])
      (['a'], [1.0, 3.0], np.int64(2))

    References:
      Atlas, section 3.3.3 and figure 3.6; Sun, Qian and Chen, LDP-FL, arXiv 2007.15789,
      for parameters that are split and shuffled; Feldman, McMillan and Talwar, Hiding
      among the clones, FOCS 2021, for what a shuffle is worth where it is worth any.
    """
    if num_slots < 1:
        raise ValueError(f"num_slots must be >= 1, got {num_slots!r}.")
    if set(sent) != set(senders):
        raise ValueError(
            f"senders must be of the layers {sorted(sent)}, got {sorted(senders)}."
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
    """What the server has of a round whose layers came shuffled, and whose they are."""

    before: dict  # layers as it sent them out
    arrivals: dict  # of ``shuffle_messages``
    whose: dict  # int[k] by layer, which it does not see


def simulate_observed_shuffled(
    algorithm, key, state, clients, num_rounds: int, num_slots: int
):
    """Runs rounds of Atlas and keeps how their layers arrived.

    As ``jaxanon.federated.simulate_observed``, of a server that gets every layer by
    itself.

    Args:
      algorithm: of ``atlas``.
      key: the run's key.
      state: from ``algorithm.init``, or of later rounds.
      clients: ``Population``.
      num_rounds: >= 1.
      num_slots: see ``shuffle_messages``.

    Returns:
      The state after the rounds, and a list of ``Round``.

    Raises:
      ValueError: for ``num_rounds`` below 1, for clients that do not send layers, and
        as ``shuffle_messages``.

    Example:
      >>> from jaxanon import federated as fed
      >>> loss = lambda p, x, key: 0.5 * (p["w"] - x) ** 2
      >>> algorithm = fed.atlas(
      ...     lambda key: {"w": jnp.zeros(())}, loss, fed.Steps(num_steps=1),
      ...     num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
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
            raise ValueError("algorithm must send layers and which they are, as atlas.")
        sent, flags = message
        senders = {name: np.asarray(x * weight) > 0 for name, x in flags.items()}
        # Another stream than the clients', whose keys are split from the round's.
        own_key = jax.random.fold_in(jax.random.fold_in(key, state.round), _CHANNEL)
        arrivals, whose = shuffle_messages(own_key, sent, senders, num_slots)
        found.append(Round(state.params, arrivals, whose))
        state = after
    return state, found


@functools.partial(jax.jit, static_argnums=0)
def _round_of(algorithm, key, state, clients):
    """What every client sends in a round, and the state after it."""
    one = lambda client: algorithm.message(key, state, clients, client)
    told = jax.lax.map(one, jnp.arange(len(clients.mask)))
    return told, algorithm.update(key, state, clients)[0]


def aggregate_arrivals(params: dict, arrivals: dict) -> dict:
    """What the server makes of messages: their mean by layer, equation 3.10.

    Nobody's name is needed for it, and the order changes nothing but rounding.

    Args:
      params: dict of layers as they were; those that nobody sent stay.
      arrivals: of ``shuffle_messages``.

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
    """Bytes of all messages: numbers, and of each which layer it is.

    No score is among them: the server needs none, and could know clients again by it.

    Args:
      arrivals: of ``shuffle_messages``.

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
    """Which earlier message of a layer each later one is guessed to continue.

    A curious server knows what it sent out and compares directions: a client's own data
    pull the same way again. Of all pairs the most alike are taken first, each message
    once; what is left over when one round has more is nobody's.

    Args:
      earlier, later: ``Arrivals`` of one layer in two rounds.
      before, after: that layer as the server sent it out for each of them.

    Returns:
      ``int[k]``, for each later message the place of one among the earlier, -1 for
      none.

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
    """The share of a round's messages that ``link_messages`` puts to the right client.

    Of messages of layers that came in both rounds from clients that sent them in both.

    Args:
      earlier, later: of ``simulate_observed_shuffled``.

    Returns:
      That share, and the one that guessing has on average; NaN where there are none.

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
        told = np.where(guess >= 0, earlier.whose[name][guess], -1)
        both = np.isin(later.whose[name], earlier.whose[name])
        right.extend((told == later.whose[name])[both])
        most = max(len(arrivals.slot) for arrivals in pair)
        guessed.extend(np.full(int(both.sum()), 1 / most))
    if not right:
        return float("nan"), float("nan")
    return float(np.mean(right)), float(np.mean(guessed))


def _directions(arrivals, sent_out):
    """``float[k, n]``: where each message went from what was sent out, of length 1."""
    moves = jax.tree.map(lambda leaf, old: leaf - old[None], arrivals.layer, sent_out)
    leaves = [np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(moves)]
    rows = np.concatenate(leaves, axis=1, dtype=np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
