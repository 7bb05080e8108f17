"""Mutual information: known values, and uninformative windows."""

import jax
import numpy as np
import pytest

from jaxanon import metrics

RNG = np.random.default_rng(0)
LABELS = np.arange(400) % 2
NOISE = np.float32(RNG.normal(size=(400, 8, 2)))


def mutual_information(windows, labels, seed=0, **options):
    return metrics.mutual_information_table(
        jax.random.key(seed), windows, labels, **options
    )


def test_a_component_that_tells_all_is_worth_the_entropy():
    windows = np.float32(LABELS[:, None, None] * 10.0 + 0.1 * NOISE[:, :1, :1])
    # One value per window, so one component, which determines the label: ln 2 nats.
    got = mutual_information(windows, LABELS)
    assert got == pytest.approx(np.log(2), abs=0.02)


def test_a_shifted_gaussian_has_the_integral_it_should():
    # I(X; Y) of x = ±1 + N(0, 1) is 0.486 bit = 0.337 nat.
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=4000)
    windows = (2 * labels - 1 + rng.normal(size=4000))[:, None, None]
    got = mutual_information(windows, labels, max_windows=4000)
    assert got == pytest.approx(0.337, abs=0.03)


def test_noise_and_silence_tell_nothing():
    assert mutual_information(NOISE, LABELS) < 0.03
    assert mutual_information(np.zeros((400, 8, 2)), LABELS) < 0.03


def test_people_met_once_tell_nothing():
    assert mutual_information(NOISE[:10], np.arange(10)) == 0.0


def test_components_are_averaged():
    windows = 0.1 * NOISE
    windows[:, 0, 0] += 10 * LABELS
    # The first component carries ln 2, the other fifteen carry nothing.
    got = mutual_information(windows, LABELS)
    assert got == pytest.approx(np.log(2) / 16, abs=0.02)
    first = mutual_information(windows, LABELS, components=1)
    assert first == pytest.approx(np.log(2), abs=0.02)


def test_the_key_draws_the_subset():
    one = mutual_information(NOISE, LABELS, max_windows=50)
    assert one == mutual_information(NOISE, LABELS, max_windows=50)
    other = mutual_information(NOISE, LABELS, 1, max_windows=50)
    assert one != other


@pytest.mark.parametrize(
    ("windows", "labels", "options", "message"),
    [
        (NOISE[0], LABELS, {}, r"windows must be float\[N, time, channels\].*\(8, 2\)"),
        (NOISE, LABELS[:3], {}, r"labels must be int\[400\], one per window.*\(3,\)"),
        (NOISE[:5], LABELS[:5], {}, r"at least 10 windows, got 5"),
        (NOISE, LABELS, {"components": 0}, r"components must be >= 1, got 0"),
    ],
)
def test_says_what_was_wrong(windows, labels, options, message):
    with pytest.raises(ValueError, match=message):
        mutual_information(windows, labels, **options)


def test_informativeness_is_a_share_of_the_entropy():
    """Four classes: one feature gives the pair, one the class, one nothing."""
    rng = np.random.default_rng(2)
    labels = rng.integers(4, size=4000)
    features = np.stack([labels // 2, labels, rng.normal(size=4000)], axis=1)
    features = features + 1e-3 * rng.normal(size=features.shape)
    found = metrics.informativeness(jax.random.key(0), features, labels)
    np.testing.assert_allclose(found, [0.5, 1.0, 0.0], atol=0.02)


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (np.zeros((20, 2, 1)), LABELS[:20], r"float\[N, features\] and labels"),
        (np.zeros((20, 2)), LABELS[:19], r"got shapes \(20, 2\) and \(19,\)"),
        (np.zeros((9, 2)), LABELS[:9], "at least 10 rows, got 9"),
        (np.zeros((20, 2)), LABELS[:20] * 0, "at least two classes, got only 0"),
    ],
)
def test_informativeness_says_what_was_wrong(features, labels, message):
    with pytest.raises(ValueError, match=message):
        metrics.informativeness(jax.random.key(0), features, labels)
