"""What a server sees of layers sent apart, at random times, with the names off."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

HEADER_BYTES = 8  # Which layer it is, and its score.


class Arrivals(NamedTuple):
    """A round's messages of one layer, in the order in which they come."""

    slot: np.ndarray  # int[k], ascending
    layer: Any  # tree of arrays [k, ...]


def shuffled(key, sent: dict, senders: dict, num_slots: int):
    """A round's messages as they arrive: each layer by itself, in a slot at random.

    Every client draws a slot for every layer that it sends, and the channel takes the
    names off; messages of one slot come in random order. So whoever sees them does not
    know which layers are of one client, unless so few are sent that it is plain.

    That is all it does. What it hides in other ways (whose windows these are, when a
    client's layers look like those of its last round) stays as it was: see ``linked``.
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
      >>> arrivals, whose = shuffled(jax.random.key(0), sent, senders, num_slots=8)
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


def aggregated(params: dict, arrivals: dict) -> dict:
    """What the server makes of messages: their mean by layer, equation 3.10.

    Nobody's name is needed for it, and the order changes nothing but rounding.

    Args:
      params: dict of layers as they were; those that nobody sent stay.
      arrivals: of ``shuffled``.

    Example:
      >>> arrivals = {"a": Arrivals(np.array([0, 2]), jnp.array([1.0, 3.0]))}
      >>> aggregated({"a": jnp.array(9.0), "b": jnp.array(7.0)}, arrivals)["a"]
      Array(2., dtype=float32)
    """
    mean = lambda old, leaf: jnp.mean(leaf, axis=0).astype(old.dtype)
    found = {
        name: jax.tree.map(mean, params[name], got.layer)
        for name, got in arrivals.items()
    }
    return params | found


def num_bytes(arrivals: dict) -> int:
    """Bytes of all messages: numbers, and of each which layer it is and its score.

    Args:
      arrivals: of ``shuffled``.

    Example:
      >>> num_bytes({"a": Arrivals(np.array([0, 2]), jnp.zeros((2, 5)))})
      56
    """
    total = 0
    for got in arrivals.values():
        total += HEADER_BYTES * len(got.slot)
        total += sum(leaf.nbytes for leaf in jax.tree.leaves(got.layer))
    return total


def linked(earlier, later, before, after) -> np.ndarray:
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
      >>> linked(first, then, jnp.zeros(2), jnp.zeros(2)).tolist()
      [1, 0]
    """
    alike = _directions(later, after) @ _directions(earlier, before).T
    found = np.full(len(alike), -1)
    for _ in range(min(alike.shape)):
        row, column = np.unravel_index(np.argmax(alike), alike.shape)
        found[row] = column
        alike[row], alike[:, column] = -np.inf, -np.inf
    return found


def _directions(arrivals, sent_out):
    """``float[k, n]``: where each message went from what was sent out, of length 1."""
    moves = jax.tree.map(lambda leaf, old: leaf - old[None], arrivals.layer, sent_out)
    leaves = [np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(moves)]
    rows = np.concatenate(leaves, axis=1, dtype=np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
