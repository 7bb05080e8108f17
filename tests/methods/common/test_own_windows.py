"""Tests of draws from a client's own windows, in order or balanced by class."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import datasets
from jaxanon.methods.common import client_batches

LABELS = np.array([2, 0, 2, 2, 1, 2, 2, 2, 2, 2, 0, 2], np.int32)
MASK = np.array([True] * 10 + [False] * 2)


@pytest.fixture(scope="module")
def evenly():
    """``(rows, which count)`` of 500 draws of 8, twelve rows long or longer."""

    @jax.jit
    def draw(labels, mask):
        rows = client_batches.balanced(labels, mask, 4, 8)
        keys = jax.random.split(jax.random.key(0), 500)
        return jax.vmap(lambda key: rows(key, jnp.int32(0)))(keys)

    return lambda labels, mask: draw(jnp.asarray(labels), jnp.asarray(mask))


@pytest.mark.slow
def test_balanced_classes_are_equally_frequent_and_rows_within_them(evenly):
    index, real = evenly(LABELS, MASK)
    assert np.all(real)
    counts = np.bincount(np.ravel(index), minlength=12)
    assert not counts[10:].any()  # Padding is never drawn, even for a rare class.
    # One row of each of the classes 0 and 1, eight of class 2; class 3 has none.
    bound = 4.5 * np.sqrt(4000 / 3 * 2 / 3)
    of_class = np.bincount(LABELS[:10], counts[:10])
    np.testing.assert_allclose(of_class, [4000 / 3] * 3, atol=bound)
    own = counts[:10][LABELS[:10] == 2]
    assert len(own) == 8
    np.testing.assert_allclose(own, 4000 / 24, atol=4.5 * np.sqrt(4000 / 24))


@pytest.mark.slow
def test_balanced_draws_do_not_depend_on_padding(evenly):
    index, real = evenly(LABELS, MASK)
    longer = evenly(np.append(LABELS, [1, 1, 3, 0]), np.append(MASK, [False] * 4))
    np.testing.assert_array_equal(index, longer[0])
    np.testing.assert_array_equal(real, longer[1])


def test_no_more_rows_count_than_there_are(evenly):
    few = np.arange(12) < 3
    index, real = evenly(LABELS, few)
    assert np.all(np.asarray(index) < 3)
    np.testing.assert_array_equal(real, [[True] * 3 + [False] * 5] * 500)
    assert not np.any(evenly(LABELS, few & False)[1])


@jax.jit
def _visits(key, mask):
    rows = client_batches.in_turn(key, mask, 5)
    return jax.vmap(lambda step: rows(jax.random.key(9), step))(jnp.arange(4))


def test_in_turn_all_real_rows_come_before_one_comes_again():
    index, real = _visits(jax.random.key(0), jnp.asarray(MASK))
    assert np.all(real)
    for passing in np.split(np.ravel(index), 2):
        np.testing.assert_array_equal(np.sort(passing), np.arange(10))
    other, _ = _visits(jax.random.key(1), jnp.asarray(MASK))
    assert np.any(index != other)


def test_a_batch_has_the_rows_that_were_drawn(data):
    clients = datasets.by_client(data.train)
    held = client_batches.prepare_population(data.spec, clients)
    own = jax.tree.map(lambda leaf: leaf[3], held.rows)
    index, real = jnp.array([4, 4, 0]), jnp.array([True, True, False])
    batch = client_batches.batch_of(jax.random.key(0), data.spec, own, index, real, 7)
    mean, std = np.float32(data.spec.mean), np.float32(data.spec.std)
    windows = batch.windows * std[None, None] + mean[None, None]
    expected = clients.windows[3, np.asarray(index)]
    np.testing.assert_allclose(windows, expected, rtol=1e-4)
    activity = clients.labels["activity"][3, np.asarray(index)]
    np.testing.assert_array_equal(np.argmax(batch.public, 1), activity)
    np.testing.assert_array_equal(batch.private[0], [[0, 1]] * 3)
    np.testing.assert_array_equal(batch.weights, [1, 1, 0])
    assert batch.noise.shape == (3, 7) and np.all(batch.noise[0] != batch.noise[1])
