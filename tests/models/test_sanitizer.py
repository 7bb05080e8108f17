"""DySan's networks: published sizes, layers in NumPy, and the composed sanitizer."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models import dysan
from jaxanon.models.sanitizer import (
    Discriminator,
    Predictor,
    Sanitizer,
    compose,
    min_time,
    sanitize,
)

pytestmark = pytest.mark.slow

TIME, CHANNELS, ROWS = 20, 3, 4
SANITIZER = Sanitizer(filters=(4, 5), hidden=(6, 3))


def _count(tree):
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def test_published_parameter_counts():
    key, windows = jax.random.key(0), jnp.zeros((1, 125, 6))
    sides = lambda num: jnp.zeros((1, num))
    # Height, weight, age and activity; the predictor does not receive the activity.
    shapes = jax.eval_shape(Sanitizer().init, key, windows, sides(4), sides(2))
    assert _count(shapes["params"]) == 3_920_714
    shapes = jax.eval_shape(Predictor(4).init, key, windows, sides(3))
    assert _count(shapes["params"]) == 303_796
    shapes = jax.eval_shape(Discriminator(2).init, key, windows, sides(4))
    assert _count(shapes["params"]) == 14_602


def test_counts_of_what_is_trained_here():
    nets = dysan.networks(125, 6, ("activity", 4), {"gender": 2}, dysan.Widths())
    shapes = jax.eval_shape(nets.init, jax.random.key(0))
    # 128 units with 4 inputs fewer, and 4 outputs with their biases.
    assert _count(shapes["sanitizer"]) == 3_920_714 - 4 * 128 - 4 * (128 + 1)
    assert _count(shapes["predictor"]) == 303_796 - 3 * 64
    assert _count(shapes["discriminators"]) == 14_602 - 3 * 2


def _drawn(shapes, seed=0):
    """Replaces shapes by drawn numbers, so that no bias is 0."""
    leaves, tree = jax.tree.flatten(shapes)
    rng = np.random.default_rng(seed)
    made = [np.float32(rng.normal(size=leaf.shape) / 2) for leaf in leaves]
    return jax.tree.unflatten(tree, made)


def _inputs(num_sides):
    rng = np.random.default_rng(1)
    windows = np.float32(rng.normal(size=(ROWS, TIME, CHANNELS)))
    sides = np.float32(rng.uniform(-1, 1, (ROWS, num_sides)))
    return windows, sides, np.float32(rng.uniform(size=(ROWS, 2)))


def _conv(x, layer, widen=False):
    """Correlates over time in NumPy, with zeros on both sides if it widens."""
    kernel = layer["kernel"]
    rows = [
        sum(
            np.stack(
                [
                    np.correlate(one, kernel[:, i, o], "full" if widen else "valid")
                    for one in x[:, :, i]
                ]
            )
            for i in range(x.shape[2])
        )
        for o in range(kernel.shape[2])
    ]
    return np.stack(rows, axis=2) + layer["bias"]


def _dense(x, layer):
    return x @ layer["kernel"] + layer["bias"]


def _sanitized(params, windows, sides, noise):
    """Applies the layers as described for the official program."""
    x = _conv(_conv(windows, params["conv_0"]), params["conv_1"])
    shape = x.shape
    x = np.tanh(np.concatenate([x.reshape(ROWS, -1), sides, noise], 1))
    x = _dense(_dense(x, params["dense_0"]), params["dense_1"])
    x = np.where(x > 0, x, 0.01 * x)
    x = np.tanh(_dense(_dense(x, params["dense_2"]), params["dense_3"]))
    x, sides = np.split(x, [np.prod(shape[1:])], 1)
    x = _conv(x.reshape(shape), params["conv_2"], True)
    return _conv(x, params["conv_3"], True), sides


@pytest.mark.parametrize("num_sides", [0, 2])
def test_sanitizer_layer_by_layer_and_composed(num_sides):
    inputs = _inputs(num_sides)
    shapes = jax.eval_shape(SANITIZER.init, jax.random.key(0), *inputs)["params"]
    params = _drawn(shapes)
    expected = _sanitized(params, *inputs)
    layers = jax.jit(SANITIZER.apply)({"params": params}, *inputs)
    chex.assert_trees_all_close(layers, expected, rtol=1e-4, atol=1e-4)
    composed = jax.jit(lambda params: sanitize(compose(params, TIME), *inputs))(params)
    chex.assert_trees_all_close(composed, expected, rtol=1e-4, atol=1e-4)


def test_gradients_of_the_composed_are_those_of_the_layers():
    inputs = _inputs(1)
    shapes = jax.eval_shape(SANITIZER.init, jax.random.key(0), *inputs)["params"]
    loss = lambda made: sum(jnp.sum(jnp.sin(each)) for each in made)
    layers = lambda params: loss(SANITIZER.apply({"params": params}, *inputs))
    composed = lambda params: loss(sanitize(compose(params, TIME), *inputs))
    one, two = (jax.jit(jax.grad(each))(_drawn(shapes)) for each in (layers, composed))
    chex.assert_trees_all_close(one, two, rtol=1e-3, atol=1e-4)


def _halved(x):
    even = x.shape[1] // 2 * 2
    return x[:, :even].reshape(len(x), -1, 2, x.shape[2]).mean(2)


def _normalised(x, averages, layer):
    scaled = (x - averages["mean"]) / np.sqrt(averages["var"] + 1e-5)
    return scaled * layer["scale"] + layer["bias"]


def _judge(net, sides):
    windows = _inputs(0)[0]
    shapes = jax.eval_shape(net.init, jax.random.key(0), windows, sides)
    variables = _drawn(shapes)
    own = variables["batch_stats"]["BatchNorm_0"]
    own["var"] = np.abs(own["var"]) + 0.5
    logits = jax.jit(net.apply)(variables, windows, sides)
    return windows, variables["params"], own, logits


def test_predictor_layer_by_layer():
    net = Predictor(3, filters=(4, 5), hidden=6)
    sides = np.float32(np.linspace(-1, 1, ROWS)[:, None])
    x, params, own, logits = _judge(net, sides)
    x = _halved(np.maximum(_conv(x, params["Conv_0"]), 0))
    x = _normalised(x, own, params["BatchNorm_0"])
    x = _halved(np.maximum(_conv(x, params["Conv_1"]), 0))
    x = np.tanh(np.concatenate([x.reshape(ROWS, -1), sides], 1))
    x = _dense(_dense(x, params["Dense_0"]), params["Dense_1"])
    np.testing.assert_allclose(logits, x, rtol=1e-4, atol=1e-4)


def test_discriminator_layer_by_layer():
    net = Discriminator(2, filters=4, hidden=6)
    sides = np.float32(np.linspace(-1, 1, ROWS)[:, None])
    x, params, own, logits = _judge(net, sides)
    x = _halved(np.maximum(_conv(x, params["Conv_0"]), 0))
    x = _normalised(x, own, params["BatchNorm_0"])
    x = np.exp(_dense(np.swapaxes(x, 1, 2), params["Dense_0"]))
    x = x / x.sum(1, keepdims=True)  # Over the filters.
    x = np.tanh(np.concatenate([x.reshape(ROWS, -1), sides], 1))
    np.testing.assert_allclose(logits, _dense(x, params["Dense_1"]), 1e-4, 1e-4)


def test_training_drops_half_and_renews_the_averages():
    net, sides = Predictor(3, filters=(64,), hidden=6), np.zeros((ROWS, 0))
    windows, params, own, _ = _judge(net, sides)
    variables = {"params": params, "batch_stats": {"BatchNorm_0": own}}
    train = jax.jit(lambda key: net.apply(variables, windows, sides, key, mutable=True))
    one, renewed = train(jax.random.key(1))
    other, _ = train(jax.random.key(2))
    assert np.abs(one - other).max() > 0.1
    x = _halved(np.maximum(_conv(windows, params["Conv_0"]), 0))
    expected = 0.9 * own["mean"] + 0.1 * x.mean((0, 1))
    found = renewed["batch_stats"]["BatchNorm_0"]["mean"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("filters", [(3,), (3, 3), (2, 2, 2, 2)])
def test_windows_may_be_so_short_and_no_shorter(filters):
    nets = lambda time: dysan.networks(
        time, 1, ("a", 2), {"b": 2}, dysan.Widths(predictor_filters=filters)
    )
    least = max(10, min_time(filters))
    shapes = jax.eval_shape(nets(least).init, jax.random.key(0))
    if least == min_time(filters):  # One sample of the last filters remains.
        assert shapes["predictor"]["Dense_0"]["kernel"].shape[0] == filters[-1]
    with pytest.raises(
        ValueError, match=f"at least {least} samples .* got {least - 1}"
    ):
        nets(least - 1)


def test_errors_are_grouped_by_their_own_classes_or_by_the_first_private():
    nets = dysan.networks(
        20, 1, ("a", 2), {"b": 2, "c": 3}, dysan.Widths(predictor_filters=(2,))
    )
    guess = lambda *p: jnp.log(jnp.array([[one, 1 - one] for one in p]))
    logits = {"a": guess(0.9, 0.7, 0.2, 0.5)}
    labels = {"a": jnp.array([0, 0, 0, 1]), "b": jnp.array([0, 1, 1, 0])}
    labels["c"] = jnp.array([0, 1, 2, 0])
    balanced = dysan.errors(nets, logits, labels, "balanced")["a"]
    np.testing.assert_allclose(balanced, (0.4 + 0.5) / 2, rtol=1e-6)
    released = dysan.errors(nets, logits, labels, "official")["a"]
    np.testing.assert_allclose(released, (0.3 + 0.55) / 2, rtol=1e-6)
    labels["b"] = jnp.zeros(4, jnp.int32)  # All have one gender: .425, and 0.
    released = dysan.errors(nets, logits, labels, "official")["a"]
    np.testing.assert_allclose(released, 0.425 / 2, rtol=1e-6)


def test_discriminators_are_told_the_public_class_from_minus_one_to_one():
    widths = dysan.Widths(predictor_filters=(2,), discriminator_filters=3)
    nets = dysan.networks(TIME, CHANNELS, ("a", 3), {"b": 2}, widths)
    params = _drawn(jax.eval_shape(nets.init, jax.random.key(0)))
    spread = jax.tree.map(np.abs, params["averages"])
    params = params | {"averages": spread}
    windows = _inputs(0)[0]
    found, _ = jax.jit(nets.discriminate)(params, windows, np.array([0, 1, 2, 1]))
    variables = {
        "params": params["discriminators"]["b"],
        "batch_stats": spread["discriminators"]["b"],
    }
    sides = np.float32([[-1], [0], [1], [0]])
    expected = jax.jit(nets.discriminators["b"].apply)(variables, windows, sides)
    np.testing.assert_allclose(found["b"], expected, rtol=1e-5, atol=1e-6)
