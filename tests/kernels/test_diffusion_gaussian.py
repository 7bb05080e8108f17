"""Samplers are exact for Gaussians with a known best denoiser and known moments."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon.kernels import diffusion
from jaxanon.kernels.diffusion import cases, reference

BETAS = cases.CASES["small"].betas
T = len(BETAS)
STEPS = diffusion.diffusion_steps(T, 5)
ALL_STEPS = diffusion.diffusion_steps(T, T)
# Sampling begins in standard noise; the data have another mean and scale.
MEAN, STD = 1.5, 0.4


def gaussian(schedule, mean, std, prediction="noise"):
    """Returns the best denoiser of N(mean, std²), in JAX."""

    def denoise(x, t):
        signal, level = schedule.signal[t], schedule.noise[t]
        excess = (x - signal * mean) / ((signal * std) ** 2 + level**2)
        x0, noise = mean + signal * std**2 * excess, level * excess
        return {"noise": noise, "x0": x0, "v": signal * noise - level * x0}[prediction]

    return denoise


def _padded(steps, length):
    """Returns steps padded with the last level: one compilation for all lengths."""
    return np.pad(np.array(steps), (0, length - len(steps)), mode="edge")


@functools.cache
def _sampler(variance):
    """Draws 20,000 samples of the Gaussian from standard noise; DDIM by default."""

    @jax.jit
    def run(key, truth, schedule, steps, eta):
        start, key = jax.random.split(key)
        x = jax.random.normal(start, (20_000,))
        arguments = gaussian(truth, MEAN, STD), key, schedule, x, steps
        if variance is None:
            return diffusion.ddim_sample(*arguments, eta=eta)
        return diffusion.ddpm_sample(*arguments, variance=variance)

    return run


def _draws(betas, steps, eta=1.0, variance=None):
    """Draws the same with a sampler that assumes ``betas``, along ``steps``."""
    truth, schedule = diffusion.noise_schedule(BETAS), diffusion.noise_schedule(betas)
    arguments = truth, schedule, _padded(steps, T + 1), jnp.float32(eta)
    draws = _sampler(variance)(jax.random.key(3), *arguments)
    return np.asarray(draws, np.float64)


def _could_be(draws, mean, variance):
    """Returns whether the sample fits N(mean, variance); wrong in 1 of 100 cases."""
    scaled = (draws - mean) / np.sqrt(variance)
    return stats.kstest(scaled, "norm").pvalue > 0.01


@pytest.mark.parametrize("stop", [10, 4, 0])
def test_ancestral_sampling_has_the_moments_of_the_recursion(stop):
    steps = tuple(range(T, stop - 1, -1))
    moments = reference.gaussian_moments(BETAS, MEAN, STD, steps, (0.0, 1.0), eta=1.0)
    mean, variance = moments[-1]
    draws = _draws(BETAS, steps, variance="posterior")
    assert _could_be(draws, mean, variance)
    for wrong in (2 / 3, 3 / 2):
        assert not _could_be(draws, mean, wrong * variance)
    # The test also detects a sampler with two thirds of the betas.
    thinner = tuple(beta * 2 / 3 for beta in BETAS)
    assert not _could_be(_draws(thinner, steps, variance="posterior"), mean, variance)


def test_wider_ancestral_variance_is_rejected_as_posterior_and_the_other_way():
    steps = tuple(ALL_STEPS[:-1])  # The last step of both adds no noise.
    mean, variance = reference.gaussian_moments(
        BETAS, MEAN, STD, steps, (0.0, 1.0), eta=1.0
    )[-1]
    assert not _could_be(_draws(BETAS, steps, variance="beta"), mean, variance)
    # By hand for one step: the two means agree; the variances are beta and posterior.
    draws = _draws(BETAS, (T, T - 1), variance="beta")
    mean, variance = reference.gaussian_moments(
        BETAS, MEAN, STD, (T, T - 1), (0.0, 1.0), eta=1.0
    )[-1]
    posterior = reference.posterior(BETAS, 0.0, 0.0, T)[1]
    assert _could_be(draws, mean, variance - posterior + BETAS[-1])


@pytest.mark.parametrize("eta", [0.5, 1.0])
def test_strided_steps_have_the_moments_of_the_recursion(eta):
    steps = tuple(STEPS[:-1])
    moments = reference.gaussian_moments(BETAS, MEAN, STD, steps, (0.0, 1.0), eta)
    mean, variance = moments[-1]
    draws = _draws(BETAS, steps, eta)
    assert _could_be(draws, mean, variance)
    for wrong in (2 / 3, 3 / 2):
        assert not _could_be(draws, mean, wrong * variance)
    # The same noise at every step would accumulate.
    rng = np.random.default_rng(0)
    once = np.broadcast_to(rng.normal(size=20_000), (T + 1, 20_000))
    denoise = reference.gaussian_denoiser(BETAS, MEAN, STD)
    same = reference.ddim(denoise, BETAS, rng.normal(size=20_000), steps, once, eta)
    assert not _could_be(same, mean, variance)


@jax.jit
def _three_points(schedule, steps):
    run = functools.partial(diffusion.ddim_sample, gaussian(schedule, MEAN, STD, "v"))
    x = jnp.arange(3.0)
    return run(jax.random.key(0), schedule, x, steps, prediction="v")


@functools.cache
def _affine(betas, steps, zero=False):
    """Returns offset and slope of deterministic DDIM, affine for a Gaussian."""
    with jax.enable_x64(True):
        schedule = diffusion.noise_schedule(betas, zero_terminal_snr=zero)
        at = np.asarray(_three_points(schedule, _padded(steps, len(betas) + 1)))
    assert at.dtype == np.float64 and abs(at[2] - 2 * at[1] + at[0]) < 1e-12
    return at[0], at[1] - at[0]


def test_deterministic_ddim_is_the_affine_map_of_the_recursion_at_every_step():
    moments = reference.gaussian_moments(BETAS, MEAN, STD, ALL_STEPS, (0.0, 1.0))
    for stop in (T, T - 1, 5, 1, 0):
        steps = tuple(range(T, stop - 1, -1))
        offset, slope = _affine(BETAS, steps)
        np.testing.assert_allclose([offset, slope**2], moments[T - stop], rtol=1e-10)
    for wrong in (2 / 3, 3 / 2):
        assert abs(slope**2 - wrong * moments[-1][1]) > 0.01


def test_deterministic_ddim_has_the_flow_of_the_gaussian_as_its_fine_limit():
    # The flow keeps (x - signal mean) / scale_t, where scale_t is the marginal's.
    betas = tuple(reference.linear(1000, 1e-4, 0.02))
    signal = np.sqrt(reference.alpha_bar(betas)[-1])
    slope = STD / np.sqrt(signal**2 * STD**2 + 1 - signal**2)
    flow = np.array([MEAN - slope * signal * MEAN, slope])
    errors = [
        np.abs(
            np.array(_affine(betas, tuple(diffusion.diffusion_steps(1000, n)))) - flow
        )
        for n in (50, 100, 200, 1000)
    ]
    # First order: twice the steps halve the error, and it becomes small.
    for coarse, fine in itertools.pairwise(errors[:3]):
        assert (1.7 < coarse / fine).all() and (coarse / fine < 2.3).all()
    assert (errors[-1] < 0.004).all() and errors[0][1] > 0.02
    for wrong in (2 / 3, 3 / 2):
        assert abs(errors[-1][1] + slope - np.sqrt(wrong) * slope) > 0.05


def test_only_zero_terminal_snr_samples_without_a_bias():
    # All steps keep a mean of signal * MEAN; pure noise has it if signal is 0.
    offset, _ = _affine(BETAS, tuple(STEPS), zero=True)
    np.testing.assert_allclose(offset, MEAN, rtol=1e-12)
    offset, slope = _affine(BETAS, tuple(STEPS))
    left = np.sqrt(reference.alpha_bar(BETAS)[-1])
    np.testing.assert_allclose(offset, MEAN * (1 - slope * left), rtol=1e-10)
    assert abs(offset - MEAN) > 0.1


def test_part_way_start_rewrites_what_was_noised():
    # N(5, 1) data, noised to step 4 and sampled to N(5, 1) again: x stays near.
    schedule = diffusion.noise_schedule(BETAS)
    denoise = gaussian(schedule, 5.0, 1.0, "v")

    @jax.jit
    def rewrite(key):
        keys = jax.random.split(key, 3)
        x0 = 5 + jax.random.normal(keys[0], (4000,))
        x_t = diffusion.diffuse(schedule, x0, jax.random.normal(keys[1], (4000,)), 4)
        steps = diffusion.diffusion_steps(4, 4)
        return x0, diffusion.ddpm_sample(
            denoise, keys[2], schedule, x_t, steps, prediction="v"
        )

    x0, rewritten = map(np.asarray, rewrite(jax.random.key(5)))
    product = reference.alpha_bar(BETAS)[4]
    _, variance = reference.gaussian_moments(
        BETAS, 5.0, 1.0, (4, 3, 2, 1, 0), (5 * np.sqrt(product), 1.0), eta=1.0
    )[-1]
    assert _could_be(rewritten, 5.0, variance)
    # With std 1, each step's slope is sqrt(alpha_bar_t / alpha_bar_to); they multiply.
    expected = product / np.sqrt(variance)
    correlation = np.corrcoef(x0, rewritten)[0, 1]
    assert abs(correlation - expected) < 4 * (1 - expected**2) / np.sqrt(4000)


def test_gradient_is_that_of_the_affine_map_and_survives_checkpoints():
    # Each step adds only (1 - slope signal) to the mean; see the test of the bias.
    schedule, key = diffusion.noise_schedule(BETAS), jax.random.key(0)

    def ends(mean, wrap):
        denoise = lambda x, t: gaussian(schedule, mean, STD, "v")(x, t)
        run = functools.partial(diffusion.ddim_sample, wrap(denoise), prediction="v")
        return run(key, schedule, jnp.float32(0.3), STEPS)

    slope_of = jax.jit(jax.grad(ends), static_argnums=1)
    _, slope = _affine(BETAS, tuple(STEPS))
    expected = 1 - slope * np.sqrt(reference.alpha_bar(BETAS)[-1])
    for wrap in (lambda fn: fn, jax.checkpoint):
        np.testing.assert_allclose(slope_of(MEAN, wrap), expected, rtol=1e-5)
