"""The baselines' networks: published sizes, and the output of each layer."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models import malekzadeh
from jaxanon.models.malekzadeh import Estimator, Guardian, Replacement, Replacer

pytestmark = pytest.mark.slow

MAGNITUDES = (1, 128, 2)  # MotionSense's windows of 2 channels.


def _size(net, *shapes):
    given = [jnp.zeros(shape) for shape in shapes]
    found = jax.eval_shape(net.init, jax.random.key(0), *given)
    return sum(leaf.size for leaf in jax.tree.leaves(found))


@pytest.mark.parametrize(
    ("net", "shape", "size"),
    [
        (malekzadeh.Encoder(), MAGNITUDES, 84_165),
        (malekzadeh.Decoder(128), (1, 2, 32, 1), 84_161),
        (malekzadeh.Reader(2), (1, 2, 128, 1), 78_497),
        (malekzadeh.Reader(3), (1, 2, 128, 1), 78_563),
        (Replacer(), MAGNITUDES, 155_910),
    ],
)
def test_published_sizes(net, shape, size):
    assert _size(net, shape) == size


def test_sizes_of_the_identity_version_by_hand():
    # Kernels of 3 samples; 4 numbers of batch normalization per filter.
    conv, norm = 3 * 100 * 100 + 100, 400
    encoder = (3 * 100 + 100) + 3 * conv + 4 * norm + (3 * 100 + 1) + 4
    net = malekzadeh.Encoder(100, (1, 3), deeper=True)
    assert _size(net, MAGNITUDES) == encoder
    decoder = (3 * 100 + 100) + 3 * conv + 3 * norm + (3 * 100 + 1)
    net = malekzadeh.Decoder(128, 100, (1, 3), deeper=True)
    assert _size(net, (1, 2, 32, 1)) == decoder
    # 32 samples of latents are halved twice, 128 of windows four times: 2 x 8 x 32.
    convs = (10 * 32 + 32) + 4 * (10 * 32 * 32 + 32)
    latents = convs + (512 * 128 + 128) + (128 * 32 + 32) + (32 * 24 + 24)
    net = malekzadeh.Reader(24, pooled=malekzadeh.POOLED_LATENT)
    assert _size(net, (1, 2, 32, 1)) == latents
    windows = convs + (512 * 256 + 256) + (256 * 64 + 64) + (64 * 24 + 24)
    net = malekzadeh.Reader(24, 32, (256, 64), malekzadeh.POOLED_OUTPUT)
    assert _size(net, (1, 2, 128, 1)) == windows


def test_sizes_of_gen_by_hand():
    # 50 samples: 46, 23 pairs, 19, 6 triples, 4; for each of 12 channels, 20 filters.
    layers = (5 * 50 + 50) + (3 * 50 * 50 + 50) + (50 * 50 + 50)
    layers += (5 * 50 * 40 + 40) + (40 * 40 + 40) + (3 * 40 * 20 + 20)
    layers += (12 * 4 * 20 * 400 + 400) + (400 * 4 + 4) + (400 + 1)
    net = Estimator((("activity", 4), ("gender", 2)))
    assert _size(net, (1, 50, 12)) == layers == 410_905
    widths = (600, 600, 300, 150, 75, 150, 300, 600)
    dense = sum(a * b + b for a, b in itertools.pairwise(widths))
    assert _size(Guardian(), (1, 50, 12)) == dense


@pytest.mark.parametrize("time", [16, 13, 7])
@pytest.mark.parametrize("deeper", [False, True])
def test_windows_come_back_as_long_as_they_were(time, deeper):
    nets = malekzadeh.MalekzadehNetworks(
        time,
        3,
        malekzadeh.Encoder(4, (1, 3), deeper),
        malekzadeh.Decoder(time, 4, (1, 3), deeper),
        {"a": malekzadeh.Reader(3, 2, (4,))},
        {"b": malekzadeh.Reader(2, 2, (4,), malekzadeh.POOLED_LATENT)},
    )
    params = jax.eval_shape(nets.init, jax.random.key(0))
    windows = jnp.zeros((5, time, 3))
    latents, safe, averages = jax.eval_shape(
        lambda params: nets.rewrite(params, windows, train=True), params
    )
    assert safe.shape == windows.shape
    assert latents.shape == (5, 3, -(-time // 4), 1)
    assert jax.tree.map(jnp.shape, averages) == jax.tree.map(
        lambda leaf: leaf.shape, {k: params["averages"][k] for k in averages}
    )
    read = lambda params: [
        logits for _, logits in nets.read(params, jnp.zeros(latents.shape), windows)
    ]
    shapes = [leaf.shape for leaf in jax.eval_shape(read, params)]
    assert shapes == [(5, 3), (5, 2)]


def test_the_estimator_does_not_mix_channels_before_its_dense_layer():
    # Permuting the channels and the dense layer's rows together changes nothing.
    net = Estimator((("a", 3), ("b", 2)), (3, 4, 2), 5)
    x = np.float32(np.random.default_rng(0).normal(size=(4, 30, 3)))
    params = jax.jit(net.init)(jax.random.key(0), x)["params"]
    estimate = jax.jit(lambda params, x: net.apply({"params": params}, x))
    found = estimate(params, x)
    kernel = np.asarray(params["Dense_2"]["kernel"])
    order = [2, 0, 1]
    turned = kernel.reshape(3, -1, 5)[order].reshape(kernel.shape)
    moved = params | {"Dense_2": {**params["Dense_2"], "kernel": turned}}
    again = estimate(moved, x[:, :, order])
    for name in ("a", "b"):
        np.testing.assert_allclose(again[name], found[name], rtol=1e-4, atol=1e-5)
    assert (
        np.abs(net.apply({"params": params}, x[:, :, order])["a"] - found["a"]).max()
        > 1e-3
    )


def test_dropout_has_a_key_of_its_own():
    net = malekzadeh.Reader(2, 4, (8,))
    x = np.float32(np.random.default_rng(0).normal(size=(6, 2, 16, 1)))
    variables = jax.jit(net.init)(jax.random.key(0), x)
    read = jax.jit(lambda key: net.apply(variables, x, key))
    plain = read(None)
    one, two = (read(jax.random.key(seed)) for seed in (1, 2))
    assert np.abs(one - two).max() > 1e-3 and np.abs(one - plain).max() > 1e-3


def test_the_replacement_network_normalises_by_its_averages():
    nets = Replacement(8, 2, Replacer((3,), (4, 2)))
    params = jax.jit(nets.init)(jax.random.key(0))
    x = np.float32(5 + np.random.default_rng(0).normal(size=(6, 8, 2)))
    plain, same = jax.jit(nets.rewrite)(params, x)
    jax.tree.map(np.testing.assert_array_equal, same, params["averages"]["replacer"])
    # A row's result does not depend on the other rows, except under batch statistics.
    alone = jax.jit(nets.rewrite)(params, x[:2])[0]
    np.testing.assert_allclose(alone, plain[:2], 1e-4, 1e-5)
    train = jax.jit(lambda x: nets.rewrite(params, x, train=True)[0])
    assert np.abs(train(x)[:2] - train(x[:2])).max() > 1e-2
