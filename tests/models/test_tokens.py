"""An embedding table before a network, and its clipped gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon import kernels
from jaxanon.models.predictors import add_embedding, predictor

WINDOWS = jnp.array([[0, 3, 1, 3], [0, 0, 2, 4]], jnp.float32)[..., None]


@pytest.fixture(scope="module")
def nets():
    inner = predictor("mlp", 4, 2, 3, hidden=())
    return inner, add_embedding(inner, tokens=5, features=2)


def test_it_is_a_product_with_one_hot_rows(nets):
    inner, net = nets
    layers = net.init(jax.random.key(0))
    assert net.layers == ("embed_1", "dense_1") and set(layers) == set(net.layers)
    table = np.array(layers["embed_1"]["embedding"])
    assert table.shape == (5, 2)
    table[0] = 0  # Empty.
    x = np.eye(5)[np.array(WINDOWS[..., 0], int)] @ table
    want = inner.apply({"dense_1": layers["dense_1"]}, jnp.array(x, jnp.float32))
    np.testing.assert_allclose(net.apply(layers, WINDOWS), want, rtol=1e-6)


def test_the_table_and_the_network_start_apart(nets):
    _, net = nets
    first, second = (net.init(jax.random.key(seed)) for seed in (1, 2))
    for name in net.layers:
        pairs = zip(*map(jax.tree.leaves, (first[name], second[name])), strict=True)
        assert any(jnp.any(a != b) for a, b in pairs)
    big = add_embedding(predictor("mlp", 4, 50, 3, hidden=()), tokens=400, features=50)
    table = big.init(jax.random.key(0))["embed_1"]["embedding"]
    assert float(table.std()) == pytest.approx(1.0, abs=0.02)


def test_only_rows_that_are_read_learn(nets):
    _, net = nets

    def loss(layers, windows, labels):
        logits = net.apply(layers, windows)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels)

    layers = net.init(jax.random.key(0))
    labels = jnp.array([0, 2])
    total = lambda layers: jnp.sum(loss(layers, WINDOWS, labels))
    grad = jax.grad(total)(layers)["embed_1"]["embedding"]
    assert jnp.any(grad != 0, axis=1).tolist() == [False, True, True, True, True]
    # With a bound that no gradient reaches, the sum is the gradient.
    by_example = lambda layers, batch: loss(layers, *batch)
    clipped, _ = kernels.clipped_gradient_sum(
        by_example, layers, (WINDOWS, labels), 1e3
    )
    np.testing.assert_allclose(
        clipped.value["embed_1"]["embedding"], grad, rtol=1e-5, atol=1e-7
    )
