"""Schedules, noising, conversions and posteriors against formulas and by hand."""

import functools
import itertools

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.kernels import diffusion
from jaxanon.kernels.diffusion import cases, reference

BETAS = cases.CASES["small"].betas
KINDS = ("noise", "x0", "v")


@functools.cache
def _schedule(zero=False):
    return diffusion.noise_schedule(BETAS, zero_terminal_snr=zero)


def _close(got, expected, rtol=1e-6, atol=0.0):
    np.testing.assert_allclose(got, np.asarray(expected), rtol=rtol, atol=atol)


@pytest.mark.parametrize(
    ("make", "arguments", "expected", "unit"),
    [
        ("linear", (100, 1e-4, 0.05), 0.0782, 1e-4),  # PrivateHub
        ("quadratic", (100, 1e-4, 0.05), 0.169, 1e-3),
        ("linear", (100, 1e-3, 0.2), 2.0e-5, 1e-6),
        ("linear", (1000, 1e-4, 0.02), 4.0e-5, 1e-6),  # Ho et al.
    ],
)
def test_signal_left_at_the_end_is_the_published(make, arguments, expected, unit):
    fn = getattr(diffusion, f"{make}_noise_schedule")
    left = float(fn(*arguments).alpha_bar[-1])
    assert abs(left - expected) <= unit / 2
    num_steps, first, last = arguments
    wrong = fn(num_steps, first * 2 / 3, last * 2 / 3)
    assert abs(float(wrong.alpha_bar[-1]) - expected) > 5 * unit


@pytest.mark.parametrize(
    ("schedule_fn", "betas"),
    [
        (
            lambda: diffusion.linear_noise_schedule(50, 1e-4, 0.05),
            reference.linear(50, 1e-4, 0.05),
        ),
        (
            lambda: diffusion.quadratic_noise_schedule(50, 1e-4, 0.05),
            reference.quadratic(50, 1e-4, 0.05),
        ),
        (lambda: diffusion.cosine_noise_schedule(50), reference.cosine(50)),
        (lambda: diffusion.noise_schedule([0.5]), [0.5]),
    ],
)
def test_schedules_are_those_of_the_loops(schedule_fn, betas):
    schedule, products = schedule_fn(), np.array(reference.alpha_bar(betas))
    chex.assert_shape(jax.tree.leaves(schedule), (len(betas) + 1,))
    assert schedule.num_steps == len(betas)
    _close(schedule.signal, np.sqrt(products))
    _close(schedule.noise, np.sqrt(1 - products))
    odds = products[1:] / (1 - products[1:])
    _close(schedule.log_snr[1:], np.log(odds), 1e-5, 1e-5)
    # Index 0 is exactly the clean data.
    assert (schedule.signal[0], schedule.noise[0]) == (1, 0)
    assert schedule.log_snr[0] == jnp.inf


def test_uncut_cosine_is_the_formula_and_ends_without_signal():
    schedule = diffusion.cosine_noise_schedule(8, max_beta=1)
    time = np.arange(9) / 8
    squared = np.cos((time + 0.008) / 1.008 * np.pi / 2) ** 2
    _close(schedule.alpha_bar, squared / squared[0], atol=1e-7)
    assert schedule.signal[-1] == 0 and schedule.noise[-1] == 1


def test_small_betas_keep_their_digits_in_float32():
    # 1 - alpha_bar in float32 would be 1.2e-7 here, and off by a fifth.
    schedule = diffusion.noise_schedule([1e-7, 1e-7])
    _close(schedule.noise[1:] ** 2, [1e-7, 2e-7 - 1e-14], rtol=1e-6)
    _, variance = diffusion.diffusion_posterior(
        schedule, jnp.zeros(1), jnp.zeros(1), 2, 1
    )
    _close(variance, [0.5e-7], rtol=1e-6)


def test_rescaling_by_hand():
    # Signals .9, .6, .3 less .3, times .9 / .6: the first stays, the last becomes 0.
    signals = np.array([1, 0.9, 0.6, 0.3])
    betas = 1 - (signals[1:] / signals[:-1]) ** 2
    schedule = diffusion.noise_schedule(betas, zero_terminal_snr=True)
    _close(schedule.signal, [1, 0.9, 0.45, 0], atol=1e-7)
    assert schedule.signal[-1] == 0 and schedule.noise[-1] == 1
    assert schedule.log_snr[-1] == -jnp.inf


@pytest.mark.parametrize("make", ["linear", "quadratic", "cosine"])
def test_every_schedule_can_be_rescaled(make):
    arguments = (30,) if make == "cosine" else (30, 1e-3, 0.1)
    betas = getattr(reference, make)(*arguments)
    schedule = getattr(diffusion, f"{make}_noise_schedule")(
        *arguments, zero_terminal_snr=True
    )
    products = np.array(reference.alpha_bar(reference.zero_terminal_snr(betas)))
    _close(schedule.alpha_bar, products, rtol=2e-6)
    _close(schedule.noise**2, 1 - products, rtol=2e-6)
    assert schedule.alpha_bar[-1] == 0


@functools.partial(jax.jit, static_argnums=(4, 5))
def _converted(schedule, x0, noise, t, given, wanted):
    """Returns the true ``wanted``, and its conversion from the true ``given``."""
    x_t = diffusion.diffuse(schedule, x0, noise, t)
    velocity = diffusion.diffusion_velocity(schedule, x0, noise, t)
    truth = {"noise": noise, "x0": x0, "v": velocity}
    made = diffusion.convert_denoiser_output(
        schedule, x_t, truth[given], t, given, wanted
    )
    return truth[wanted], made


