"""Local descent visits only real rows, equally often, in the documented order."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.federated import local_sgd
from jaxanon.federated.engine.local import visiting_order


@functools.partial(jax.jit, static_argnums=(1, 2, 3, 4, 5))
def _run(key, n, num_real, batch_size, num_steps, shuffle):
    """Runs steps that each write the mean one-hot row of their batch to one line."""

    def one_hot_loss(params, batch, key):
        line = params["line"].astype(int)
        return -(batch @ params["visits"][line])

    params, _ = local_sgd(
        one_hot_loss,
        key,
        {"visits": jnp.zeros((num_steps, n)), "line": jnp.zeros(())},
        jnp.eye(n),
        jnp.arange(n) < num_real,
        learning_rate=1.0,
        num_steps=num_steps,
        batch_size=batch_size,
        shuffle=shuffle,
        direction_fn=lambda params, grads: grads | {"line": -jnp.ones(())},
    )
    return params["visits"]


def _visits(n, num_real, batch_size, num_steps, key=0, shuffle=True):
    """Returns ``float[steps, n]``: the weight of each row in each step."""
    given = n, num_real, batch_size, num_steps, shuffle
    return np.asarray(_run(jax.random.key(key), *given))


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


def test_rows_may_be_numpy_s():
    rows, mask = np.arange(5.0, dtype=np.float32), np.ones(5, bool)
    run = lambda rows, mask: local_sgd(
        lambda w, x, key: 0.5 * (w - x) ** 2, jax.random.key(0), jnp.float32(0),
        rows, mask, learning_rate=0.5, num_steps=3, batch_size=2,
    )  # fmt: skip
    chex.assert_trees_all_close(run(rows, mask), run(jnp.array(rows), jnp.array(mask)))


def test_fewer_rows_than_a_batch_are_all_taken():
    visits = _visits(n=8, num_real=2, batch_size=4, num_steps=2)
    np.testing.assert_allclose(visits, [[0.5, 0.5] + [0] * 6] * 2)


def test_orders_differ_between_keys():
    orders = {tuple(np.ravel(_visits(6, 6, 1, 2, key=k))) for k in range(4)}
    assert len(orders) > 1


def test_nothing_to_learn_from_leaves_params_alone():
    w, losses = local_sgd(
        lambda w, x, key: w * x + 1,
        jax.random.key(0),
        jnp.float32(3),
        jnp.ones(4),
        jnp.zeros(4, bool),
        learning_rate=0.5,
        num_steps=3,
        batch_size=2,
    )
    assert w == 3 and not losses.any()


def test_unrolling_changes_no_result():
    loss = lambda w, x, key: (jnp.sin(w) - x) ** 2 + jax.random.normal(key) * w
    rows, mask = jnp.arange(6.0) / 6, jnp.arange(6) < 5
    run = lambda unroll: local_sgd(
        loss,
        jax.random.key(1),
        jnp.float32(0.3),
        rows,
        mask,
        learning_rate=0.1,
        num_steps=5,
        batch_size=2,
        unroll=unroll,
    )[0]
    one, two, five = jax.jit(lambda: [run(unroll) for unroll in (1, 2, 5)])()
    np.testing.assert_allclose([two, five], one, rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (3, 1), (2,)])
def test_a_loss_that_is_not_one_for_each_row_is_refused(shape):
    """A mean over all rows would silently include padding."""
    loss = lambda w, batch, key: w * jnp.ones(shape)
    with pytest.raises(ValueError, match=r"return float\[3\].*do not average"):
        local_sgd(
            loss, jax.random.key(0), jnp.ones(()), jnp.ones(3), jnp.arange(3) < 2,
            learning_rate=1.0, num_steps=1, batch_size=None,
        )  # fmt: skip


@pytest.mark.parametrize("shuffle", [False, True])
def test_where_padding_lies_changes_no_order(shuffle):
    """The order equals that of compacted rows, wherever the padding is."""
    order = lambda mask: visiting_order(jax.random.key(3), mask, shuffle)
    compact = order(jnp.arange(9) < 5)[:5]
    mask = jnp.zeros(12, bool).at[jnp.array([1, 2, 6, 8, 11])].set(True)
    real = jnp.flatnonzero(mask)
    np.testing.assert_array_equal(order(mask)[:5], real[compact])
    assert sorted(order(mask).tolist()) == list(range(12))
