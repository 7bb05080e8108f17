"""Attackers: both find what is there, and neither finds what is not."""

import jax
import numpy as np
import pytest

from jaxanon.attacks import ATTACKERS, attackers

BOTH = pytest.mark.parametrize("name", sorted(ATTACKERS))


def waves(rows, seed, told=True):
    """Two classes that differ in frequency alone, at random phase."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=rows)
    time = np.arange(32) / 32
    cycles = 2 + 3 * labels[:, None] if told else 2
    phase = 2 * np.pi * rng.uniform(size=(rows, 1))
    windows = np.sin(2 * np.pi * cycles * time + phase)
    return np.float32(windows[..., None] + 0.1 * rng.normal(size=(rows, 32, 1))), labels


@BOTH
@pytest.mark.parametrize(("told", "low", "high"), [(True, 0.9, 1.0), (False, 0.4, 0.6)])
def test_finds_what_is_there_and_only_that(name, told, low, high):
    predict = attackers.get(name).fit(jax.random.key(0), *waves(400, 0, told), 2)
    windows, labels = waves(400, 1, told)
    # At chance the accuracy over 400 windows has a standard deviation of 0.025.
    assert low <= np.mean(predict(windows) == labels) <= high
    assert predict(windows[:0]).shape == (0,)


@BOTH
def test_the_key_decides(name):
    windows = waves(60, 1, told=False)[0]
    fit = lambda seed: attackers.get(name).fit(
        jax.random.key(seed), *waves(400, 0, told=False), 2
    )
    one, again, other = (fit(seed)(windows) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert np.any(one != other)


def test_features_by_hand():
    window = np.array([1.0, 3.0, 1.0, 3.0]).reshape(1, 4, 1)
    # The window; mean 2, deviation 1, least 1, greatest 3, step 2; of the spectrum
    # (without the mean) frequency 1 holds nothing and frequency 2 |1-3+1-3| / 4.
    want = [1, 3, 1, 3, 2, 1, 1, 3, 2, 0, 1]
    np.testing.assert_allclose(attackers.features(window), [want], atol=1e-6)


def test_an_unknown_name_is_refused():
    message = r"attackers must be among \['forest', 'mlp'\], got 'svm'"
    with pytest.raises(ValueError, match=message):
        attackers.get("svm")
