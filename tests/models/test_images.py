"""Image networks against NumPy, published sizes and Flax's convolution."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

from jaxanon import kernels
from jaxanon.models.images import POOL, VGG, Convolution, ResNet, gather_neighbors
from jaxanon.models.predictors import predictor

SMALL = {
    "resnet32": ResNet(3, stages=(4, 8), blocks=2),
    "vgg16": VGG(3, widths=(4, POOL, 8, 8, POOL)),
}
ALL = pytest.mark.parametrize("kind", SMALL)


def sizes(kind):
    """Returns the parameter count of each layer without computing any."""
    net = predictor(kind, 1024, 3, 10, hidden=())
    layers = jax.eval_shape(net.init, jax.random.key(0))
    assert set(layers) == set(net.layers)
    count = lambda tree: sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))
    return [count(layers[name]) for name in net.layers]


def test_resnet32_has_as_many_parameters_as_published():
    # 464,154 with batch norm and parameter-free skip connections: two numbers per
    # channel, as in group norm. He et al., table 6: 0.46 M, 32 layers.
    found = sizes("resnet32")
    assert sum(found) == 464_154 and len(found) == 32
    first, last = 27 * 16 + 2 * 16, 64 * 10 + 10
    inner = [9 * a * b + 2 * b for a, b in [(16, 16)] * 10]
    inner += [9 * a * b + 2 * b for a, b in [(16, 32), *[(32, 32)] * 9]]
    inner += [9 * a * b + 2 * b for a, b in [(32, 64), *[(64, 64)] * 9]]
    assert found == [first, *inner, last]


def test_vgg16_has_as_many_parameters_as_the_usual_one_less_useless_biases():
    # 14,728,266 with batch norm after convolutions that have biases. The norm makes
    # those 4,224 biases redundant.
    found = sizes("vgg16")
    assert sum(found) == 14_728_266 - 4_224 and len(found) == 14
    assert found[0] == 27 * 64 + 2 * 64 and found[-1] == 512 * 10 + 10


def conv_by_hand(x, kernel, stride):
    """Computes ``[h, w, d]`` and ``[3, 3, d, f]`` with explicit sums."""
    height, width, _ = x.shape
    rows, columns = -(-height // stride), -(-width // stride)
    out = np.zeros((rows, columns, kernel.shape[-1]))
    for r in range(rows):
        for c in range(columns):
            for i in range(3):
                for j in range(3):
                    y, z = r * stride + i - 1, c * stride + j - 1
                    if 0 <= y < height and 0 <= z < width:
                        out[r, c] += x[y, z] @ kernel[i, j]
    return out


def norm_by_hand(x, groups, scale, bias):
    """Normalizes channels in groups to mean 0 and variance 1 over one image."""
    parts = np.split(x, groups, axis=-1)
    parts = [(part - part.mean()) / np.sqrt(part.var() + 1e-6) for part in parts]
    return np.concatenate(parts, axis=-1) * scale + bias


@pytest.mark.parametrize("stride, side", [(1, 5), (2, 6), (2, 5)])
def test_a_convolution_is_what_it_is_by_hand(stride, side):
    random = np.random.default_rng(0)
    x = random.normal(size=(2, side, side, 3))
    kernel = random.normal(size=(3, 3, 3, 16))
    scale, bias = random.normal(size=(2, 16))
    params = {"kernel": kernel.reshape(27, 16), "norm": {"scale": scale, "bias": bias}}
    params = jax.tree.map(jnp.float32, params)
    got = Convolution(16, stride).apply({"params": params}, jnp.float32(x))
    want = [
        norm_by_hand(conv_by_hand(image, kernel, stride), 8, scale, bias) for image in x
    ]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_gradients_are_those_of_flax_s_convolution():
    x = jax.random.normal(jax.random.key(0), (2, 6, 6, 3))
    kernel = jax.random.normal(jax.random.key(1), (3, 3, 3, 4))
    conv = nn.Conv(4, (3, 3), strides=2, padding=1, use_bias=False)
    of_flax = lambda k, x: jnp.sum(conv.apply({"params": {"kernel": k}}, x) ** 3)
    ours = lambda k, x: jnp.sum((gather_neighbors(x, 2) @ k.reshape(27, 4)) ** 3)
    want, got = (jax.grad(fn, argnums=(0, 1))(kernel, x) for fn in (of_flax, ours))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)


def layers_of(module, side=8):
    x = jax.random.normal(jax.random.key(3), (4, side * side, 2))
    return jax.jit(module.init)(jax.random.key(2), x)["params"], x


def test_a_residual_network_by_hand():
    layers, x = layers_of(SMALL["resnet32"])
    # Norms that are not the identity.
    layers = jax.tree.map(lambda leaf: leaf + 0.1, layers)
    got = jax.jit(SMALL["resnet32"].apply)({"params": layers}, x)

    def conv(name, image, stride=1):
        layer = jax.tree.map(np.float64, layers[name])
        kernel = layer["kernel"].reshape(3, 3, image.shape[-1], -1)
        out = conv_by_hand(image, kernel, stride)
        groups = math.gcd(8, kernel.shape[-1])
        return norm_by_hand(out, groups, layer["norm"]["scale"], layer["norm"]["bias"])

    relu = lambda y: np.maximum(y, 0)
    for window, told in zip(np.float64(x), got, strict=True):
        y = relu(conv("conv_1", window.reshape(8, 8, 2)))
        for a, b in ((2, 3), (4, 5)):  # Four channels, eight by eight.
            y = relu(y + conv(f"conv_{b}", relu(conv(f"conv_{a}", y))))
        z = conv("conv_7", relu(conv("conv_6", y, stride=2)))
        y = relu(z + np.concatenate([y[::2, ::2], np.zeros((4, 4, 4))], axis=-1))
        y = relu(y + conv("conv_9", relu(conv("conv_8", y))))
        dense = jax.tree.map(np.float64, layers["dense_1"])
        want = y.mean(axis=(0, 1)) @ dense["kernel"] + dense["bias"]
        np.testing.assert_allclose(told, want, rtol=2e-4, atol=1e-4)


def test_a_pool_keeps_the_largest_of_four():
    layers, x = layers_of(VGG(3, widths=(POOL, POOL, POOL)))
    image = np.asarray(x).reshape(4, 8, 8, 2)
    dense = layers["dense_1"]
    want = image.max(axis=(1, 2)) @ np.asarray(dense["kernel"]) + dense["bias"][None]
    got = VGG(3, widths=(POOL, POOL, POOL)).apply({"params": layers}, x)
    np.testing.assert_allclose(got, want, rtol=1e-5)
    half = VGG(3, widths=(POOL,))
    layers, _ = layers_of(half)
    blocks = [
        b for rows in np.split(image, 4, axis=1) for b in np.split(rows, 4, axis=2)
    ]
    flat = np.stack([block.max(axis=(1, 2)) for block in blocks], axis=1).reshape(4, -1)
    want = flat @ np.asarray(layers["dense_1"]["kernel"])
    np.testing.assert_allclose(half.apply({"params": layers}, x), want, rtol=1e-4)


@ALL
def test_examples_do_not_meet_and_are_clipped_one_by_one(kind):
    """Each example has its own gradient, which batch norm would violate."""
    module = SMALL[kind]
    layers, x = layers_of(module)
    labels = jnp.array([0, 1, 2, 0])

    def losses(layers, batch):
        logits = module.apply({"params": layers}, batch[0])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch[1])

    each = jax.jit(
        jax.vmap(jax.grad(lambda p, x, y: losses(p, (x, y)).sum()), (None, 0, 0))
    )
    rows = each(layers, x[:, None], labels[:, None])
    norms = jnp.sqrt(
        sum(jnp.sum(leaf.reshape(4, -1) ** 2, axis=1) for leaf in jax.tree.leaves(rows))
    )
    bound = float(jnp.median(norms))  # Two examples are clipped.
    total, info = jax.jit(
        lambda p, batch: kernels.clipped_gradient_sum(losses, p, batch, bound)
    )(layers, (x, labels))
    np.testing.assert_allclose(info.norms, norms, rtol=1e-4)
    weigh = jnp.minimum(1, bound / norms)
    want = jax.tree.map(lambda leaf: jnp.tensordot(weigh, leaf, axes=1), rows)
    for a, b in zip(*map(jax.tree.leaves, (total.value, want)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@ALL
def test_kernels_are_clipped_from_factors(kind):
    module = SMALL[kind]
    layers, x = layers_of(module)
    left = kernels.leaves_without_factors(
        lambda p, x: module.apply({"params": p}, x)[:, 0], layers, x
    )
    assert all("kernel" not in name for name in left)


@pytest.mark.parametrize(
    "kind, time", [("resnet32", 128), ("vgg16", 100), ("vgg16", 8)]
)
def test_windows_that_are_no_images_are_refused(kind, time):
    match = rf"time must be .* for {kind}, .* got {time}; use windows of 1024"
    with pytest.raises(ValueError, match=match):
        predictor(kind, time, 3, 10, hidden=())
