"""Moments of batches, against NumPy in float64 and scikit-learn."""

import jax
import numpy as np
import pytest
from sklearn.linear_model import Ridge

from jaxanon.models import feature_extraction


@pytest.fixture(scope="module")
def made():
    """Returns ``(x, labels, moments)`` of six batches."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 300)
    x = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5))
    x[:, 1] += 2.0 * label
    x = np.float32(0.1 * x)
    seen, add = (
        feature_extraction.init_moments(5, {"mode": 3}),
        jax.jit(feature_extraction.update_moments),
    )
    for rows in np.split(np.arange(300), 6):
        seen = add(seen, x[rows], {"mode": label[rows]})
    return x, label, seen


def test_moments_are_those_of_all_windows(made):
    x, label, seen = made
    assert float(seen.batches) == 6
    np.testing.assert_allclose(seen.mean, x.mean(0), atol=1e-6)
    np.testing.assert_allclose(seen.covariance, np.cov(x.T, bias=True), atol=1e-6)
    np.testing.assert_allclose(seen.shares["mode"], np.bincount(label) / 300, rtol=1e-6)
    want = np.stack(
        [np.mean((label == one)[:, None] * (x - x.mean(0)), 0) for one in range(3)]
    )
    np.testing.assert_allclose(seen.with_class["mode"], want, atol=1e-6)


@pytest.mark.parametrize("outlier", [0.0, 1e6])
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_an_offset_costs_no_digits(offset, outlier):
    """Of inputs with spreads near 1, as computed in float64 from the same inputs."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, 320)
    x = rng.normal(size=(320, 4)) + label[:, None] * [2.0, 0, 0, 0]
    x[:, 1] += x[:, 2]
    x = np.float32(x + offset)
    x[0, 3] += outlier  # In a column of its own, whose variance it dominates.
    seen = feature_extraction.init_moments(4, {"mode": 2})
    for rows in np.split(np.arange(320), 20):
        seen = feature_extraction.update_moments(seen, x[rows], {"mode": label[rows]})
    want = np.cov(x.T.astype(np.float64), bias=True)
    spread = np.sqrt(np.diagonal(want))
    scaled = (np.asarray(seen.covariance) - want) / np.outer(spread, spread)
    assert np.abs(scaled).max() < 1e-5
    weights = feature_extraction.ridge(seen, "mode", 0.1)
    scaled = (x - x.mean(0, dtype=np.float64)) / spread  # In float64.
    model = Ridge(alpha=32).fit(scaled, 2.0 * np.eye(2)[label] - 1)
    np.testing.assert_allclose(
        np.asarray(weights) * spread[None], model.coef_, atol=1e-4
    )


@pytest.mark.parametrize("penalty", [0.01, 1.0])
def test_ridge_is_scikit_learn_s(made, penalty):
    x, label, seen = made
    found = feature_extraction.ridge(seen, "mode", penalty)
    scaled = (x - x.mean(0)) / x.std(0)
    wanted = 2.0 * np.eye(3)[label] - 1
    want = Ridge(alpha=penalty * len(x)).fit(scaled, wanted).coef_ / x.std(0)
    np.testing.assert_allclose(found, want, rtol=2e-3, atol=2e-3)
