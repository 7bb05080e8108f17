"""Fidelity of synthetic windows: closed forms, SciPy, sums by hand, copies."""

import jax
import numpy as np
import pytest
from scipy import linalg

from jaxanon import metrics

RNG = np.random.default_rng(0)


def gaussian(count, mean=0.0, shape=(2, 2), seed=0):
    return mean + np.random.default_rng(seed).normal(size=(count, *shape))


def test_mmd_of_gaussians_is_the_integral():
    """E k of N(0, I) and N(m, I) is (s²/(s² + 2))^(d/2) exp(-|m|²/(2 (s² + 2)))."""
    s, d, m = 1.5, 4, 0.6
    share = (s**2 / (s**2 + 2)) ** (d / 2)
    want = 2 * share * (1 - np.exp(-d * m**2 / (2 * (s**2 + 2))))
    found = [
        metrics.mmd(
            gaussian(1000, seed=2 * n), gaussian(1000, m, seed=2 * n + 1), bandwidth=s
        )
        for n in range(4)
    ]
    assert np.mean(found) == pytest.approx(want, rel=0.1)
    # The mean over one distribution is 0; with bias it would be about 2 / N.
    found = [
        metrics.mmd(gaussian(50, seed=2 * n), gaussian(50, seed=2 * n + 1), bandwidth=s)
        for n in range(40)
    ]
    error = np.std(found) / np.sqrt(40)
    assert abs(np.mean(found)) < 3 * error and 3 * error < 0.02


def test_mmd_by_hand_with_the_median_for_its_bandwidth():
    real = np.array([0.0, 2.0, 6.0]).reshape(3, 1, 1)  # Distances 2, 4, 6: 4.
    other = np.array([0.0, 4.0]).reshape(2, 1, 1)
    k = lambda d: np.exp(-(d**2) / (2 * 4**2))
    within, across = (
        (k(2) + k(4) + k(6)) / 3,
        (k(0) + k(4) + 2 * k(2) + k(6) + k(2)) / 6,
    )
    assert metrics.mmd(real, other) == pytest.approx(within + k(4) - 2 * across)


def test_frechet_distance_is_scipy_s():
    one = RNG.normal(size=(200, 5)) @ RNG.normal(size=(5, 5))
    other = 1 + RNG.normal(size=(150, 5)) @ RNG.normal(size=(5, 5))
    a, b = (np.cov(x.T, ddof=0) for x in (one, other))
    root = np.real(linalg.sqrtm(a @ b))
    gap = one.mean(0) - other.mean(0)
    want = gap @ gap + np.trace(a + b - 2 * root)
    assert metrics.frechet_distance(one, other) == pytest.approx(want, rel=1e-6)
    assert metrics.frechet_distance(other, one) == pytest.approx(want, rel=1e-6)
    assert metrics.frechet_distance(one, one) == pytest.approx(0, abs=1e-6)
    flat = one * [1, 1, 1, 1, 0]  # A singular covariance.
    assert np.isfinite(metrics.frechet_distance(flat, other))


def test_autocorrelations_are_numpy_s():
    real, other = gaussian(5, shape=(12, 2)), gaussian(7, shape=(12, 2), seed=1)

    def by_numpy(windows):
        found = []
        for window in windows:
            for channel in (window - window.mean(0)).T:
                full = np.correlate(channel, channel, mode="full")[11:]
                found.append(full[1:5] / full[0])
        return np.array(found).reshape(len(windows), 2, 4).mean(0)

    want = np.abs(by_numpy(real) - by_numpy(other)).mean()
    assert metrics.autocorrelation_error(real, other, max_lag=4) == pytest.approx(want)
    # The default is half a window, and a constant at any level gives 0.
    assert metrics.autocorrelation_error(real, other) == metrics.autocorrelation_error(
        real, other, max_lag=6
    )
    still = np.full((3, 12, 2), 0.1)
    assert metrics.autocorrelation_error(still, 0 * still) == 0


def test_correlations_of_channels_are_numpy_s():
    mix = RNG.normal(size=(3, 3))
    real, other = gaussian(6, shape=(9, 3)) @ mix, gaussian(4, shape=(9, 3))
    one, two = (np.corrcoef(x.reshape(-1, 3).T) for x in (real, other))
    want = (abs(one - two)[0, 1] + abs(one - two)[0, 2] + abs(one - two)[1, 2]) / 3
    assert metrics.cross_channel_error(real, other) == pytest.approx(want)
    still = real * [1, 1, 0] + 0.1
    want = (abs(one[0, 2]) + abs(one[1, 2])) / 3
    assert metrics.cross_channel_error(still, real) == pytest.approx(want)


