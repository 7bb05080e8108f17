"""Recurrent layers against Flax, and their clipped gradients from factors."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from jaxanon.kernels.ghost import leaves_without_factors
from jaxanon.models.layers import LSTM, MultiLSTM


def test_agrees_with_flax():
    x = jax.random.normal(jax.random.key(0), (2, 5, 3))
    layer, theirs = LSTM(4), nn.RNN(nn.OptimizedLSTMCell(4))
    params = jax.jit(layer.init)(jax.random.key(1), x)["params"]
    gates = lambda weights: jnp.split(weights, 4, axis=-1)
    cell = {}
    names = zip(
        "ifgo",
        *(gates(params[k]) for k in ("kernel", "recurrent", "bias")),
        strict=True,
    )
    for name, kernel, recurrent, bias in names:
        cell[f"i{name}"] = {"kernel": kernel}
        cell[f"h{name}"] = {"kernel": recurrent, "bias": bias}
    expected = jax.jit(theirs.apply)({"params": {"cell": cell}}, x)
    got = jax.jit(layer.apply)({"params": params}, x)
    chex.assert_trees_all_close(got, expected, rtol=1e-5, atol=1e-6)


def test_starts_by_remembering():
    x = jnp.zeros((1, 2, 3))
    params = jax.jit(LSTM(4).init)(jax.random.key(0), x)["params"]
    np.testing.assert_array_equal(params["bias"], np.repeat([0, 1, 0, 0], 4))
    recurrent = params["recurrent"]  # Orthogonal rows.
    np.testing.assert_allclose(recurrent @ recurrent.T, np.eye(4), atol=1e-5)


def test_layers_feed_one_another_and_have_factors():
    net = MultiLSTM((4, 6))
    x = jax.ShapeDtypeStruct((2, 5, 3), jnp.float32)
    params = jax.eval_shape(net.init, jax.random.key(0), x)["params"]
    shapes = jax.tree.map(jnp.shape, params)
    assert shapes["LSTM_1"] == {"kernel": (4, 24), "recurrent": (6, 24), "bias": (24,)}
    loss_fn = lambda params, x: net.apply({"params": params}, x)[:, -1].sum(-1)
    names = leaves_without_factors(loss_fn, params, x)
    assert names == ["['LSTM_0']['bias']", "['LSTM_1']['bias']"]
    assert jax.eval_shape(net.apply, {"params": params}, x).shape == (2, 5, 6)
