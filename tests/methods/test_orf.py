"""Tests of ORF: leakage of features, and windows that leak less."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.feature_selection import f_classif

from jaxanon.methods.orf import orf
from jaxanon.training import trainer

methods_orf = importlib.import_module(
    "jaxanon.methods.orf"
)  # The module, not the builder.


def _drawn(rows=60, time=9, channels=2):
    rng = np.random.default_rng(0)
    labels = {"a": rng.integers(0, 3, rows), "b": rng.integers(0, 2, rows)}
    windows = rng.normal(size=(rows, time, channels))
    windows += 0.5 * labels["a"][:, None, None] * np.arange(channels)
    return np.float32(windows), labels


def _sums(windows, labels):
    sums = methods_orf.empty(*windows.shape[1:], {"a": 3, "b": 2})
    for part in np.array_split(np.arange(len(windows)), 2):
        own = {name: each[part] for name, each in labels.items()}
        sums = jax.jit(methods_orf.add_windows)(sums, windows[part], own)
    return sums


def test_leakage_is_the_correlation_ratio():
    windows, labels = _drawn()
    leaks = jax.jit(methods_orf.leakage)(_sums(windows, labels))
    rows = np.asarray(methods_orf.features(windows)).reshape(len(windows), -1)
    for name, classes in (("a", 3), ("b", 2)):
        # scikit-learn's F is the variance ratio per degree of freedom.
        f, _ = f_classif(rows, labels[name])
        f = f * (classes - 1) / (len(rows) - classes)
        np.testing.assert_allclose(
            leaks[name].ravel(), f / (1 + f), rtol=1e-3, atol=1e-5
        )
    assert leaks["a"][0, 1] > 0.5 > leaks["a"][0, 0]  # The mean of the second channel.


def test_a_constant_feature_has_no_leakage():
    windows, labels = _drawn()
    sums = _sums(windows * 0 + 2, labels)
    assert all(not each.any() for each in methods_orf.leakage(sums).values())
    assert not any(
        each.any()
        for each in methods_orf.leakage(
            _sums(windows[:0], {name: each[:0] for name, each in labels.items()})
        ).values()
    )


@pytest.mark.parametrize("time", [8, 9])
def test_chosen_frequencies_get_a_common_level_and_keep_their_shape(time):
    windows, _ = _drawn(time=time)
    chosen = np.zeros((time // 2, 2), bool)
    chosen[1:3, 0] = True
    power = np.full(chosen.shape, 0.5, np.float32)
    shown = jax.jit(methods_orf.normalise)(windows, chosen, power)
    before, after = (np.fft.rfft(x, axis=1)[:, 1:] / time for x in (windows, shown))
    np.testing.assert_allclose(after[:, ~chosen], before[:, ~chosen], atol=1e-5)
    np.testing.assert_allclose(shown.mean(1), windows.mean(1), atol=1e-5)
    # Two of them, 0.5 each.
    level = (np.abs(after[:, chosen]) ** 2).sum(1)
    np.testing.assert_allclose(level, 1.0, rtol=1e-4)
    ratio = after[:, chosen] / before[:, chosen]
    np.testing.assert_allclose(ratio[:, 0], ratio[:, 1], rtol=1e-3)
    np.testing.assert_allclose(ratio.imag, 0, atol=1e-3)


def test_means_and_deviations_that_are_removed_are_everyones():
    windows, _ = _drawn()
    removed = np.array([[True, False], [False, True]])
    common = np.float32([[7.0, 8.0], [3.0, 4.0]])
    shown = jax.jit(methods_orf.remove)(windows, removed, common)
    np.testing.assert_allclose(shown[..., 0].mean(1), 7.0, rtol=1e-5)
    np.testing.assert_allclose(shown[..., 1].std(1), 4.0, rtol=1e-4)
    np.testing.assert_allclose(
        shown[..., 1].mean(1), windows[..., 1].mean(1), atol=1e-5
    )
    np.testing.assert_allclose(shown[..., 0].std(1), windows[..., 0].std(1), rtol=1e-4)
    flat = jnp.ones((2, 5, 2))
    assert np.isfinite(methods_orf.remove(flat, removed, common)).all()
    chosen = jnp.ones((2, 2), bool)
    np.testing.assert_allclose(methods_orf.normalise(flat, chosen, common), flat, 1e-6)


@pytest.mark.slow
def test_amplitude_goes_and_frequency_stays(data):
    # Genders differ in amplitude, activities in frequency.
    run = trainer.train(orf(data.spec), data, epochs=3, progress=False)
    assert run.history[-1]["losses"]["gender leakage"] > 0.9
    shown = run.anonymize(jax.random.key(0), data.test.windows)
    gender, activity = (data.test.labels[name] for name in ("gender", "activity"))
    spread = lambda windows: windows.std((1, 2))
    raw = spread(data.test.windows)
    assert raw[gender == 0].max() < raw[gender == 1].min()
    np.testing.assert_allclose(spread(shown), spread(shown).mean(), rtol=0.02)
    spectrum = np.abs(np.fft.rfft(shown - 10, axis=1)).sum(2)[:, 1:4]
    np.testing.assert_array_equal(spectrum.argmax(1), activity)
    # In the units of the input.
    np.testing.assert_allclose(shown.mean(), data.test.windows.mean(), atol=0.1)


@pytest.mark.slow
def test_statistics_that_the_public_attribute_uses_stay(data):
    # Deviations leak the gender, and now means the activity. No frequency is chosen.
    def shifted(part):
        shift = np.float32(5 * part.labels["activity"])[:, None, None]
        return part._replace(windows=part.windows + shift)

    moved = data._replace(train=shifted(data.train), test=shifted(data.test))
    method = orf(data.spec, fraction=0.0)
    run = trainer.train(method, moved, epochs=1, progress=False)
    shown = run.anonymize(jax.random.key(0), moved.test.windows)
    np.testing.assert_allclose(shown.std(1), shown.std(1).mean(), rtol=1e-3)
    np.testing.assert_allclose(shown.mean(1), moved.test.windows.mean(1), rtol=1e-4)


def test_nothing_changes_before_the_first_round(data):
    method = orf(data.spec)
    state = method.init(jax.random.key(0))
    windows = jnp.asarray(data.test.windows)
    shown = jax.jit(method.anonymize)(jax.random.key(0), state, windows)
    np.testing.assert_allclose(shown, windows, rtol=1e-4, atol=1e-4)


def test_no_share_normalises_nothing(data):
    values = jnp.arange(6.0).reshape(3, 2)
    assert not methods_orf.greatest(values, 0.0).any()
    assert methods_orf.greatest(values, 1.0).all()