def test_nearest_windows_are_those_of_a_loop():
    windows, training = gaussian(6, shape=(5, 2)), gaussian(9, shape=(5, 2), seed=1)
    want = [
        min(np.sqrt(np.mean((one - other) ** 2)) for other in training)
        for one in windows
    ]
    np.testing.assert_allclose(metrics.nearest_distances(windows, training), want)
    # Far from zero, a copy is exact to the last bit.
    assert metrics.nearest_distances(training[2:3] + 1e6, training + 1e6)[0] == 0


def test_copies_are_found_and_others_are_not():
    training, held_out = gaussian(300, seed=1), gaussian(400, seed=2)
    honest = metrics.memorization(training, gaussian(400, seed=3), held_out)
    assert honest["copies"] == pytest.approx(0.05, abs=0.03)
    assert honest["synthetic"] == pytest.approx(honest["held_out"], rel=0.15)
    half = np.concatenate([training[:100], gaussian(100, seed=4)])
    found = metrics.memorization(training, half, held_out, fraction=0.1)
    assert found["copies"] == pytest.approx(0.55, abs=0.05)
    assert found["synthetic"] < 0.5 * found["held_out"]
    # With eight discrete states, windows match training windows without being copies.
    states = np.eye(8)[:, :, None]
    seen, other = states[:6], np.tile(states, (5, 1, 1))
    found = metrics.memorization(other, seen, other)
    assert found == {"synthetic": 0.0, "held_out": 0.0, "copies": pytest.approx(0.05)}
    copied = metrics.memorization(np.tile(seen, (5, 1, 1)), seen, other)
    assert copied["copies"] == pytest.approx(0.05 / 0.75)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: metrics.mmd(np.zeros((1, 2, 1)), np.zeros((3, 2, 1))),
            "at least 2, with",
        ),
        (
            lambda: metrics.mmd(np.zeros((3, 2, 1)), np.zeros((3, 2, 1))),
            "must be > 0 and finite, got 0",
        ),
        (lambda: metrics.mmd(np.zeros((3, 2, 1)), np.zeros((3, 3, 1))), r"\(3, 3, 1\)"),
        (
            lambda: metrics.frechet_distance(np.zeros((3, 2)), np.zeros((1, 2))),
            "with N >= 2",
        ),
        (
            lambda: metrics.autocorrelation_error(
                np.zeros((1, 4, 1)), np.zeros((1, 4, 1)), max_lag=4
            ),
            r"max_lag must be in \[1, 4\), got 4",
        ),
        (
            lambda: metrics.cross_channel_error(
                np.zeros((1, 4, 1)), np.zeros((1, 4, 1))
            ),
            "at least two channels to be correlated, got 1",
        ),
        (
            lambda: metrics.nearest_distances(np.zeros((0, 4, 1)), np.zeros((1, 4, 1))),
            "N at least 1",
        ),
        (
            lambda: metrics.memorization(*[np.zeros((2, 4, 1))] * 3, fraction=1.0),
            r"fraction must be in \(0, 1\), got 1.0",
        ),
        (
            lambda: metrics.mmd(*[np.eye(3)[..., None]] * 2, bandwidth=np.inf),
            "must be > 0 and finite, got inf",
        ),
        (
            lambda: metrics.nearest_distances(*[np.zeros((2, 4, 0))] * 2),
            r"got shapes \(2, 4, 0\)",
        ),
    ],
)
def test_says_what_was_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "metric",
    [
        metrics.mmd,
        metrics.autocorrelation_error,
        metrics.cross_channel_error,
        metrics.nearest_distances,
        lambda real, made: metrics.frechet_distance(real[:, 0], made[:, 0]),
        lambda real, made: metrics.discriminative_score(jax.random.key(0), real, made),
        lambda real, made: metrics.predictive_score(jax.random.key(0), real, made),
        lambda real, made: metrics.transfer_scores(
            jax.random.key(0), (real, np.arange(12) % 2), (made, np.arange(12) % 2), 2
        ),
    ],
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_like_nothing(metric, value):
    real = gaussian(12)
    made = real.copy()
    made[[3, 7], 0] = value  # NaN alone gives the discriminator no information.
    names = "real", "synthetic"
    if metric is metrics.nearest_distances:
        names = "windows", "training"
    with pytest.raises(
        ValueError, match=f"{names[1]} must be finite, got 2 rows .* the first at 3"
    ):
        metric(real, made)
    with pytest.raises(ValueError, match=f"{names[0]} must be finite, got 2 rows"):
        metric(made, real)
