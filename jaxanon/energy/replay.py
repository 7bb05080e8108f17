"""The last things that happened to an agent, of which it learns at random."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Transition(NamedTuple):
    """One step of an environment, or a batch of them."""

    observation: jax.Array  # float[..., observed]
    action: jax.Array  # int32[...]
    reward: jax.Array  # float32[...]
    following: jax.Array  # float[..., observed]; what was seen after it
    ended: jax.Array  # bool[...]; nothing comes after it


class Replay(NamedTuple):
    """A ring of transitions."""

    kept: Transition  # [capacity, ...]
    count: jax.Array  # int32[]; ever stored


def blank(capacity: int, num_observed: int) -> Replay:
    """A replay memory with nothing in it.

    Args:
      capacity: transitions that it holds.
      num_observed: numbers of an observation.

    Example:
      >>> blank(4, 2).kept.observation.shape
      (4, 2)
    """
    seen = jnp.zeros((capacity, num_observed))
    numbers = jnp.zeros(capacity, jnp.int32), jnp.zeros(capacity)
    kept = Transition(seen, *numbers, seen, jnp.zeros(capacity, bool))
    return Replay(kept, jnp.zeros((), jnp.int32))


def store(replay: Replay, new: Transition) -> Replay:
    """Puts transitions in the place of the oldest.

    Args:
      replay: of ``capacity`` places.
      new: ``[n, ...]``, in order, n at most the capacity.

    Example:
      >>> one = Transition(jnp.ones((1, 2)), jnp.array([1]), jnp.ones(1),
      ...                  jnp.ones((1, 2)), jnp.array([False]))
      >>> store(blank(4, 2), one).kept.action
      Array([1, 0, 0, 0], dtype=int32)
    """
    number, capacity = len(new.action), len(replay.kept.action)
    # int32 wraps after 2**31 transitions: 4,000 years of minutes.
    places = (replay.count + jnp.arange(number)) % capacity
    put = lambda old, now: old.at[places].set(now.astype(old.dtype))
    return Replay(jax.tree.map(put, replay.kept, new), replay.count + number)


def draw(key, replay: Replay, number: int) -> Transition:
    """Transitions drawn evenly, with replacement, among those that are there.

    Args:
      key: typed PRNG key.
      replay: with one at least; else blanks are drawn.
      number: how many.

    Example:
      >>> draw(jax.random.key(0), blank(4, 2), 3).action
      Array([0, 0, 0], dtype=int32)
    """
    filled = jnp.minimum(replay.count, len(replay.kept.action))
    places = jax.random.randint(key, (number,), 0, jnp.maximum(filled, 1))
    return jax.tree.map(lambda leaf: leaf[places], replay.kept)
