"""Tests of DySan and its variants: the losses, and which networks train when."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small_dysan
import toy

from jaxanon import datasets, sweep
from jaxanon.methods import personalise
from jaxanon.methods.dysan import sanitizers
from jaxanon.methods.dysan.dysan import dysan, dysan_gen, dysan_msda, olympus
from jaxanon.training import trainer

pytestmark = pytest.mark.slow


SMALL = small_dysan.SMALL | {"inner_steps": 2}
HYPER = {"alpha": 0.2, "lambda_": 0.5}
GROUPS = ("sanitizer", "predictor", "discriminators", "averages")


@functools.cache
def _built(build, **settings):
    """Returns a method for the toy data, its prepared data and compiled round."""
    data = toy.data()
    method = build(data.spec, **SMALL | settings)
    prepared = method.prepare(datasets.by_client(data.train))
    return method, prepared, jax.jit(method.update)


def _round(build, rounds=1, hyper=None, params=None, **settings):
    """Returns the states before and after, and the last info."""
    method, prepared, update = _built(build, **settings)
    state = method.init(jax.random.key(0), **(hyper or {}))
    first = state = state._replace(params=state.params | (params or {}))
    info = {}
    for _ in range(rounds):
        state, info = update(jax.random.key(1), state, prepared)
    return first, state, {name: float(value) for name, value in info.items()}


def _moved(before, after):
    """Returns the parameter groups that a round changed."""
    differs = lambda one, two: bool(np.any(one != two))
    moved = jax.tree.map(differs, before.params, after.params)
    return {group for group in GROUPS if any(jax.tree.leaves(moved[group]))}


def test_what_the_sanitizer_pays_for():
    # 0.5 for the predictor's error, 0.2 for the discriminator's distance from 1/2,
    # and 0.3 for the mean change of each of 2 channels.
    before, after, info = _round(dysan, hyper=HYPER)
    expected = 0.5 * info["activity error"] + 0.2 * abs(0.5 - info["gender error"])
    expected += 0.3 * 2 * info["change"]
    np.testing.assert_allclose(info["sanitizer"], expected, rtol=1e-5)
    assert _moved(before, after) == set(GROUPS)


def _lengths(before, after):
    """Returns the change of every weight of the sanitizer."""
    pair = before.params["sanitizer"], after.params["sanitizer"]
    change = jax.tree.map(lambda one, two: abs(two - one).ravel(), *pair)
    return np.concatenate(jax.tree.leaves(change))


def test_olympus_changes_for_free_and_the_vector_takes_a_step_for_every_term():
    vector = {"optimization": "vector"}
    _, _, info = _round(olympus, hyper=HYPER, **vector)
    expected = 0.5 * info["activity error"] + 0.2 * abs(0.5 - info["gender error"])
    np.testing.assert_allclose(info["sanitizer"], expected, rtol=1e-5)
    # Adam's first step equals the learning rate. With a zero loss, the second step uses
    # the moments of the first: 0.09 / 0.19 over the root of 0.000999 / 0.001999.
    quiet = {"alpha": 0.0, "learning_rate": 1e-3}
    before, after, _ = _round(olympus, hyper=quiet, **vector)
    second = (0.09 / 0.19) / (0.000999 / 0.001999) ** 0.5
    np.testing.assert_allclose(
        np.median(_lengths(before, after)), 1e-3 * (1 + second), rtol=1e-3
    )
    before, after, _ = _round(dysan, hyper=quiet)
    np.testing.assert_allclose(np.median(_lengths(before, after)), 1e-3, rtol=1e-3)


def test_msda_is_one_of_dysans_models(data):
    msda, one = dysan_msda(data.spec, **SMALL), dysan(data.spec, **SMALL)
    assert (msda.config.alpha, msda.config.lambda_) == (0.6, 0.3)
    assert msda.config == one.config
    likes = [jax.eval_shape(m.init, jax.random.key(0)) for m in (msda, one)]
    chex.assert_trees_all_equal_shapes(*likes)


def test_a_run_in_released_forms(data):
    # A discriminator below chance lowers the loss; the predictor's error is averaged
    # over genders, and the networks see physical units.
    settings = {"goal": "published", "errors": "official", "standardized": False}
    method = dysan(data.spec, **SMALL, **settings)
    run = trainer.train(method, data, epochs=1, progress=False, hyper=HYPER)
    info = run.history[-1]["losses"]
    expected = 0.5 * info["activity error"] + 0.2 * (0.5 - info["gender error"])
    expected += 0.3 * 2 * info["change"]
    np.testing.assert_allclose(info["sanitizer"], expected, rtol=1e-5)
    # Windows are about 10, in g; a new sanitizer's output is about 0.
    assert abs(info["change"] - 10) < 1
    windows, key = data.test.windows, jax.random.key(2)
    shown = run.anonymize(key, windows)
    assert shown.shape == windows.shape and shown.dtype == np.float32
    assert abs(shown.mean()) < 2
    # Padding after a window does not change it; the noise does.
    np.testing.assert_allclose(run.anonymize(key, windows[:5]), shown[:5], rtol=1e-5)
    assert np.abs(run.anonymize(jax.random.key(3), windows) - shown).max() > 1e-5


def test_units_there_and_back(data):
    windows = jnp.asarray(data.test.windows)
    mean, std = (np.float32(x)[None, None] for x in (data.spec.mean, data.spec.std))
    for standardized in (True, False):
        config = dysan(data.spec, **SMALL, standardized=standardized).config
        given = (windows - mean) / std
        inside = sanitizers.scale_windows(data.spec, config, given)
        np.testing.assert_allclose(inside, given if standardized else windows, 1e-4)
        back = sanitizers.scale_windows(data.spec, config, inside, back=True)
        np.testing.assert_allclose(back, given, rtol=1e-4, atol=1e-4)


def test_gen_freezes_its_judges_before_the_sanitizer_begins():
    method, prepared, update = _built(dysan_gen, pretraining=2)
    state = method.init(jax.random.key(0))
    for expected in [{*GROUPS[1:]}, {*GROUPS[1:]}, {"sanitizer"}, {"sanitizer"}]:
        before = state
        state, _ = update(jax.random.key(1), state, prepared)
        assert _moved(before, state) == expected


def test_phases_go_on_for_one_client_where_training_left_them():
    method, *_ = _built(dysan_gen, pretraining=2)
    alone = jax.tree.map(lambda rows: rows[:1], datasets.by_client(toy.data().train))
    state = method.init(jax.random.key(0))._replace(round=jnp.int32(2))
    own, _ = personalise(method, jax.random.key(1), state, alone, num_rounds=1)
    assert int(own.round) == 3 and _moved(state, own) == {"sanitizer"}


@pytest.mark.filterwarnings("error")  # Stops before a slow compilation.
def test_training_warns_where_gens_sanitizer_never_begins():
    data = toy.data()
    method = dysan_gen(data.spec, **SMALL, pretraining=300)
    with pytest.raises(UserWarning, match="got 1: training ends before its last phase"):
        trainer.train(method, data, epochs=1, progress=False)
    with pytest.raises(UserWarning, match="got 1: training ends before its last phase"):
        sweep("dysan_gen", data, **SMALL, epochs=1, progress=False)


def test_gens_frozen_judges_normalise_by_their_averages():
    # Running averages change the errors; training normalises a batch by its own
    # statistics.
    for build, settings in [(dysan_gen, {"pretraining": 2}), (dysan, {})]:
        method, prepared, update = _built(build, **settings)
        state = method.init(jax.random.key(0))._replace(round=jnp.int32(2))
        other = jax.tree.map(lambda leaf: 1e-4 * leaf, state.params["averages"])
        moved = state._replace(params=state.params | {"averages": other})
        one, two = (
            update(jax.random.key(1), each, prepared)[1] for each in (state, moved)
        )
        differs = float(abs(one["activity error"] - two["activity error"]))
        assert (differs > 0) == (build is dysan_gen)


@pytest.mark.parametrize(
    ("build", "settings"), [(dysan_gen, {"pretraining": 2}), (dysan, {})]
)
def test_gens_judges_see_raw_windows_and_dysans_do_not(build, settings):
    # GEN's classifiers learn the same with another sanitizer.
    plain = _round(build, **settings)
    other = jax.tree.map(lambda leaf: leaf + 0.1, plain[0].params["sanitizer"])
    moved = _round(build, params={"sanitizer": other}, **settings)
    differs = jax.tree.map(
        lambda a, b: np.any(a != b),
        plain[1].params["predictor"],
        moved[1].params["predictor"],
    )
    assert any(jax.tree.leaves(differs)) == (build is dysan)


def test_the_released_loops_take_many_steps_and_stop_early():
    # No loss falls to a tenth of the first in one turn of 25, so all steps run; with a
    # recorded first loss of 100, 21 run.
    settings = {"inner_steps": 25, "early_stop": True}
    watch = _round(dysan, 0, **settings)[0].params["watch"]
    high = {"predictor": watch["predictor"]._replace(first=jnp.float32(100.0))}
    for given, steps in [(watch, 25), (watch | high, 21)]:
        _, after, info = _round(dysan, params={"watch": given}, **settings)
        counts = [int(state.count) for state in after.opt_state.values()]
        assert dict(zip(after.opt_state, counts, strict=True)) == {
            "sanitizer": 1,
            "predictor": steps,
            "discriminators": 25,
        }
        lasts = [float(each.last) for each in after.params["watch"].values()]
        np.testing.assert_allclose(info["classifiers"], sum(lasts), rtol=1e-6)


def _plain():
    """Returns toy data with waves of equal phase, which are easy to reconstruct."""
    data = toy.data()

    def part(windows):
        t, labels = np.arange(16)[None, :, None], windows.labels
        activity, gender = (labels[n][:, None, None] for n in ("activity", "gender"))
        wave = np.sin((activity + 1) * 2 * np.pi * t / 16)
        made = 10 + 3 * (1 + gender) * wave * np.ones((1, 1, 2))
        noise = np.random.default_rng(0).normal(0, 0.3, made.shape)
        return windows._replace(windows=np.float32(made + noise))

    return data._replace(train=part(data.train), test=part(data.test))


@functools.cache
def _grid():
    """Returns rounds of three models as one program.

    The program maps ``(states, data, num)`` to the states and the last info.
    """
    update = jax.vmap(_built(dysan)[0].update, (None, 0, None))

    @jax.jit
    def train(states, data, num):
        one = lambda state, info: update(jax.random.key(1), state, data)
        zeros = jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype),
            jax.eval_shape(one, states, None)[1],
        )
        step = lambda _, carry: one(*carry)
        return jax.lax.fori_loop(0, num, step, (states, zeros))

    return train


def _start(alpha, lambda_):
    hyper = {"alpha": alpha, "lambda_": lambda_, "learning_rate": 4e-3}
    return _built(dysan)[0].init(jax.random.key(0), **hyper)


def test_privacy_and_utility_are_what_their_weights_ask_for():
    # Losses for little change alone; for the activity; for the activity and no gender.
    asked = jnp.array([[0.0, 0.0], [0.0, 0.9], [0.6, 0.3]])
    prepared = _built(dysan)[0].prepare(datasets.by_client(_plain().train))
    states = jax.vmap(_start)(*asked.T)
    states, _ = _grid()(states, prepared, 300)
    found = []
    for _ in range(20):
        states, info = _grid()(states, prepared, 1)
        found.append([info[n] for n in ("change", "activity error", "gender error")])
    change, activity, gender = np.mean(found, axis=0)
    assert change[0] < 0.5 * change[2]
    assert activity[1] < 0.2 and activity[2] < 0.3
    assert gender[0] < 0.2 and gender[2] > 0.4


def test_a_grid_is_one_program():
    _, prepared, update = _built(dysan)
    grid = jnp.array([[0.1, 0.8], [0.5, 0.2], [0.8, 0.1]])
    _, many = _grid()(jax.vmap(_start)(*grid.T), prepared, 2)
    one = _start(*grid[1])
    for _ in range(2):
        one, info = update(jax.random.key(1), one, prepared)
    picked = jax.tree.map(lambda leaf: leaf[1], many)
    chex.assert_trees_all_close(picked, info, rtol=2e-3)
    other = jax.tree.map(lambda leaf: leaf[0], many)
    assert abs(other["sanitizer"] - info["sanitizer"]) > 0.01


def test_windows_too_short_and_unknown_settings(data):
    with pytest.raises(ValueError, match="at least 77 samples"):
        dysan(data.spec)
    with pytest.raises(TypeError, match="DySanConfig has no 'beta'; it has"):
        dysan(data.spec, beta=0.1)
