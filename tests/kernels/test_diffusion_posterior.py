"""A step's posterior against its formula, Gaussian conditioning and random walks."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxanon.kernels import diffusion
from jaxanon.kernels.diffusion import cases, reference

BETAS = cases.CASES["small"].betas


def _schedule(zero=False):
    return diffusion.noise_schedule(BETAS, zero_terminal_snr=zero)


def _close(got, expected, rtol=1e-6, atol=0.0):
    np.testing.assert_allclose(got, np.asarray(expected), rtol=rtol, atol=atol)


def _posteriors(pairs, x0, x_t):
    """Returns means and variances for all (to, t), in float64."""
    to, t = np.array(pairs).T
    with jax.enable_x64(True):
        schedule = diffusion.noise_schedule(BETAS)
        arguments = np.full(len(t), x0), np.full(len(t), x_t), t, to
        mean, variance = jax.jit(diffusion.diffusion_posterior)(schedule, *arguments)
        assert mean.dtype == variance.dtype == jnp.float64
        return np.asarray(mean), np.asarray(variance)


def test_posterior_is_the_formula_for_neighbours():
    pairs = [(t - 1, t) for t in range(1, len(BETAS) + 1)]
    mean, variance = _posteriors(pairs, 1.5, -0.75)
    expected = [reference.posterior(BETAS, 1.5, -0.75, t) for _, t in pairs]
    _close(mean, [m for m, _ in expected], rtol=1e-12)
    _close(variance, [v for _, v in expected], rtol=1e-11)


def test_posterior_of_any_two_steps_is_conditioning_of_gaussians():
    # (x_to, x_t) given x0 is Gaussian; condition one on the other.
    pairs = list(itertools.combinations(range(len(BETAS) + 1), 2))
    means, variances = _posteriors(pairs, 1.5, -0.75)
    products = reference.alpha_bar(BETAS)
    for (to, t), mean, variance in zip(pairs, means, variances, strict=True):
        shrink = np.sqrt(products[t] / products[to])
        own, late = 1 - products[to], 1 - products[t]
        gain = shrink * own / late
        expected = np.sqrt(products[to]) * 1.5
        expected += gain * (-0.75 - np.sqrt(products[t]) * 1.5)
        _close(mean, expected, rtol=1e-12)
        _close(variance, own - gain * shrink * own, rtol=1e-10, atol=1e-15)


@jax.jit
def _posterior_misses():
    """Returns scaled residuals of 4,000 forward walks about the posterior's mean."""
    t, to, x0 = 9, 4, jnp.full(4000, 2.0)
    schedule, products = _schedule(), reference.alpha_bar(BETAS)
    first, second = jax.random.normal(jax.random.key(0), (2, 4000))
    x_to = diffusion.diffuse(schedule, x0, first, to)
    kept = products[t] / products[to]
    x_t = np.sqrt(kept) * x_to + np.sqrt(1 - kept) * second
    mean, variance = diffusion.diffusion_posterior(schedule, x0, x_t, t, to)
    return (x_to - mean) / jnp.sqrt(variance)


def test_posterior_is_what_walks_do_and_other_variances_are_rejected():
    misses = np.asarray(_posterior_misses())
    assert stats.kstest(misses, "norm").pvalue > 0.01
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(misses * np.sqrt(wrong), "norm").pvalue < 1e-9


def test_posterior_at_its_ends():
    x0, x_t = jnp.array([1.0, 2.0]), jnp.array([-3.0, 0.5])
    for schedule, t in ((_schedule(), 7), (_schedule(zero=True), 12)):
        mean, variance = diffusion.diffusion_posterior(schedule, x0, x_t, t, 0)
        np.testing.assert_array_equal(mean, x0)
        assert variance == 0
        mean, variance = diffusion.diffusion_posterior(schedule, x0, x_t, t, t)
        np.testing.assert_array_equal(mean, x_t)
        assert variance == 0
    mean, variance = diffusion.diffusion_posterior(schedule, x0, x_t, 0, 0)
    np.testing.assert_array_equal(mean, x_t)
    # Pure noise has no information about x_to; only x0 has.
    mean, variance = diffusion.diffusion_posterior(schedule, x0, x_t, 12, 5)
    _close(mean, schedule.signal[5] * x0)
    _close(variance, schedule.noise[5:6] ** 2)
