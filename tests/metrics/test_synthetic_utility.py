"""Utility of synthetic windows: Bayes errors, copies, and valid splits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon import metrics
from jaxanon.metrics import synthetic_utility
from jaxanon.models import forecaster

pytestmark = pytest.mark.slow

PLAIN = {"net": None, "hidden": (16,), "steps": 300}


def shifted(count, gap, seed):
    """Returns two classes at distance ``gap`` times the std, one number per window."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    return (gap * (labels - 0.5) + random.normal(size=count))[:, None, None], labels


def test_transfer_reaches_what_can_be_reached_and_shows_what_cannot():
    real, made = shifted(2000, 2.0, 0), shifted(2000, 2.0, 1)
    found = metrics.transfer_scores(jax.random.key(0), real, made, 2, **PLAIN)
    best = stats.norm.cdf(1.0)  # The boundary lies in the middle: 0.841.
    for name in ("synthetic_to_real", "real_to_synthetic", "real_to_real"):
        assert found[name] == pytest.approx(best, abs=0.03)
    # Random labels teach nothing; swapped labels teach the opposite.
    turned = made[0], 1 - made[1]
    found = metrics.transfer_scores(jax.random.key(0), real, turned, 2, **PLAIN)
    assert found["synthetic_to_real"] == pytest.approx(1 - best, abs=0.03)
    assert found["real_to_real"] == pytest.approx(best, abs=0.03)


def test_halves_hold_half_of_each_class_in_blocks_that_do_not_touch():
    labels = np.repeat([0, 2, 3, 4], [7, 2, 16, 500])
    first, second = synthetic_utility._halves("real", np.random.default_rng(0), labels)
    of = lambda half: [int(half[labels == label].sum()) for label in (0, 2, 3, 4)]
    assert of(second)[1:] == [1, 8, 240] and of(second)[0] in (3, 4)
    assert of(first)[1:3] == [1, 6] and of(first)[0] + of(second)[0] == 7
    assert not (first & second).any()
    blocks = second[-500:].reshape(25, 20)
    assert (blocks.std(axis=1) == 0).all()
    rows = np.flatnonzero(first[-500:])[:, None], np.flatnonzero(second[-500:])[None]
    assert np.abs(rows[0] - rows[1]).min() == 6  # Five windows lie between them.
    assert of(first)[3] >= 120


