"""Early stopping inside a loop with a fixed number of training steps."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

LEAST = 20  # Minimum number of steps, and of consecutive low losses, to stop.

SHARE = 0.1  # A loss below this fraction of the first loss is low.


class EarlyStoppingState(NamedTuple):
    """State of the early stopping of a loop."""

    steps: jax.Array  # int32[]; steps done or skipped in this turn
    low: jax.Array  # int32[]; consecutive low losses
    first: jax.Array  # float32[]; first loss, negative before it is known
    last: jax.Array  # float32[]; last loss


def watch() -> EarlyStoppingState:
    """Returns the initial early-stopping state."""
    zero = jnp.zeros((), jnp.int32)
    return EarlyStoppingState(zero, zero, jnp.float32(-1), jnp.float32(0))


def enough(seen: EarlyStoppingState) -> jax.Array:
    """Returns whether the turn is over: more than 20 steps, and the last 20 low."""
    return (seen.steps > LEAST) & (seen.low >= LEAST)


def unless_enough(seen: EarlyStoppingState, length: int, loss_fn, rest):
    """Computes a loss unless the turn is over.

    Args:
      seen: early-stopping state.
      length: number of steps in a turn, including skipped ones.
      loss_fn: ``() -> (loss, aux)``, with a loss >= 0.
      rest: ``aux`` to return when the turn is over.

    Returns:
      ``(loss, aux, EarlyStoppingState)``. If the turn is over, the loss and its
      gradients are exactly 0.
    """
    over = enough(seen)
    nothing = lambda: (jnp.zeros(()), rest)
    loss, aux = jax.lax.cond(over, nothing, loss_fn)
    last = jnp.where(over, seen.last, jax.lax.stop_gradient(loss))
    first = jnp.where(seen.first < 0, last, seen.first)
    low = jnp.where(last < SHARE * first, seen.low + 1, 0)
    return loss, aux, EarlyStoppingState((seen.steps + 1) % length, low, first, last)


def at_rest(optimizer) -> optax.GradientTransformation:
    """Wraps an optimizer so that all-zero gradients change neither state nor params.

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
    """State of a patience counter for a loss that is checked periodically."""

    best: jax.Array  # float32[]; lowest loss so far, negative before the first check
    waited: jax.Array  # int32[]; checks since then


def patience() -> Patience:
    """Returns the initial patience state."""
    return Patience(jnp.float32(-1), jnp.zeros((), jnp.int32))


def look(seen: Patience, loss) -> tuple[Patience, jax.Array]:
    """Updates the patience state with a new loss.

    Args:
      seen: patience state.
      loss: ``float[]``, >= 0.

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
