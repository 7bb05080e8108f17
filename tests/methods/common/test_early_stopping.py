"""Tests of the early-stopping loop, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon.methods.common import early_stopping


def _turns(losses, length):
    """Returns the steps taken on scripted losses, and the final state."""

    def step(seen, loss):
        given = (lambda: (loss, jnp.float32(1)), jnp.float32(0))
        paid, taken, seen = early_stopping.unless_enough(seen, length, *given)
        return seen, (paid, taken)

    losses = jnp.asarray(losses, jnp.float32)
    seen, (paid, taken) = jax.jit(jax.lax.scan, static_argnums=0)(
        step, early_stopping.watch(), losses
    )
    np.testing.assert_array_equal(paid, jnp.where(taken == 1, losses, 0))
    return np.flatnonzero(np.asarray(taken)).tolist(), seen


def test_stops_after_more_than_20_steps_the_last_20_low():
    # A tenth of the first loss, 1.0, is the bound; the first step is never low.
    taken, seen = _turns([1.0] + [0.05] * 49, 50)
    assert taken == list(range(21))
    assert (int(seen.steps), float(seen.first)) == (0, 1.0)  # The turn is over.


def test_one_loss_that_is_not_low_starts_the_count_anew():
    losses = [1.0] + [0.05] * 10 + [0.2] + [0.05] * 38
    taken, _ = _turns(losses, 50)
    assert taken == list(range(12 + 20))


def test_at_the_bound_is_not_below_it():
    taken, _ = _turns([1.0] + [0.11] * 49, 50)
    assert taken == list(range(50))


def test_the_next_turn_begins_anew_but_for_the_first_loss_ever():
    # Turns have 30 steps; the second is low from its start and still takes 21.
    taken, seen = _turns([1.0] + [0.05] * 59, 30)
    assert taken == [*range(21), *range(30, 51)]
    assert float(seen.first) == 1.0
    assert float(seen.last) == np.float32(0.05)


def test_nothing_is_learned_after_the_end():
    adam = early_stopping.at_rest(optax.scale_by_adam())
    params = {"a": jnp.ones(2), "b": jnp.zeros(1)}
    state = adam.init(params)
    _, state = adam.update({"a": jnp.ones(2), "b": jnp.zeros(1)}, state)
    assert int(state.count) == 1  # One nonzero gradient updates all leaves.
    steps, after = jax.jit(adam.update)(jax.tree.map(jnp.zeros_like, params), state)
    # Plain Adam would move, because of its momentum.
    assert all(not leaf.any() for leaf in jax.tree.leaves(steps))
    for one, two in zip(jax.tree.leaves(state), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("over", [False, True])
def test_the_gradient_is_exactly_nothing_where_the_turn_is_over(over):
    steps = jnp.int32(25 if over else 0)
    seen = early_stopping.watch()._replace(steps=steps, low=jnp.int32(20))

    def loss(x):
        return early_stopping.unless_enough(seen, 50, lambda: (x**2, 1.0), 0.0)[0]

    assert jax.jit(jax.grad(loss))(jnp.float32(3.0)) == (0 if over else 6)
