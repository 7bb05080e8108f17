"""Tests class means against NumPy, and when they are recomputed."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.methods.common.pool import Pool
from jaxanon.methods.obscurenet import class_means


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(class_means, "CHUNK", 7)


def _pool(windows, labels):
    """A pool of windows ``float[n, 1, 1]``, sorted by activity as ``pool`` does."""
    order = np.argsort(labels["activity"], kind="stable")
    counts = np.bincount(labels["activity"], minlength=3)
    ints = lambda x: jnp.asarray(x, jnp.int32)
    return Pool(
        jnp.asarray(windows, jnp.float32)[:, None, None],
        {name: ints(each) for name, each in labels.items()},
        *map(ints, (order, np.cumsum(counts) - counts, counts)),
    )


def _labels(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return {"activity": rng.integers(0, 3, n), "gender": rng.integers(0, 2, n)}


def _encode(windows):
    x = windows[:, 0]
    return jnp.concatenate([x, x**2, jnp.ones_like(x)], axis=1)


def test_differences_are_those_of_class_means(data):
    labels = _labels()
    x = np.random.default_rng(1).normal(size=60) + labels["gender"]
    seen = _pool(x, labels)
    z = np.stack([x, x**2, np.ones(60)], axis=1)
    whole = class_means.offsets(
        _encode, data.spec, seen, 0, jnp.int32(60), split_public=True
    )
    assert whole.shape == (3, 2, 3)
    for activity in range(3):
        own = labels["activity"] == activity
        means = [z[own & (labels["gender"] == g)].mean(0) for g in (0, 1)]
        # A model of one activity has only windows of that activity.
        start, count = seen.starts[activity], seen.counts[activity]
        alone = class_means.offsets(
            _encode, data.spec, seen, start, count, split_public=False
        )
        for found in (whole[activity], alone[0]):
            np.testing.assert_allclose(
                found + z[own].mean(0)[None], means, rtol=1e-4, atol=1e-5
            )


def test_a_class_without_windows_lies_at_the_mean(data):
    labels = _labels()
    labels["gender"][labels["activity"] == 1] = 0
    x = np.random.default_rng(1).normal(size=60)
    found = class_means.offsets(
        _encode, data.spec, _pool(x, labels), 0, jnp.int32(60), split_public=True
    )
    np.testing.assert_allclose(found[1, 1], 0, atol=1e-6)
    np.testing.assert_allclose(
        found[1, 0], 0, atol=1e-6
    )  # All windows have this class.


def test_attributes_that_go_together_are_told_apart(data):
    """Two additive attributes that agree in 9 of 10 windows."""
    spec = dataclasses.replace(data.spec, private=("gender", "subject"))
    rng = np.random.default_rng(2)
    labels = _labels(400)
    agree = rng.random(400) < 0.9
    labels["subject"] = np.where(agree, labels["gender"], rng.integers(0, 5, 400))
    of_gender, of_subject = np.array([0.0, 2.0]), np.array([0.0, 5.0, -3.0, 7.0, 1.0])
    x = of_gender[labels["gender"]] + of_subject[labels["subject"]] + labels["activity"]
    seen = _pool(x, labels)
    encode = lambda windows: windows[:, 0]
    found = class_means.offsets(
        encode, spec, seen, 0, jnp.int32(400), split_public=True
    )
    now = {"gender": jnp.array([0, 1]), "subject": jnp.array([1, 4])}
    then = {"gender": jnp.array([1, 1]), "subject": jnp.array([3, 0])}
    move = class_means.transfer(spec, found, jnp.array([0, 2]), now, then)
    np.testing.assert_allclose(move[:, 0], [2 + 7 - 5, 0 - 1], atol=1e-3)
    # Separate means per attribute would count both effects twice.
    one, other = (x[labels["gender"] == g].mean() for g in (0, 1))
    assert other - one > 4


def test_a_row_is_the_predicted_public_class(data):
    found = jnp.arange(12.0).reshape(3, 2, 2)
    now, then = {"gender": jnp.array([0, 1])}, {"gender": jnp.array([1, 1])}
    rows = jnp.array([2, 0])
    move = class_means.transfer(data.spec, found, rows, now, then)
    np.testing.assert_array_equal(move, [[2, 2], [0, 0]])


def test_renewed_at_the_end_of_epochs_alone():
    renew = lambda number: class_means.at_epoch_end(
        number, jnp.int32(3), lambda: jnp.float32(number), jnp.float32(-1)
    )
    found = [float(renew(jnp.int32(number))) for number in range(7)]
    assert found == [-1, -1, 2, -1, -1, 5, -1]


def test_runs_side_by_side_do_not_pay_every_round():
    renew = lambda number, x: class_means.at_epoch_end(
        number, jnp.int32(3), lambda: jnp.sin(x), x
    )
    numbers, x = jnp.full(4, 2), jnp.arange(4.0)
    np.testing.assert_allclose(jax.vmap(renew)(numbers, x), np.sin(x), rtol=1e-6)
    np.testing.assert_array_equal(jax.vmap(renew)(numbers + 1, x), x)
    program = str(jax.make_jaxpr(jax.vmap(renew))(numbers, x))
    assert "cond[" in program and "select_n" not in program.partition("cond[")[2]
