"""DPM-Solver++ (2M) against its algorithm in loops, and exact ODE solutions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.kernels import diffusion
from jaxanon.kernels.diffusion import reference

T = 12
BETAS = [0.02 + 0.03 * t for t in range(T)]
STEPS = np.array([12, 9, 7, 4, 2, 1, 0])


def _no_denoiser(xp):
    """An arbitrary function, so that no term can hide behind another."""
    return lambda x, t: xp.sin(x) + xp.asarray(t, x.dtype) / T


# Without signal, the noise does not determine x0.
@pytest.mark.slow
@pytest.mark.parametrize(
    "prediction, zero",
    [("noise", False), ("x0", False), ("v", False), ("x0", True), ("v", True)],
)
def test_it_is_the_papers_in_float64(prediction, zero):
    betas = reference.zero_terminal_snr(BETAS) if zero else BETAS
    with jax.enable_x64(True):
        schedule = diffusion.noise_schedule(BETAS, zero_terminal_snr=zero)
        x = np.random.default_rng(0).normal(size=(4, 3))
        run = functools.partial(
            diffusion.dpm_solver_sample, _no_denoiser(jnp), prediction=prediction
        )
        for steps in (STEPS, STEPS[:-1], STEPS[1:4]):
            expected = reference.dpm_solver(
                _no_denoiser(np), betas, x, steps.tolist(), prediction
            )
            got = run(schedule, x, steps)
            assert got.dtype == jnp.float64
            np.testing.assert_allclose(got, expected, rtol=1e-9)
        none = np.zeros(T + 1)
        first = reference.ddim(_no_denoiser(np), betas, x, [12, 9], none, 0, prediction)
        one = run(schedule, x, STEPS[:2])
        np.testing.assert_allclose(one, first, rtol=1e-9)
        ddim = reference.ddim(
            _no_denoiser(np), betas, x, STEPS.tolist(), none, 0, prediction
        )
        assert np.abs(run(schedule, x, STEPS) - ddim).max() > 0.01


def _errors(sample, counts):
    """Returns errors of ``sample(denoise_fn, schedule, x, steps)`` for a known best
    denoiser.

    The exact flow of N(1, 2²) at step t is also known: it keeps the number of standard
    deviations from the mean.
    """
    mean, std, start, end = 1.0, 2.0, 640, 64
    betas = [1e-4 + t * 2e-2 / 1000 for t in range(640)]
    product = reference.alpha_bar(betas)
    center = lambda t: np.sqrt(product[t]) * mean
    spread = lambda t: np.sqrt(product[t] * std**2 + 1 - product[t])
    x = center(start) + spread(start) * np.linspace(-2, 2, 5)
    exact = center(end) + spread(end) * np.linspace(-2, 2, 5)
    schedule = diffusion.noise_schedule(betas)

    def denoise(x, t):
        signal, level = schedule.signal[t], schedule.noise[t]
        excess = (x - signal * mean) / ((signal * std) ** 2 + level**2)
        return mean + signal * std**2 * excess

    found = []
    for count in counts:
        steps = np.linspace(start, end, count + 1).round().astype(np.int32)
        found.append(np.abs(sample(denoise, schedule, x, steps) - exact).max())
    return np.array(found)


@pytest.mark.slow
def test_half_as_long_steps_leave_a_fourth_of_the_error_and_ddims_half():
    dpm = functools.partial(diffusion.dpm_solver_sample, prediction="x0")
    ddim = lambda denoise, *given: diffusion.ddim_sample(
        denoise, jax.random.key(0), *given, prediction="x0"
    )
    with jax.enable_x64(True):
        second, first = (_errors(each, (24, 48, 96)) for each in (dpm, ddim))
    assert (second < first / 4).all()
    np.testing.assert_allclose(second[:-1] / second[1:], 4, atol=0.7)
    np.testing.assert_allclose(first[:-1] / first[1:], 2, atol=0.3)


@pytest.mark.slow
def test_repeated_levels_change_nothing():
    schedule = diffusion.noise_schedule(BETAS, zero_terminal_snr=True)
    x = jax.random.normal(jax.random.key(0), (2, 3))
    run = functools.partial(
        diffusion.dpm_solver_sample, _no_denoiser(jnp), schedule, x, prediction="v"
    )
    padded = np.array([12, 12, 9, 7, 7, 7, 4, 2, 1, 0, 0])
    np.testing.assert_allclose(run(padded), run(STEPS), rtol=1e-6)
    np.testing.assert_array_equal(run(np.array([4])), x)
    # Steps on the device are not checked, but their weights are right, too.
    np.testing.assert_allclose(run(jnp.array(padded)), run(STEPS), rtol=1e-6)


@pytest.mark.parametrize("prediction", ["noise", "x0", "v"])
def test_all_stays_finite_from_pure_noise_to_clean_data(prediction):
    schedule = diffusion.noise_schedule(BETAS, zero_terminal_snr=True)
    x = jax.random.normal(jax.random.key(0), (3,))

    def loss(scale, schedule):
        out = diffusion.dpm_solver_sample(
            lambda x, t: scale * x, schedule, x, STEPS, prediction=prediction
        )
        return jnp.sum(out)

    run = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
    value, (slope, levels) = run(0.5, schedule)
    assert jnp.isfinite(value) and jnp.isfinite(slope) and slope != 0
    for each in (levels.signal, levels.noise, levels.log_snr):
        assert jnp.isfinite(each).all() and (each != 0).any()


def _ddim(denoise, *given):
    return diffusion.ddim_sample(denoise, jax.random.key(0), *given)


@pytest.mark.parametrize("sample", [_ddim, diffusion.dpm_solver_sample])
def test_half_precision_is_carried_in_float32(sample):
    # With zero noise predicted, x grows by 1 / sqrt(1 - beta) per step, far below
    # bfloat16's spacing. With rounding at every step, x would not change.
    schedule = diffusion.noise_schedule([1e-3] * 100)
    steps = diffusion.diffusion_steps(100, 100)

    def denoise(x, t):
        assert x.dtype == jnp.bfloat16 and t.dtype == jnp.int32 and t.shape == ()
        return jnp.zeros_like(x)

    x = jnp.array([1.0, -2.0], jnp.bfloat16)
    got = jax.jit(functools.partial(sample, denoise))(schedule, x, steps)
    assert got.dtype == jnp.bfloat16
    expected = np.array([1.0, -2.0]) / np.sqrt(0.999**100)
    np.testing.assert_allclose(got.astype(np.float32), expected, rtol=2**-8)


def test_clients_side_by_side(over_a_mesh):
    schedule = diffusion.noise_schedule(BETAS)
    starts = jax.random.normal(jax.random.key(0), (3, 2, 4))
    steps = np.array([[12, 7, 3, 0], [9, 4, 0, 0], [5, 2, 1, 0]])
    run = lambda x, steps: diffusion.dpm_solver_sample(
        _no_denoiser(jnp), schedule, x, steps, prediction="v"
    )
    got = over_a_mesh(jax.vmap(run))(starts, steps)
    for i in range(3):
        np.testing.assert_allclose(got[i], run(starts[i], steps[i]), rtol=1e-5)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"steps": [0, 3]}, "steps must not increase"),
        ({"steps": [T + 1, 0]}, "steps must be in [0, 12]"),
        ({"steps": 3}, "steps must be int[n + 1]"),
        ({"prediction": "x1"}, "prediction must be one of"),
        ({"denoise_fn": lambda x, t: x[0]}, "output must have the shape of x"),
        ({"x": jnp.arange(3)}, "x must"),
    ],
)
def test_refuses(change, message):
    given = {"denoise_fn": lambda x, t: x, "x": jnp.ones((2, 3)), "steps": STEPS}
    given |= {"schedule": diffusion.noise_schedule(BETAS)} | change
    with pytest.raises((ValueError, TypeError)) as raised:
        diffusion.dpm_solver_sample(**given)
    assert message in str(raised.value)
