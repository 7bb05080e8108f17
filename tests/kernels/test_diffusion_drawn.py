"""Schedules, steps and guidance for drawn betas, shapes and predictions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import kernels

few = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 2**16)
KINDS = ("noise", "x0", "v")
kinds = st.sampled_from(KINDS)
shapes = st.sampled_from(((4,), (2, 3)))
betas = st.lists(st.floats(0.01, 0.6), min_size=4, max_size=4)
T = 4


def draw(seed, shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def levels(given_betas):
    """Returns alpha_bar from clean data on, and signal and noise levels, in float64."""
    kept = np.concatenate([[1.0], np.cumprod(1 - np.asarray(given_betas, float))])
    return kept, np.sqrt(kept), np.sqrt(1 - kept)


def spread(level, t, shape):
    """Returns the level at each row's step, with ones for the other axes."""
    level = level[np.asarray(t)]
    return (
        level.reshape(level.shape + (1,) * (len(shape) - level.ndim))
        if level.ndim
        else level
    )


@settings(max_examples=20, deadline=None)
@given(given_betas=betas)
def test_a_schedule_multiplies_what_each_step_leaves(given_betas):
    schedule = kernels.noise_schedule(given_betas)
    kept, signal, noise = levels(given_betas)
    assert schedule.num_steps == T
    np.testing.assert_allclose(schedule.alpha_bar, kept, rtol=1e-6)
    np.testing.assert_allclose(schedule.signal, signal, rtol=1e-6)
    np.testing.assert_allclose(schedule.noise, noise, rtol=1e-6, atol=1e-9)
    # Shifted and scaled: the first step is unchanged, the last has no signal.
    ends = kernels.noise_schedule(given_betas, zero_terminal_snr=True)
    expected = (signal[1:] - signal[-1]) * signal[1] / (signal[1] - signal[-1])
    np.testing.assert_allclose(ends.signal[1:], expected, rtol=1e-4, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(
    num_steps=st.integers(1, 20),
    ends=st.tuples(st.floats(1e-4, 0.2), st.floats(0.2, 0.9)),
    offset=st.floats(1e-3, 0.1),
)
def test_named_schedules_are_of_the_betas_that_their_papers_give(
    num_steps, ends, offset
):
    along = np.linspace(0, 1, num_steps)
    roots = np.sqrt(ends[0]) + along * (np.sqrt(ends[1]) - np.sqrt(ends[0]))
    expected = {
        "linear": (ends[0] + along * (ends[1] - ends[0])),
        "quadratic": roots**2,
    }
    made = {
        "linear": kernels.linear_noise_schedule(num_steps, *ends),
        "quadratic": kernels.quadratic_noise_schedule(num_steps, *ends),
    }
    for name, schedule in made.items():
        kept, _, _ = levels(expected[name])
        np.testing.assert_allclose(schedule.alpha_bar, kept, rtol=1e-4)
    at = np.arange(num_steps + 1) / num_steps
    cosine = np.cos((at + offset) / (1 + offset) * np.pi / 2) ** 2
    kept, _, _ = levels(np.minimum(1 - cosine[1:] / cosine[:-1], 0.999))
    found = kernels.cosine_noise_schedule(num_steps, offset=offset)
    np.testing.assert_allclose(found.alpha_bar, kept, rtol=1e-4, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(
    wrong=st.sampled_from((0.0, -0.1, 1.5, np.nan)),
    place=st.integers(0, 3),
    by=st.booleans(),
)
def test_betas_that_are_none_are_refused(wrong, place, by):
    given_betas = [0.1, 0.2, 0.3, 0.4]
    given_betas[place] = wrong
    with pytest.raises(ValueError, match=r"betas must be in \(0, 1\)"):
        kernels.noise_schedule(given_betas)
    make = kernels.linear_noise_schedule if by else kernels.quadratic_noise_schedule
    with pytest.raises(ValueError, match="first_beta and last_beta must have 0 <"):
        make(10, *((wrong, 0.5) if place % 2 else (0.5, wrong)))


steps_of_rows = st.one_of(
    st.integers(0, T), st.lists(st.integers(0, T), min_size=2, max_size=2)
)


@few
@given(given_betas=betas, seed=seeds, t=steps_of_rows)
def test_each_prediction_tells_the_other_two(given_betas, seed, t):
    shape = (2, 3)
    x0, noise = draw(seed, shape), draw(seed + 1, shape)
    schedule = kernels.noise_schedule(given_betas)
    _, signal, level = levels(given_betas)
    signal, level = spread(signal, t, shape), spread(level, t, shape)
    x_t = kernels.diffuse(schedule, x0, noise, t)
    np.testing.assert_allclose(x_t, signal * x0 + level * noise, rtol=1e-4, atol=1e-5)
    velocity = kernels.diffusion_velocity(schedule, x0, noise, t)
    np.testing.assert_allclose(
        velocity, signal * noise - level * x0, rtol=1e-4, atol=1e-5
    )
    # Step 0 has no noise, and x0 does not determine it.
    told = {"noise": noise * (level > 0), "x0": x0, "v": velocity}
    for given_kind in KINDS:
        output = {"noise": noise, "x0": x0, "v": velocity}[given_kind]
        for wanted in KINDS:
            found = kernels.convert_denoiser_output(
                schedule, x_t, output, t, given_kind, wanted
            )
            expected = np.asarray(output if wanted == given_kind else told[wanted])
            if wanted == "noise" and given_kind == "v":
                expected = np.asarray(noise)
            if wanted == "v" and given_kind == "x0":
                # Without noise, x0 does not determine v.
                expected = np.where(level > 0, velocity, found)
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-3)


@few
@given(
    given_betas=betas,
    seed=seeds,
    ends=st.lists(st.integers(0, T), min_size=2, max_size=2),
)
def test_a_posterior_is_bayes_rule_of_two_gaussians(given_betas, seed, ends):
    to, t = sorted(ends)
    x0, x_t = draw(seed, (2, 3)), draw(seed + 1, (2, 3))
    schedule = kernels.noise_schedule(given_betas)
    mean, variance = kernels.diffusion_posterior(schedule, x0, x_t, t, to)
    kept, signal, level = levels(given_betas)
    if to in (0, t):
        np.testing.assert_allclose(mean, x_t if to == t else x0, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(variance, 0, atol=1e-6)
        return
    # The prior of x_to is N(signal x0, level²); x_t = a x_to + noise of variance 1 -
    # a².
    a = signal[t] / signal[to]
    precision = 1 / level[to] ** 2 + a**2 / (1 - kept[t] / kept[to])
    pulled = signal[to] * x0 / level[to] ** 2 + a * x_t / (1 - kept[t] / kept[to])
    np.testing.assert_allclose(mean, pulled / precision, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(variance.ravel(), 1 / precision, rtol=1e-3)


@few
@given(
    given_betas=betas,
    seed=seeds,
    shape=shapes,
    kind=kinds,
    eta=st.sampled_from((0.0, 1.0)),
)
def test_one_step_lands_on_the_line_or_in_the_posterior(
    given_betas, seed, shape, kind, eta
):
    """DDIM reuses the predicted noise; DDIM at eta 1 and DDPM draw new noise."""
    x0, noise, t, to = draw(seed, shape), draw(seed + 1, shape), 3, 1
    schedule = kernels.noise_schedule(given_betas)
    _, signal, level = levels(given_betas)
    x = np.float32(signal[t] * x0 + level[t] * noise)
    output = {
        "noise": noise,
        "x0": x0,
        "v": np.float32(signal[t] * noise - level[t] * x0),
    }
    key = lambda: jax.random.clone(jax.random.key(seed))
    given_step = schedule, x, output[kind], t, to
    found = kernels.ddim_step(key(), *given_step, eta=eta, prediction=kind)
    mean, variance = kernels.diffusion_posterior(schedule, x0, x, t, to)
    drawn = jax.random.normal(jax.random.fold_in(key(), t), shape)
    by_chance = np.asarray(mean + jnp.sqrt(variance) * drawn)
    straight = signal[to] * x0 + level[to] * noise
    near = {"rtol": 1e-2, "atol": 5e-3}
    np.testing.assert_allclose(found, by_chance if eta else straight, **near)
    ancestral = kernels.ddpm_step(key(), *given_step, prediction=kind)
    np.testing.assert_allclose(ancestral, by_chance, **near)


@settings(max_examples=6, deadline=None)
@given(
    seed=seeds,
    how=st.sampled_from(("ddim", "ddpm", "dpmpp_2m")),
    num_steps=st.sampled_from((1, 4)),
    kind=st.sampled_from(("x0", "v")),
)
def test_who_knows_the_data_samples_it(seed, how, num_steps, kind):
    x0 = draw(seed, (2, 3))
    schedule = kernels.cosine_noise_schedule(T)
    steps = kernels.diffusion_steps(T, num_steps)
    at = lambda level, t: jnp.asarray(level)[t]

    def denoise(x, t):
        if kind == "x0":
            return jnp.asarray(x0)
        noise = (x - at(schedule.signal, t) * x0) / jnp.maximum(
            at(schedule.noise, t), 1e-6
        )
        return at(schedule.signal, t) * noise - at(schedule.noise, t) * x0

    key, x = jax.random.key(seed), draw(seed + 1, (2, 3))
    start = np.asarray(schedule.signal)[T] * x0 + np.asarray(schedule.noise)[T] * x
    samples = {
        "ddim": lambda: kernels.ddim_sample(
            denoise, key, schedule, start, steps, prediction=kind
        ),
        "ddpm": lambda: kernels.ddpm_sample(
            denoise, key, schedule, start, steps, prediction=kind
        ),
        "dpmpp_2m": lambda: kernels.dpm_solver_sample(
            denoise, schedule, start, steps, prediction=kind
        ),
    }
    found = samples[how]()
    assert found.shape == x0.shape and found.dtype == np.float32
    np.testing.assert_allclose(found, x0, rtol=1e-3, atol=1e-3)


numbers = st.floats(-4, 4, width=32)


@settings(max_examples=15, deadline=None)
@given(
    conditions=st.tuples(numbers, numbers, numbers),
    weights=st.tuples(numbers, numbers),
    each=st.booleans(),
    seed=seeds,
)
def test_guidance_is_a_sum_of_what_the_conditions_say(conditions, weights, each, seed):
    x = draw(seed, (2, 3))
    denoise = lambda x, t, condition: condition * x + t
    if each:  # One weight per row.
        weights = tuple(np.float32([weight, weight - 1]) for weight in weights)
    (one, other, null), (w, away) = conditions, weights
    lead = (lambda v: v[:, None]) if each else (lambda v: v)
    said = lambda condition: condition * x.astype(np.float64) + 2
    guided = kernels.classifier_free_guidance(denoise, one, null, w)(x, 2)
    near = {"rtol": 1e-4, "atol": 1e-3}
    expected = said(null) + lead(w) * (said(one) - said(null))
    np.testing.assert_allclose(guided, expected, **near)
    leaning = kernels.negative_guidance(denoise, one, other, null, w, away)(x, 2)
    expected = expected - lead(away) * (said(other) - said(null))
    np.testing.assert_allclose(leaning, expected, **near)


@settings(max_examples=30, deadline=None)
@given(
    t=st.sampled_from((-1, T + 1, 1.5, True, (0, 1, 2))),
    what=st.sampled_from(("diffuse", "diffusion_velocity", "diffusion_posterior")),
)
def test_steps_that_there_are_not_are_refused(t, what):
    x, schedule = jnp.ones((2, 3)), kernels.noise_schedule([0.1] * T)
    t = np.asarray(t)
    calls = {
        "diffuse": lambda: kernels.diffuse(schedule, x, x, t),
        "diffusion_velocity": lambda: kernels.diffusion_velocity(schedule, x, x, t),
        "diffusion_posterior": lambda: kernels.diffusion_posterior(
            schedule, x, x, t, 0 * t
        ),
    }
    with pytest.raises((TypeError, ValueError), match="^t must (be|hold) "):
        calls[what]()


@settings(max_examples=30, deadline=None)
@given(start=st.integers(-1, 12), num_steps=st.integers(-1, 14))
def test_steps_go_down_evenly_or_are_refused(start, num_steps):
    if not 1 <= num_steps <= start:
        with pytest.raises(ValueError, match=r"(start|num_steps) must be (>=|<=)"):
            kernels.diffusion_steps(start, num_steps)
        return
    steps = kernels.diffusion_steps(start, num_steps)
    gaps = -np.diff(steps)
    assert (steps[0], steps[-1], len(gaps)) == (start, 0, num_steps)
    assert gaps.min() >= 1 and gaps.max() - gaps.min() <= 1