@pytest.mark.parametrize(("count", "alike"), [(400, 16), (48, 3), (24, 3)])
def test_neighbours_that_are_nearly_copies_teach_nothing_of_each_other(count, alike):
    """Adjacent windows are alike, and only that carries class information."""
    random = np.random.default_rng(5)

    def windows():
        drawn = np.repeat(random.normal(size=(-(-2 * count // alike), 8, 1)), alike, 0)
        return drawn[: 2 * count] + 0.05 * random.normal(size=(2 * count, 8, 1))

    quick = {"net": None, "hidden": (64,), "steps": 300}
    kinds = [(windows(), np.repeat([0, 1], count)) for _ in range(2)]

    def scores(real, made):
        each = []
        for seed in range(4):
            keys = jax.random.split(jax.random.key(seed))
            found = metrics.transfer_scores(keys[0], real, made, 2, **quick)
            told = metrics.discriminative_score(keys[1], real[0], made[0], **quick)
            each.append((found["real_to_real"], told))
        return np.mean(each, axis=0)

    transferred, told = scores(*kinds)
    assert transferred == pytest.approx(0.5, abs=0.2) and told < 0.25
    # A split of single windows would reward memorization.
    orders = [random.permutation(len(labels)) for _, labels in kinds]
    shuffled = [(x[o], y[o]) for (x, y), o in zip(kinds, orders, strict=True)]
    assert scores(*shuffled)[0] > 0.75


def test_a_discriminator_is_as_good_as_bayes():
    real = shifted(6000, 0.0, 2)[0]
    apart = lambda gap, seed: shifted(3000, 0.0, seed)[0] + gap
    score = lambda made: metrics.discriminative_score(
        jax.random.key(1), real, made, **PLAIN | {"steps": 1500}
    )
    assert score(apart(2.0, 3)) == pytest.approx(stats.norm.cdf(1.0) - 0.5, abs=0.04)
    assert score(apart(0.0, 4)) < 0.04  # Twice six hundred are scored.


def test_the_default_discriminator_reads_an_order():
    """Slopes go up or down, and their samples are alike as a set."""
    random = np.random.default_rng(0)
    up = np.linspace(-1, 1, 6)[None, :, None] + 0.05 * random.normal(size=(60, 6, 1))
    found = metrics.discriminative_score(jax.random.key(2), up, up[:, ::-1], steps=120)
    assert found == 0.5


def walk(count, coefficient, seed, time=12):
    """Returns a first-order autoregression with noise of std 1."""
    random = np.random.default_rng(seed)
    x = [random.normal(size=(count, 1)) / np.sqrt(1 - coefficient**2)]
    for _ in range(time - 1):
        x.append(coefficient * x[-1] + random.normal(size=(count, 1)))
    return np.stack(x, axis=1)


def test_forecasts_are_as_good_as_can_be_if_trained_on_the_same():
    quick = {"steps": 400, "hidden": 8, "batch": 64}
    score = lambda made: metrics.predictive_score(
        jax.random.key(3), walk(2000, 0.8, 0), made, **quick
    )
    best = np.sqrt(2 / np.pi)  # Mean of |e| for a standard normal e.
    assert score(walk(2000, 0.8, 1)) == pytest.approx(best, rel=0.03)
    # A model trained on alternating data predicts -0.8 x where 0.8 x is right.
    worse = score(walk(2000, -0.8, 2))
    spread = np.sqrt(1 + 1.6**2 / (1 - 0.8**2))
    assert worse == pytest.approx(best * spread, rel=0.15)


def test_an_untrained_forecaster_says_that_all_stays():
    windows = np.random.default_rng(0).normal(size=(5, 7, 2))
    net = forecaster.Forecaster(4)
    params = net.init(jax.random.key(0), jnp.zeros((1, 6, 2)))
    found = forecaster.Forecasts(net, params, jnp.zeros(0))
    want = np.abs(np.diff(windows, axis=1)).mean()
    assert forecaster.forecast_error(found, windows) == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda key, x: metrics.transfer_scores(
                key, (x, np.arange(20) % 2), (x[:3], [0, 0, 1]), 2
            ),
            "synthetic must have at least two windows of class 1, got 1",
        ),
        (
            lambda key, x: metrics.transfer_scores(key, (x, [0]), (x, [0]), 2),
            r"labels of real windows must be int\[20\], got int64\[1\]",
        ),
        (
            lambda key, x: metrics.transfer_scores(
                key, (x, np.arange(20) % 3), (x, np.arange(20) % 2), 2
            ),
            r"labels of real windows must be in \[0, 2\), got 2",
        ),
        (
            lambda key, x: metrics.transfer_scores(
                key, (x, np.arange(20) % 2), (x[:, :2], np.arange(20) % 2), 2
            ),
            r"equal time and channels, got shapes \(20, 3, 1\) and \(20, 2, 1\)",
        ),
        (
            lambda key, x: metrics.discriminative_score(key, x, x[:9]),
            r"N at least 10, .* \(9, 3, 1\)",
        ),
        (
            lambda key, x: metrics.predictive_score(key, x[:, :1], x[:, :1]),
            "at least two samples to predict one, got 1",
        ),
    ],
)
def test_says_what_was_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call(jax.random.key(0), np.zeros((20, 3, 1)))


def test_a_key_is_a_typed_one():
    with pytest.raises(TypeError, match="jax.random.key"):
        metrics.discriminative_score(0, np.zeros((20, 3, 1)), np.ones((20, 3, 1)))
