"""Clipped gradients in loops of Optax against per-example gradients."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import kernels, privacy

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 3)).astype(np.float32)
Y = RNG.normal(size=7).astype(np.float32)
PARAMS = {"w": jnp.array([[0.5, -1.0], [2.0, 0.1], [0.3, 0.7]]), "v": jnp.ones(2)}


def loss_fn(params, batch):
    hidden = jnp.tanh(batch[0] @ params["w"])
    return (hidden @ params["v"] - batch[1]) ** 2


def clipped_by_hand(clip_norm, x=X, y=Y):
    total = jax.tree.map(jnp.zeros_like, PARAMS)
    for i in range(len(x)):
        one = lambda params, i=i: loss_fn(params, (x[i : i + 1], y[i : i + 1]))[0]
        grads = jax.grad(one)(PARAMS)
        scale = jnp.minimum(1, clip_norm / optax.tree.norm(grads))
        total = jax.tree.map(lambda t, g, s=scale: t + s * g, total, grads)
    return total


@pytest.mark.parametrize("size", [None, 1, 3, 7, 9])
def test_parts_of_any_size_have_the_sum_of_clipped_gradients(size):
    found = privacy.clipped_grad(loss_fn, 1.5, microbatch_size=size)(PARAMS, (X, Y))
    chex.assert_trees_all_close(found.value, clipped_by_hand(1.5), rtol=1e-4)
    assert found.squared_weights == 7


def test_a_loop_is_that_of_optax_without_per_example_gradients():
    """Both run Adam on a clipped mean; noise of 0 leaves nothing to chance."""
    ours = optax.chain(
        privacy.dp_aggregate(jax.random.key(0), 0.0, batch_size=7), optax.adam(0.1)
    )
    theirs = optax.chain(
        optax.contrib.differentially_private_aggregate(1.5, 0.0, jax.random.key(0)),
        optax.adam(0.1),
    )
    alone = lambda params, x, y: loss_fn(params, (x[None], y[None]))[0]
    each = jax.vmap(jax.grad(alone), (None, 0, 0))
    params, state = PARAMS, ours.init(PARAMS)
    other, other_state = PARAMS, theirs.init(PARAMS)
    for _ in range(3):
        grads = privacy.clipped_grad(loss_fn, 1.5)(params, (X, Y))
        updates, state = ours.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        updates, other_state = theirs.update(each(other, X, Y), other_state, other)
        other = optax.apply_updates(other, updates)
    chex.assert_trees_all_close(params, other, rtol=1e-4)
    assert state[0].count == 3


def test_noise_has_the_scale_of_the_clip_norm_and_changes_with_the_step():
    zeros = kernels.BoundedSum(jnp.zeros(20_000), 1.5)
    private = privacy.dp_aggregate(jax.random.key(0), 2.0, batch_size=10)
    first, state = private.update(zeros, private.init(zeros.value))
    second, _ = private.update(zeros, state)
    # Five standard errors of a standard deviation of 20,000 draws are 2.5 %.
    np.testing.assert_allclose([first.std(), second.std()], 0.3, rtol=0.025)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(20_000)


def test_a_mesh_axis_adds_its_parts():
    parts = (X[:6].reshape(2, 3, 3), Y[:6].reshape(2, 3))
    grad = privacy.clipped_grad(loss_fn, 1.5, axis_name="parts")
    found = jax.vmap(grad, (None, 0), axis_name="parts")(PARAMS, parts)
    want = clipped_by_hand(1.5, X[:6], Y[:6])
    for part in range(2):
        one = jax.tree.map(lambda leaf, i=part: leaf[i], found.value)
        chex.assert_trees_all_close(one, want, rtol=1e-4)
    assert found.squared_weights.tolist() == [6, 6]


def test_arguments_are_those_of_grad():
    with_aux = lambda params, batch: (loss_fn(params, batch), batch[1].sum())
    found, aux = privacy.clipped_grad(with_aux, 1.5, has_aux=True)(PARAMS, (X, Y))
    chex.assert_trees_all_close(found.value, clipped_by_hand(1.5), rtol=1e-4)
    np.testing.assert_allclose(aux, Y.sum())
    apart = lambda v, scale, w, batch: scale * loss_fn({"v": v, "w": w}, batch)
    grad = privacy.clipped_grad(apart, 1.5, argnums=(2, 0))
    w, v = grad(PARAMS["v"], 1.0, PARAMS["w"], (X, Y)).value
    chex.assert_trees_all_close({"w": w, "v": v}, clipped_by_hand(1.5), rtol=1e-4)


def test_says_what_was_wrong():
    with pytest.raises(ValueError, match="microbatch_size must be >= 1, got 0"):
        privacy.clipped_grad(loss_fn, 1.0, microbatch_size=0)
    with pytest.raises(ValueError, match="batch_size must be > 0, got 0"):
        privacy.dp_aggregate(jax.random.key(0), 1.0, 0)
    with pytest.raises(TypeError, match="key must be a typed PRNG key"):
        privacy.dp_aggregate(0, 1.0, 8)
    private = privacy.dp_aggregate(jax.random.key(0), 1.0, 8)
    with pytest.raises(TypeError, match="BoundedSum"):
        private.update(PARAMS, private.init(PARAMS))


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.floats(-8, 8, width=32), min_size=3, max_size=3),
    st.floats(0.125, 16, width=32),
    st.sampled_from([1.0, 3.0, 8.0]),
)
def test_a_drawn_sum_is_clipped_and_divided(x, clip_norm, batch_size):
    """The gradient of ``w x`` is x."""
    total = privacy.clipped_grad(lambda w, x: w * x, clip_norm)(1.0, np.float32(x))
    want = np.clip(x, -clip_norm, clip_norm).sum()
    np.testing.assert_allclose(total.value, want, rtol=1e-4, atol=1e-4)
    private = privacy.dp_aggregate(jax.random.key(0), 0.0, batch_size)
    mean, _ = private.update(total, private.init(1.0))
    np.testing.assert_allclose(mean, want / batch_size, rtol=1e-4, atol=1e-4)


def test_microbatches_may_hold_keys():
    def loss_fn(w, batch):
        draw = jax.vmap(jax.random.bernoulli)(batch[1])
        return w * jnp.where(draw, batch[0], 0.0)

    keys, x = jax.random.split(jax.random.key(0), 3), jnp.array([1.0, 2.0, 3.0])
    found = privacy.clipped_grad(loss_fn, 10.0, microbatch_size=2)(1.0, (x, keys))
    wanted = jnp.sum(jnp.where(jax.vmap(jax.random.bernoulli)(keys), x, 0.0))
    np.testing.assert_allclose(found.value, wanted, rtol=1e-6)
