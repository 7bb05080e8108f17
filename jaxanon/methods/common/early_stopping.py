"""A loop of training steps that stops early, inside a fixed number of them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

LEAST = 20  # Steps before a loop may stop, and losses that must be low in a row.

SHARE = 0.1  # Of the first loss ever; what is below it is low.


class EarlyStoppingState(NamedTuple):
    """What is known of a loop; ``int32[]`` and ``float32[]``."""

    steps: jax.Array  # done or skipped in this turn
    low: jax.Array  # losses in a row that were, up to now
    first: jax.Array  # loss ever; negative before it
    last: jax.Array  # loss


def watch() -> EarlyStoppingState:
    """Of a loop that has not begun."""
    zero = jnp.zeros((), jnp.int32)
    return EarlyStoppingState(zero, zero, jnp.float32(-1), jnp.float32(0))


def enough(seen: EarlyStoppingState) -> jax.Array:
    """``bool[]``, whether the turn is over: more than 20 steps, the last 20 low."""
    return (seen.steps > LEAST) & (seen.low >= LEAST)


def unless_enough(seen: EarlyStoppingState, length: int, loss_fn, rest):
    """A loss, or none and nothing computed where the turn is over.

    Args:
      seen: of the loop so far.
      length: steps of a turn at most; the next one begins after as many.
      loss_fn: ``() -> (loss, kept)``, the loss not negative.
      rest: what to keep where there is no loss.

    Returns:
      ``(loss, kept, EarlyStoppingState)``; the loss, and so every gradient of it, is
      exactly 0 where the turn is over.
    """
    over = enough(seen)
    nothing = lambda: (jnp.zeros(()), rest)
    loss, kept = jax.lax.cond(over, nothing, loss_fn)
    last = jnp.where(over, seen.last, jax.lax.stop_gradient(loss))
    first = jnp.where(seen.first < 0, last, seen.first)
    low = jnp.where(last < SHARE * first, seen.low + 1, 0)
    return loss, kept, EarlyStoppingState((seen.steps + 1) % length, low, first, last)


def at_rest(optimizer) -> optax.GradientTransformation:
    """The optimizer, but a gradient of nothing but zeros moves and changes nothing.

    Example:
      >>> adam = at_rest(optax.scale_by_adam())
      >>> state = adam.init(jnp.float32(0.0))
      >>> _, after = adam.update(jnp.float32(0.0), state)
      >>> int(after.count), int(adam.update(jnp.float32(1.0), state)[1].count)
      (0, 1)
    """

    def update(updates, state, params=None):
        moved = [jnp.any(leaf != 0) for leaf in jax.tree.leaves(updates)]
        rest = lambda: (jax.tree.map(jnp.zeros_like, updates), state)
        step = lambda: optimizer.update(updates, state, params)
        return jax.lax.cond(jnp.any(jnp.stack(moved)), step, rest)

    return optax.GradientTransformation(optimizer.init, update)


class Patience(NamedTuple):
    """What is known of a loss that should fall, looked at from time to time."""

    best: jax.Array  # float32[]; the lowest so far, negative before the first
    waited: jax.Array  # int32[]; looks since then


def patience() -> Patience:
    """Of a loss that nobody has looked at."""
    return Patience(jnp.float32(-1), jnp.zeros((), jnp.int32))


def look(seen: Patience, loss) -> tuple[Patience, jax.Array]:
    """One more look at it.

    Args:
      seen: of the looks so far.
      loss: ``float[]``, not negative.

    Returns:
      ``Patience``, and ``bool[]``: whether the loss is the lowest so far.

    Example:
      >>> seen, better = look(patience(), 2.0)
      >>> bool(better), float(seen.best)
      (True, 2.0)
      >>> seen, better = look(seen, 2.0)
      >>> bool(better), int(seen.waited)
      (False, 1)
    """
    better = (seen.best < 0) | (loss < seen.best)
    best = jnp.where(better, jnp.asarray(loss, jnp.float32), seen.best)
    return Patience(best, jnp.where(better, 0, seen.waited + 1)), better
