"""The U-Net: its blocks by hand, its conditions, and window lengths it rejects."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models import conditions, unet
from jaxanon.models.unet import UNet, check_halved, check_heads

pytestmark = pytest.mark.slow

SIZES = {"activity": 3, "gender": 2}
NET = UNet(tuple(SIZES.items()), widths=(8, 16), heads=2)


def given(batch=3, time=16, channels=2):
    rng = np.random.default_rng(0)
    told = conditions.Condition(
        {name: jnp.arange(batch) % size for name, size in SIZES.items()},
        jnp.float32(rng.normal(size=(batch, 6))),
        jnp.ones(batch, bool),
    )
    x = jnp.float32(rng.normal(size=(batch, time, channels)))
    return x, jnp.int32(rng.integers(1, 100, batch)), told


@functools.cache
def start():
    return jax.jit(NET.init)(jax.random.key(0), *given())


@functools.cache
def params():
    """Moves parameters off their initial values, where blocks are the identity."""
    leaves, tree = jax.tree.flatten(start())
    rng = np.random.default_rng(1)
    moved = [leaf + np.float32(0.1 * rng.normal(size=leaf.shape)) for leaf in leaves]
    return jax.tree.unflatten(tree, moved)


apply = jax.jit(NET.apply)


def test_it_starts_by_predicting_nothing():
    np.testing.assert_array_equal(apply(start(), *given()), jnp.zeros((3, 16, 2)))


def test_a_convolution_is_numpy_s():
    x = np.random.default_rng(0).normal(size=(2, 7, 3)).astype(np.float32)
    module = unet.Convolution(4)
    own = module.init(jax.random.key(0), x)
    kernel = np.asarray(own["params"]["kernel"])
    got = module.apply(own, x)
    for row, window in enumerate(x):
        for out in range(4):
            # NumPy's convolution flips the kernel.
            want = sum(
                np.convolve(window[:, d], kernel[::-1, d, out], mode="same")
                for d in range(3)
            )
            np.testing.assert_allclose(got[row, :, out], want, rtol=1e-4, atol=1e-5)


def test_attention_by_hand():
    x = np.random.default_rng(0).normal(size=(1, 5, 8)).astype(np.float32)
    module = unet.Attention(heads=2)
    own = module.init(jax.random.key(0), x)["params"]
    # An identity projection exposes the attention; the second half of the block stays
    # zero.
    own["seen"]["kernel"] = jnp.eye(8)
    got = module.apply({"params": own}, x)[0]
    rows = np.float64(x[0])
    # Eight channels are eight groups: each is normalized over time.
    rows = (rows - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-6)
    kernel = np.float64(own["query_key_value"]["kernel"])
    parts = (rows @ kernel).reshape(5, 3, 2, 4)
    want = np.float64(x[0])
    for head in range(2):
        query, key, value = (parts[:, part, head] for part in range(3))
        scores = np.exp(query @ key.T / np.sqrt(4))
        scores /= scores.sum(1, keepdims=True)
        want[:, 4 * head : 4 * head + 4] += scores @ value
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_halving_pairs_neighbours_and_doubling_repeats_them():
    x = jnp.arange(8.0).reshape(1, 4, 2)
    module = unet.Halve()
    own = module.init(jax.random.key(0), x)["params"]
    kernel = jnp.concatenate([jnp.eye(2), jnp.zeros((2, 2))])  # The first of each pair.
    got = module.apply({"params": {"pairs": {**own["pairs"], "kernel": kernel}}}, x)
    np.testing.assert_array_equal(got, [[[0, 1], [4, 5]]])
    module = unet.Double(2)
    own = module.init(jax.random.key(0), x)["params"]
    middle = jnp.zeros((3, 2, 2)).at[1].set(jnp.eye(2))
    got = module.apply({"params": {"conv": {**own["conv"], "kernel": middle}}}, x)
    np.testing.assert_array_equal(got[0, :, 0], [0, 0, 2, 2, 4, 4, 6, 6])


def test_windows_do_not_meet():
    x, t, told = given()
    whole = apply(params(), x, t, told)
    other = apply(params(), x.at[0].add(1.0).at[2].set(0.0), t, told)
    np.testing.assert_allclose(whole[1], other[1], rtol=1e-4, atol=1e-5)
    assert np.abs(whole[0] - other[0]).max() > 1e-2


def test_everything_it_is_told_counts_and_what_is_not_known_does_not():
    x, t, told = given()
    as_told = apply(params(), x, t, told)
    differs = lambda *inputs: np.abs(apply(params(), *inputs) - as_told).max() > 1e-3
    assert differs(x, t + 30, told)
    for name, size in SIZES.items():
        other = told.classes | {name: jnp.full(3, size)}
        assert differs(x, t, told._replace(classes=other))
    assert differs(x, t, told._replace(features=told.features + 1))
    unknown = told._replace(known=jnp.zeros(3, bool))
    assert differs(x, t, unknown)
    other = unknown._replace(features=jnp.full_like(told.features, jnp.nan))
    np.testing.assert_array_equal(
        apply(params(), x, t, other), apply(params(), x, t, unknown)
    )
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads(other)))


@jax.jit
def grads(told):
    """Returns the gradients of one output by parameters and by input."""
    x, t, _ = given()
    first = lambda params, x: NET.apply(params, x, t, told)[0, 0, 0]
    return jax.grad(first, argnums=(0, 1))(params(), x)


def test_every_sample_sees_every_other_of_its_window():
    _, reach = grads(given()[2])
    assert (np.abs(reach[0]).max(axis=1) > 1e-6).all()
    np.testing.assert_allclose(reach[1:], 0)


def test_one_step_for_all_is_that_step_for_each():
    x, _, told = given()
    one = apply(params(), x, jnp.int32(7), told)
    each = apply(params(), x, jnp.full(3, 7), told)
    np.testing.assert_allclose(one, each, rtol=1e-3, atol=1e-4)


def test_half_precision_is_a_setting_of_the_products():
    x, t, told = given()
    half = NET.clone(dtype="bfloat16")
    got = jax.jit(half.apply)(params(), x, t, told)
    want = apply(params(), x, t, told)
    assert got.dtype == x.dtype
    gap = np.abs(got - want).mean() / np.abs(want).mean()
    assert 1e-4 < gap < 0.1  # Rounded, but close.
    started = jax.eval_shape(half.init, jax.random.key(0), x, t, told)
    assert {leaf.dtype for leaf in jax.tree.leaves(started)} == {jnp.dtype("float32")}


def test_windows_can_be_halved_four_times():
    net = UNet(tuple(SIZES.items()), widths=(4,) * 5, heads=2)
    inputs = given(batch=1, time=2000)
    out = jax.eval_shape(lambda: net.init_with_output(jax.random.key(0), *inputs)[0])
    assert out.shape == (1, 2000, 2)


def test_says_what_cannot_be_halved():
    match = (
        "multiple of 4 samples .* 3 widths.*halves them 2 times, got 66; .* 64 or 68"
    )
    with pytest.raises(ValueError, match=match):
        check_halved(66, 3)
    with pytest.raises(ValueError, match="got 2; use windows of 4 samples, or"):
        check_halved(2, 3)
    with pytest.raises(ValueError, match="multiple of 2 samples .* got 15"):
        NET.init(jax.random.key(0), *given(time=15))
    with pytest.raises(ValueError, match=r"multiple of heads=3, got \(8, 16\)"):
        check_heads((8, 16), 3)
    with pytest.raises(ValueError, match=r"an even number, .* got \(7, 16\)"):
        check_heads((7, 16), 4)