@pytest.mark.parametrize(("given", "wanted"), [*itertools.product(KINDS, KINDS)])
@hypothesis.settings(max_examples=15, deadline=None)
@hypothesis.given(
    st.integers(1, len(BETAS)), st.floats(-50, 50, width=32), st.integers(0, 99)
)
def test_conversions_give_what_was_hidden(given, wanted, t, centre, seed):
    x0 = centre + np.random.default_rng(seed).normal(size=(2, 3)).astype(np.float32)
    noise = np.random.default_rng(seed + 100).normal(size=(2, 3)).astype(np.float32)
    t = np.array([t, 1], np.int32)
    truth, made = _converted(_schedule(), x0, noise, t, given, wanted)
    # A noise level of 0.03 and a signal of 0.2 each lose that many digits.
    np.testing.assert_allclose(made, truth, atol=3e-4 * (1 + abs(centre)))


def test_forward_and_conversions_are_the_papers_in_float64():
    with jax.enable_x64(True):
        schedule = diffusion.noise_schedule(BETAS)
        rng = np.random.default_rng(0)
        x0, noise = rng.normal(size=(2, 12, 3))
        t = np.arange(1, 13)
        x_t = np.asarray(diffusion.diffuse(schedule, x0, noise, t))
        made = {
            given: diffusion.convert_denoiser_output(
                schedule, x_t, noise, t, given, "x0"
            )
            for given in KINDS
        }
        for row, step in enumerate(t):
            expected = reference.diffuse(BETAS, x0[row], noise[row], step)
            _close(x_t[row], expected, rtol=1e-12)
            products = reference.alpha_bar(BETAS)[step]
            for given in KINDS:
                expected = reference.clean(products, x_t[row], noise[row], given)
                _close(made[given][row], expected, rtol=1e-10)


def test_step_zero_is_clean_data():
    x0, noise = np.float32([[0.1, 1e30], [3.0, -2.0]]), np.ones((2, 2), np.float32)
    x = diffusion.diffuse(_schedule(), x0, noise, np.array([0, 12]))
    np.testing.assert_array_equal(x[0], x0[0])
    assert (x[1] != x0[1]).all()
    for given in KINDS:
        made = diffusion.convert_denoiser_output(
            _schedule(), x0, x0, 0, given, "noise" if given == "x0" else "x0"
        )
        np.testing.assert_array_equal(made, 0 * x0 if given == "x0" else x0)


def test_conversions_are_finite_without_signal():
    x_t, out = jnp.array([2.0, -1.0]), jnp.array([3.0, 0.5])
    schedule = _schedule(zero=True)

    @functools.partial(jax.jit, static_argnums=(1, 2))
    @functools.partial(jax.vmap, in_axes=(0, None, None))
    def convert(inputs, given, wanted):
        convert = lambda x_t, out: diffusion.convert_denoiser_output(
            schedule, x_t, out, 12, given, wanted
        )
        return convert(*inputs), jax.grad(convert, argnums=(0, 1))(*inputs)

    # v = -x0 there, and x_t is pure noise, so a noise does not determine x0, which is
    # 0.
    expected = {
        ("v", "x0"): -out,
        ("v", "noise"): x_t,
        ("x0", "v"): -out,
        ("x0", "noise"): x_t,
        ("noise", "x0"): 0 * out,
        ("noise", "v"): 0 * out,
    }
    for (given, wanted), value in expected.items():
        made, slopes = convert((x_t, out), given, wanted)
        np.testing.assert_array_equal(made, value)
        assert jnp.isfinite(jnp.stack(slopes)).all()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float64])
def test_dtypes_come_back_and_are_computed_wide(dtype):
    with jax.enable_x64(dtype == jnp.float64):
        schedule = diffusion.noise_schedule(BETAS)
        rng = np.random.default_rng(0)
        x0, noise = (jnp.asarray(v, dtype) for v in rng.normal(size=(2, 4, 3)))
        t = np.array([1, 5, 9, 12])
        run = jax.jit(
            lambda x0, noise: (
                diffusion.diffuse(schedule, x0, noise, t),
                diffusion.diffusion_velocity(schedule, x0, noise, t),
                diffusion.diffusion_posterior(schedule, x0, noise, t, t - 1)[0],
                diffusion.convert_denoiser_output(schedule, x0, noise, t, "v", "noise"),
            )
        )
        got = run(x0, noise)
        wide = run(x0.astype(jnp.float32), noise.astype(jnp.float32))
        for narrow, exact in zip(got, wide, strict=True):
            assert narrow.dtype == dtype
            # One final rounding at most.
            tolerance = max(float(jnp.finfo(dtype).eps), 1e-6)
            scale = 1 + np.abs(np.asarray(exact, np.float64))
            error = np.asarray(narrow, np.float64) - np.asarray(exact, np.float64)
            assert (np.abs(error) <= 0.51 * tolerance * scale + 1e-6).all()


def test_maps_over_steps_and_schedules_and_compiles_once():
    schedules = [_schedule(), _schedule(zero=True)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *schedules)
    x0, noise = jnp.arange(6.0).reshape(2, 3), jnp.ones((2, 3))
    noised = chex.assert_max_traces(lambda *inputs: diffusion.diffuse(*inputs), n=1)
    run = jax.jit(jax.vmap(noised, in_axes=(0, None, None, None)))
    for t in (3, 12, 0):
        found = run(stacked, x0, noise, jnp.int32(t))
        for row, schedule in zip(found, schedules, strict=True):
            _close(row, diffusion.diffuse(schedule, x0, noise, t))
    rows = diffusion.diffuse(_schedule(), x0, noise, jnp.array([3, 12]))
    _close(rows[1], diffusion.diffuse(_schedule(), x0[1], noise[1], 12))
