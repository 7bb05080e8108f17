"""Forecasters: linear ones against NumPy and scikit-learn, all against persistence."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.svm import SVR

from jaxanon import energy, metrics
from jaxanon.energy import ForecastConfig, Trace
from jaxanon.energy.forecasting import KINDS

SMALL = {"lookback": 24, "every": 2, "ahead": 4, "hidden_sizes": (16,), "features": 8}


def wave(minutes=2 * 1440):
    """Twelve minutes on and twelve off with noise, so persistence fails half of it."""
    rng = np.random.default_rng(0)
    on = (np.arange(minutes) // 12) % 2
    power = np.float32(on * rng.normal(100, 5, minutes))
    return Trace(jnp.asarray(np.maximum(power, 0)), jnp.float32(100))


@functools.partial(jax.jit, static_argnames=("model", "steps", "batch_size"))
def fitted(model, key, trace, steps, learning_rate=0.02, batch_size=64, known=None):
    known = (0, len(trace.power)) if known is None else known

    def one(state, _):
        loss, gradient = energy.fit_gradient(
            key, model, state, trace, known, batch_size
        )
        return energy.fit_step(state, gradient, learning_rate), loss

    layers = model.init(jax.random.fold_in(key, 7))
    return jax.lax.scan(one, energy.begin_fit(layers), length=steps)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_begin_as_persistence_and_beat_it(kind):
    model = energy.forecaster(ForecastConfig(kind=kind, **SMALL))
    trace, key = wave(), jax.random.key(0)
    ends = jnp.arange(1440, 2876)
    held = energy.persistence(trace, ends, 4)
    predict = jax.jit(model.predict)
    chex.assert_trees_all_close(predict(model.init(key), trace, ends), held, rtol=1e-5)
    state, losses = fitted(model, key, trace, 200, known=(0, 1440))
    losses = np.asarray(losses)
    assert losses[-20:].mean() < losses[:5].mean()
    truth = np.asarray(trace.power)[np.asarray(ends)[:, None] + np.arange(4)]
    predictions = predict(state.layers, trace, ends)
    assert (predictions >= 0).all()
    assert metrics.mase(truth, predictions, held) < 0.8


def rows_of(model_steps, trace, ends, every):
    """Inputs of the models by plain loops: means, then sines and cosines."""
    watts, found = np.asarray(trace.power), []
    power = watts / float(trace.scale)
    for end in np.asarray(ends):
        row = []
        for step in range(model_steps):
            start = end - (model_steps - step) * every
            minutes = np.maximum(np.arange(start, start + every), 0)
            turn = 2 * np.pi * start / 1440
            last, level = power[max(end - 1, 0)], np.log1p(watts[minutes] / 0.2) / 3
            row += [power[minutes].mean(), power[minutes].mean() - last, level.mean()]
            row += [np.sin(turn), np.cos(turn)]
        found.append(row)
    return np.array(found)


def changes(trace, ends, ahead):
    power, ends = np.asarray(trace.power) / float(trace.scale), np.asarray(ends)
    minutes = ends[:, None] + np.arange(ahead)
    return power[minutes] - power[np.maximum(ends - 1, 0)][:, None]


@pytest.mark.slow
def test_linear_regression_is_least_squares():
    config = ForecastConfig(kind="lr", lookback=4, every=2, ahead=2)
    model = energy.forecaster(config)
    rng = np.random.default_rng(1)
    trace = Trace(jnp.asarray(rng.uniform(0, 9, 1400), jnp.float32), jnp.float32(3))
    ends = jnp.arange(4, 1398)
    x, y = rows_of(2, trace, ends, 2), changes(trace, ends, 2)
    x = np.column_stack([x, np.ones(len(x))])
    # Adjacent times are nearly equal, so drop weights that cancel.
    weights = np.linalg.lstsq(x, y, rcond=1e-4)[0]
    best = np.mean((x @ weights - y) ** 2)
    # NumPy's solution, as layers, has the least loss.
    kernel, bias = jnp.float32(weights[:-1]), jnp.float32(weights[-1])
    layers = {"dense_1": {"kernel": kernel, "bias": bias}}
    np.testing.assert_allclose(model.loss(layers, trace, ends), best, rtol=1e-4)
    state, _ = fitted(model, jax.random.key(0), trace, 600, batch_size=256)
    np.testing.assert_allclose(model.loss(state.layers, trace, ends), best, rtol=0.02)


@pytest.mark.slow
def test_the_linear_svm_is_scikit_learn_s():
    config = ForecastConfig(
        kind="svm", lookback=4, every=2, ahead=1, tolerance=0.1, penalty=0.01
    )
    model = energy.forecaster(config)
    rng = np.random.default_rng(1)
    trace = Trace(jnp.asarray(rng.uniform(0, 3, 300), jnp.float32), jnp.float32(1))
    ends = jnp.arange(4, 300)
    x, y = rows_of(2, trace, ends, 2), changes(trace, ends, 1)[:, 0]
    theirs = SVR(kernel="linear", epsilon=0.1, C=1 / (0.01 * len(x))).fit(x, y)
    kernel, bias = jnp.float32(theirs.coef_.T), jnp.float32(theirs.intercept_)
    layers = {"dense_1": {"kernel": kernel, "bias": bias}}
    best = model.loss(layers, trace, ends)
    slack = np.maximum(np.abs(theirs.predict(x) - y) - 0.1, 0).mean()
    by_hand = slack + 0.01 / 2 * np.sum(theirs.coef_**2)
    np.testing.assert_allclose(best, by_hand, rtol=1e-4)
    state, _ = fitted(model, jax.random.key(0), trace, 600, batch_size=256)
    # Theirs is the minimum, and ours is close.
    found = model.loss(state.layers, trace, ends)
    assert float(best) <= float(found) * 1.001 <= float(best) * 1.02


def test_nothing_is_learned_of_what_is_not_known_yet():
    model = energy.forecaster(ForecastConfig(kind="lr", **SMALL))
    trace, key = wave(), jax.random.key(0)
    where = np.arange(len(trace.power))
    put = lambda places: trace._replace(power=jnp.where(places, 9999.0, trace.power))
    later = put(where >= 100)
    one, _ = fitted(model, key, trace, 20, known=(0, 100))
    two, _ = fitted(model, key, later, 20, known=(0, 100))
    chex.assert_trees_all_equal(one, two)
    changed = put(where == 99)
    other, _ = fitted(model, key, changed, 20, known=(0, 100))
    assert (other.layers["dense_1"]["bias"] != one.layers["dense_1"]["bias"]).any()


def test_too_few_minutes_teach_nothing():
    model = energy.forecaster(ForecastConfig(kind="lr", **SMALL))
    state, losses = fitted(model, jax.random.key(0), wave(), 20, known=(0, 4))
    assert not losses.any() and not state.layers["dense_1"]["bias"].any()


@pytest.mark.slow
def test_minutes_before_the_first_are_the_first():
    model = energy.forecaster(ForecastConfig(kind="lr", **SMALL))
    key = jax.random.key(3)
    layers = {
        "dense_1": {"kernel": jax.random.normal(key, (60, 4)), "bias": jnp.ones(4)}
    }
    short = Trace(jnp.array([5.0, 7.0, 9.0, 8.0]), jnp.float32(2))
    padded = jnp.concatenate([jnp.full(1440, 5.0), short.power])
    early = model.predict(layers, short, jnp.array([2]))
    late = model.predict(layers, Trace(padded, short.scale), jnp.array([1442]))
    np.testing.assert_allclose(early, late, rtol=1e-4)


def test_means_fill_what_is_seen():
    with pytest.raises(ValueError, match="every must divide lookback, got 2 and 7"):
        ForecastConfig(lookback=7, every=2)


def test_steps_get_shorter_and_long_gradients_are_cut():
    """Adam's first step equals the rate; step 200 equals the rate divided by √2."""
    state = energy.begin_fit({"w": jnp.zeros(2)})
    first = energy.fit_step(state, {"w": jnp.array([30.0, 40.0])}, 0.5)
    np.testing.assert_allclose(first.layers["w"], [-0.5, -0.5], rtol=1e-5)
    # The gradient is clipped to (0.6, 0.8); Adam keeps a tenth of it.
    np.testing.assert_allclose(first.opt_state.mu["w"], [0.06, 0.08], rtol=1e-5)
    later = energy.fit_step(
        state._replace(step=jnp.int32(200)), {"w": jnp.array([0.3, 0.4])}, 0.5
    )
    np.testing.assert_allclose(later.layers["w"], -0.5 / np.sqrt(2), rtol=1e-5)
