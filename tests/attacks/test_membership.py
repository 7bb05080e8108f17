"""Membership inference: likelihood ratios of known Gaussians, and valid runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon import attacks


def test_shadow_runs_are_with_and_without_and_each_has_a_key_of_its_own():
    def observe(key, example, member):
        told = jnp.stack([example, member]).astype(float)
        return {"told": told, "drawn": jax.random.normal(key, (1,))}

    seen = attacks.shadow(jax.random.key(0), observe, 3, 50)
    for member in (0, 1):
        for example in range(3):
            own = seen["told"][member, :, example]
            np.testing.assert_array_equal(own, np.tile([example, member], (50, 1)))
    drawn = np.ravel(seen["drawn"])
    assert len(np.unique(drawn)) == 300
    assert stats.kstest(drawn, "norm").pvalue > 0.01
    chunks = attacks.shadow(jax.random.key(0), observe, 3, 50, chunk=7)
    np.testing.assert_allclose(chunks["drawn"], seen["drawn"])
    np.testing.assert_array_equal(chunks["told"], seen["told"])


def gaussians(rng, runs, means, deviations):
    """Returns ``float[2, runs, examples, statistics]``, means and std.

    Means and std lack the runs axis.
    """
    shape = (2, runs, *np.shape(means)[1:])
    noise = rng.normal(size=shape)
    return np.expand_dims(means, 1) + np.expand_dims(deviations, 1) * noise


def test_ratios_are_those_of_the_densities():
    rng = np.random.default_rng(0)
    means = np.array([[[0.0, 1.0]], [[2.0, 1.5]]])  # Sides, one example, statistics.
    deviations = np.array([[[1.0, 0.5]], [[2.0, 0.7]]])
    known = gaussians(rng, 200_000, means, deviations)
    seen = gaussians(rng, 50, means, deviations)
    told = attacks.likelihood_ratios(known, seen)
    density = lambda side: stats.norm.logpdf(
        seen, means[side][None, None], deviations[side][None, None]
    ).sum(-1)
    np.testing.assert_allclose(told, density(1) - density(0), atol=0.3, rtol=0.02)
    # With equal std it is linear, so also between three values in a row.
    line = np.linspace(-1, 3, 5).reshape(1, 5, 1, 1) * np.ones((2, 1, 1, 2))
    told = attacks.likelihood_ratios(known, line, spread="pooled")
    np.testing.assert_allclose(np.diff(told[0, :, 0], 2), 0, atol=1e-9)
    variance = (1 + 4) / 2, (0.25 + 0.49) / 2
    slope = 2.0 / variance[0] + 0.5 / variance[1]
    np.testing.assert_allclose(np.diff(told[0, :, 0]), slope, rtol=0.03)


def test_each_example_has_a_threshold_of_its_own():
    """Examples differ by much more than membership does, like losses of networks."""
    rng = np.random.default_rng(0)
    easy = 10.0 * np.arange(8)[:, None]
    means = np.stack([easy, easy + 1.0])
    found = attacks.infer_members(
        gaussians(rng, 1_000, means, np.ones_like(means)), delta=1e-3
    )
    # Two Gaussians one standard deviation apart.
    assert found.auc == pytest.approx(stats.norm.cdf(1 / 2**0.5), abs=0.01)
    rate = stats.norm.sf(stats.norm.isf(0.1) - 1)
    assert found.true_positives[0.1] == pytest.approx(rate, abs=0.04)
    assert found.evidence.shape == (2, 500, 8)
    blind = gaussians(rng, 1_000, means.reshape(2, 1, 8), np.ones((2, 1, 8)))
    blind = blind.reshape(2, 8_000, 1, 1)  # All examples pooled.
    assert attacks.infer_members(blind, delta=1e-3).auc < 0.6


def test_what_never_varies_tells_nothing_and_what_was_never_met_not_everything():
    known = np.zeros((2, 100, 1, 2))
    assert (attacks.likelihood_ratios(known, known[:, :3]) == 0).all()
    known[1, :, :, 0] = 1.0  # Perfectly separated, to the precision of the runs.
    seen = np.array([0.0, 1.0]).reshape(2, 1, 1, 1) * np.array([1.0, 0.0])
    # A total variance of 1/4 over 100 runs: 1 / (2 * 0.0025).
    np.testing.assert_allclose(
        attacks.likelihood_ratios(known, seen).ravel(), [-200.0, 200.0]
    )


def test_alignments_and_log_odds_by_hand():
    moved = {"b": {"x": jnp.array([1.0, 2.0]), "y": jnp.array(3.0)}, "a": jnp.ones(3)}
    gradient = {
        "a": jnp.zeros(3),
        "b": {"x": jnp.array([0.0, 3.0]), "y": jnp.array(4.0)},
    }
    told = attacks.alignments(moved, gradient)
    np.testing.assert_allclose(told, [0.0, (2 * 3 + 3 * 4) / 5])
    logits = jnp.array([1.0, -2.0, 0.5])
    share = jax.nn.softmax(logits)
    for label in range(3):
        want = jnp.log(share[label] / (1 - share[label]))
        assert attacks.log_odds(logits, label) == pytest.approx(float(want), rel=1e-5)
    # The probability is 1 up to rounding.
    assert attacks.log_odds(jnp.array([60.0, 0.0]), 0) == 60.0


def test_says_what_was_wrong():
    good = np.zeros((2, 4, 1, 1))
    with pytest.raises(ValueError, match="runs must be >= 1, got 0"):
        attacks.shadow(jax.random.key(0), None, 1, 0)
    with pytest.raises(ValueError, match="chunk must be >= 1, got 0"):
        attacks.shadow(jax.random.key(0), None, 1, 1, chunk=0)
    with pytest.raises(
        ValueError, match=r"statistics must be float\[2, runs, exam.* 4"
    ):
        attacks.infer_members(good[:, :3], delta=0.1)
    with pytest.raises(ValueError, match="known must be finite; did a run diverge"):
        attacks.likelihood_ratios(good * np.nan, good)
    with pytest.raises(ValueError, match="known and seen must have the same examples"):
        attacks.likelihood_ratios(good, np.zeros((2, 1, 3, 1)))
    with pytest.raises(ValueError, match=r"spread must be one of \('own', 'pooled'\)"):
        attacks.likelihood_ratios(good, good, spread="wide")
