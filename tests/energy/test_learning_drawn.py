"""Short training of forecasters, compared with Adam and windows by hand."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import energy
from jaxanon.energy import ForecastConfig, Trace
from jaxanon.models.predictors import Predictor

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = {"a": (2,), "b": {"c": (1, 3), "d": ()}}
few = functools.partial(settings, deadline=None)


def tree(seed, scale=1.0):
    rng = np.random.default_rng(seed)
    draw = lambda shape: jnp.float32(rng.normal(scale=scale, size=shape))
    return jax.tree.map(draw, SHAPES, is_leaf=lambda x: isinstance(x, tuple))


def flat(tree):
    return np.concatenate([np.float64(leaf).ravel() for leaf in jax.tree.leaves(tree)])


@few(max_examples=12)
@given(SEEDS, st.sampled_from([(5,), (2, 5), (2, 0)]),
       st.sampled_from([np.float32, np.float64, np.int32]))  # fmt: skip
def test_a_scale_is_the_mean_of_what_is_taken(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    power = rng.choice([0, 0.1, 0.2, 3, 50.5], size=shape).astype(dtype)
    found = energy.compute_scale(power)
    assert found.dtype == np.float32 and found.shape == shape[:-1]
    for place in np.ndindex(shape[:-1]):
        some = [one for one in np.float32(power[place]) if one >= np.float32(0.2)]
        assert found[place] == pytest.approx(np.mean(some) if some else 1)


@few(max_examples=12)
@given(
    SEEDS, st.lists(st.integers(0, 6), min_size=3, max_size=3), st.sampled_from([1, 4])
)
def test_persistence_goes_on_with_the_last_minute(seed, ends, ahead):
    power = np.float32(np.random.default_rng(seed).uniform(0, 99, 6))
    say = functools.partial(energy.persistence, ahead=ahead)
    found = jax.jit(say)(Trace(power, 1.0), np.array(ends))
    assert found.shape == (3, ahead)
    for end, row in zip(ends, found, strict=True):
        assert (row == power[max(end - 1, 0)]).all()


@few(max_examples=10)
@given(SEEDS, st.sampled_from([0, 1, 4]), st.sampled_from([1, 3]), st.booleans())
def test_the_first_of_the_best_actions_is_chosen(seed, batch, actions, ties):
    rng = np.random.default_rng(seed)
    params = np.float32(rng.integers(-1, 2, size=(2, actions)))
    observed = np.float32(rng.integers(-1, 2, size=(batch, 2)) * (not ties))
    net = Predictor(None, lambda layers, x: x @ layers, ())
    found = jax.jit(functools.partial(energy.greedy, net))(params, observed)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, (observed @ params).argmax(1))


def adam(layers, gradients, rate):
    """Algorithm 1 of the paper on vectors, with the changes of ``fit_step``."""
    first, second = 0.0, 0.0
    for step, gradient in enumerate(gradients, 1):
        gradient = gradient / max(1, np.linalg.norm(gradient))
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        ahead = first / (1 - 0.9**step)
        ahead = ahead / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
        layers = layers - rate / np.sqrt(1 + (step - 1) / 200) * ahead
    return layers


@few(max_examples=10)
@given(SEEDS, st.integers(1, 6), st.sampled_from([0.1, 40.0]), st.floats(0.01, 1))
def test_steps_of_a_fit_are_adam_s_by_short_gradients(seed, steps, scale, rate):
    layers = tree(seed)
    state = energy.begin_fit(layers)
    assert state.step == 0 and state.layers is layers
    gradients = [tree(seed + 1 + number, scale) for number in range(steps)]
    step = jax.jit(energy.fit_step)
    for gradient in gradients:
        state = step(state, gradient, rate)
    assert state.step == steps
    expected = adam(flat(layers), [flat(one) for one in gradients], rate)
    np.testing.assert_allclose(flat(state.layers), expected, rtol=1e-3, atol=1e-4)
    still = step(energy.begin_fit(layers), jax.tree.map(jnp.zeros_like, layers), rate)
    np.testing.assert_array_equal(flat(still.layers), flat(layers))


@functools.cache
def fitting(kind):
    config = ForecastConfig(kind=kind, lookback=4, every=2, ahead=3, hidden_sizes=(4,))
    model = energy.forecaster(config)
    layers = model.init(jax.random.key(0))
    layers = jax.tree.map(lambda leaf: leaf + 0.1, layers)
    state = energy.begin_fit(layers)

    @jax.jit
    def drawn(key, trace, known, step):
        return energy.fit_gradient(
            key, model, state._replace(step=step), trace, known, 5
        )

    one = jax.value_and_grad(lambda layers, *given: model.loss(layers, *given))
    each = jax.vmap(lambda trace, end: one(layers, trace, end[None]), (None, 0))
    return drawn, jax.jit(each)


@pytest.mark.slow
@few(max_examples=24)
@given(
    SEEDS, st.sampled_from(["lr", "svm", "bp"]), st.integers(0, 6),
    st.integers(0, 14), st.integers(0, 9),
)  # fmt: skip
def test_gradients_are_of_windows_that_are_known(seed, kind, first, number, step):
    power = np.float32(np.random.default_rng(seed).uniform(0, 9, 20))
    known = first, min(first + number, 20)
    hidden = np.where((np.arange(20) < known[1]), power, np.float32(1e6))
    trace = Trace(hidden, np.float32(2.0))
    drawn, each = fitting(kind)
    loss, gradient = drawn(jax.random.key(seed), trace, known, step)
    ends = np.arange(known[0] + 1, known[1] - 3 + 1)
    if not len(ends):
        assert loss == 0 and not flat(gradient).any()
        return
    losses, gradients = each(trace, np.arange(21))
    losses, gradients = jax.tree.map(lambda x: x[ends], (losses, gradients))
    # A mean over some of the valid windows only.
    assert min(losses) - 1e-4 <= loss <= max(losses) + 1e-4
    for leaf, leaves in zip(*map(jax.tree.leaves, (gradient, gradients)), strict=True):
        assert (leaf >= leaves.min(0) - 1e-3).all()
        assert (leaf <= leaves.max(0) + 1e-3).all()
    again, _ = drawn(jax.random.key(seed), trace, known, step)
    assert again == loss
