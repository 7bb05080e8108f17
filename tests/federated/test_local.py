"""Local descent visits real rows only, evenly, in the order it promises."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.federated import descend


def _visits(n, num_real, batch_size, num_steps, key=0, shuffle=True):
    """``float[steps, n]``: how much of each step's weight each row had."""

    def one_hot_loss(w, batch, key):
        # The gradient with respect to w is the mean one-hot row of the batch.
        return batch @ w

    rows = jnp.eye(n)

    def run(num_steps):
        w, _ = descend(
            one_hot_loss,
            jax.random.key(key),
            jnp.zeros(n),
            rows,
            jnp.arange(n) < num_real,
            step_size=1.0,
            num_steps=num_steps,
            batch_size=batch_size,
            shuffle=shuffle,
        )
        return -w

    totals = np.stack([np.zeros(n)] + [run(t + 1) for t in range(num_steps)])
    return np.diff(totals, axis=0)


def test_an_epoch_visits_every_real_row_once():
    visits = _visits(n=8, num_real=6, batch_size=2, num_steps=6)
    np.testing.assert_allclose(visits[:3].sum(axis=0), [0.5] * 6 + [0] * 2)
    np.testing.assert_allclose(visits[3:].sum(axis=0), [0.5] * 6 + [0] * 2)
    assert ((visits > 0).sum(axis=1) == 2).all()


def test_rows_as_they_stand():
    visits = _visits(n=5, num_real=4, batch_size=3, num_steps=2, shuffle=False)
    third = 1 / 3
    expected = [[third, third, third, 0, 0], [third, third, 0, third, 0]]
    np.testing.assert_allclose(visits, expected, atol=1e-6)


def test_fewer_rows_than_a_batch_are_all_taken():
    visits = _visits(n=8, num_real=2, batch_size=4, num_steps=2)
    np.testing.assert_allclose(visits, [[0.5, 0.5] + [0] * 6] * 2)


def test_orders_differ_between_keys():
    orders = {tuple(np.ravel(_visits(6, 6, 1, 2, key=k))) for k in range(4)}
    assert len(orders) > 1


def test_nothing_to_learn_from_leaves_params_alone():
    w, losses = descend(
        lambda w, x, key: w * x + 1,
        jax.random.key(0),
        jnp.float32(3),
        jnp.ones(4),
        jnp.zeros(4, bool),
        step_size=0.5,
        num_steps=3,
        batch_size=2,
    )
    assert w == 3 and not losses.any()


@pytest.mark.parametrize("unroll", [1, 2, 5])
def test_unrolling_changes_no_result(unroll):
    loss = lambda w, x, key: (jnp.sin(w) - x) ** 2 + jax.random.normal(key) * w
    rows, mask = jnp.arange(6.0) / 6, jnp.arange(6) < 5
    run = lambda unroll: descend(
        loss,
        jax.random.key(1),
        jnp.float32(0.3),
        rows,
        mask,
        step_size=0.1,
        num_steps=5,
        batch_size=2,
        unroll=unroll,
    )
    np.testing.assert_allclose(run(unroll)[0], run(1)[0], rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (3, 1), (2,)])
def test_a_loss_that_is_not_one_for_each_row_is_refused(shape):
    """Padding would be in a mean over all rows, and nobody would see it."""
    loss = lambda w, batch, key: w * jnp.ones(shape)
    with pytest.raises(ValueError, match=r"return float\[3\].*leave out the mean"):
        descend(
            loss, jax.random.key(0), jnp.ones(()), jnp.ones(3), jnp.arange(3) < 2,
            step_size=1.0, num_steps=1, batch_size=None,
        )  # fmt: skip
