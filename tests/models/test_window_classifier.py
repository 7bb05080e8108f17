"""The classifier whose features are compared: by hand, and its dropout bounds."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.models.classifiers import WindowClassifier, unit

NET = WindowClassifier(3, filters=(2, 3), features=4)


def test_layers_by_hand():
    x = np.random.default_rng(0).normal(size=(2, 5, 2)).astype(np.float32)
    params = jax.jit(NET.init)(jax.random.key(0), x)["params"]
    logits, features = NET.apply({"params": params}, x)
    y = np.float64(x)
    for number, samples in ((0, 4), (1, 2)):  # The 2 pairs of 5 samples.
        layer = jax.tree.map(np.float64, params[f"conv_{number}"])
        padded = np.pad(y, ((0, 0), (1, 1), (0, 0)))
        time = y.shape[1]
        y = sum(padded[:, j : j + time] @ layer["kernel"][j] for j in range(3))
        y = np.maximum(y + layer["bias"], 0)[:, :samples]
        y = (y[:, ::2] + y[:, 1::2]) / 2
    dense = lambda name, rows: (
        rows @ np.float64(params[name]["kernel"]) + np.float64(params[name]["bias"])
    )
    found = dense("dense_1", y.reshape(2, -1))
    np.testing.assert_allclose(features, found, rtol=1e-4, atol=1e-5)
    want = dense("dense_2", np.maximum(found, 0))
    np.testing.assert_allclose(logits, want, rtol=1e-4, atol=1e-5)


def test_dropout_falls_on_what_the_logits_see_alone():
    x = jnp.ones((1, 8, 2))
    params = NET.init(jax.random.key(0), x)
    plain, features = NET.apply(params, x)
    apply = lambda key: NET.apply(params, x, key, 0.5)
    logits, same = jax.vmap(apply)(jax.random.split(jax.random.key(1), 2000))
    np.testing.assert_allclose(same, jnp.broadcast_to(features, same.shape), rtol=1e-6)
    assert np.std(logits, axis=0).max() > 0.01
    # Kept units count double, so the mean is unchanged.
    spread = np.std(logits, axis=0) / np.sqrt(2000)
    np.testing.assert_array_less(np.abs(logits.mean(0) - plain), 5 * spread + 1e-5)


def test_length_1_and_what_has_no_direction():
    rows = jax.random.normal(jax.random.key(0), (5, 7)).at[2].set(0)
    lengths = jnp.linalg.norm(unit(rows), axis=1)
    np.testing.assert_allclose(lengths, [1, 1, 0, 1, 1], rtol=1e-6)
    slope = jax.jacobian(lambda row: unit(row[None])[0])(jnp.zeros(3))
    np.testing.assert_array_equal(slope, 0)
