"""Samplers against the papers' loops: steps, state, precision, gradients."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from jaxanon.kernels import diffusion
from jaxanon.kernels.diffusion import cases, reference

pytestmark = pytest.mark.slow

CASE = cases.CASES["small"]
BETAS, T = CASE.betas, len(CASE.betas)
KINDS = ("noise", "x0", "v")
STEPS = diffusion.diffusion_steps(T, 5)
ALL_STEPS = diffusion.diffusion_steps(T, T)


@functools.cache
def _noises(shape):
    """Returns the sampler's noise at each step, drawn from ``fold_in(key, t)`` only."""
    key = jax.random.key(0)
    draw = lambda t: jax.random.normal(jax.random.fold_in(key, t), shape, jnp.float64)
    return np.asarray(jax.jit(jax.vmap(draw))(jnp.arange(T + 1)))


def test_steps_are_even_and_take_in_both_ends():
    np.testing.assert_array_equal(ALL_STEPS, np.arange(T, -1, -1))
    for start in range(1, 30):
        for num_steps in range(1, start + 1):
            steps = diffusion.diffusion_steps(start, num_steps)
            gaps = -np.diff(steps)
            assert steps.dtype == np.int32 and len(steps) == num_steps + 1
            assert (steps[0], steps[-1]) == (start, 0)
            assert gaps.min() >= 1 and gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize("prediction", KINDS)
def test_ddim_is_the_papers_in_float64(prediction):
    with jax.enable_x64(True):
        schedule, key = diffusion.noise_schedule(BETAS), jax.random.key(0)
        x = np.random.default_rng(0).normal(size=(4, 3))
        # Not a denoiser, so that no term can hide behind another.
        ours = lambda x, t: jnp.sin(x) + jnp.float64(t) / T
        loops = lambda x, t: np.sin(x) + t / T
        run = jax.jit(
            lambda eta: diffusion.ddim_sample(
                ours, key, schedule, x, STEPS, eta=eta, prediction=prediction
            )
        )
        for eta in (0.0, 0.6, 1.0):
            expected = reference.ddim(
                loops, BETAS, x, STEPS, _noises(x.shape), eta, prediction
            )
            got = run(jnp.float64(eta))
            assert got.dtype == jnp.float64
            np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize("variance", ["posterior", "beta"])
def test_ddpm_is_the_papers_in_float64(variance):
    with jax.enable_x64(True):
        schedule, key = diffusion.noise_schedule(BETAS), jax.random.key(0)
        x = np.random.default_rng(0).normal(size=(4, 3))
        ours = lambda x, t: jnp.sin(x) + jnp.float64(t) / T
        loops = lambda x, t: np.sin(x) + t / T
        options = {"prediction": "v", "variance": variance}
        expected = reference.ddpm(loops, BETAS, x, _noises(x.shape), **options)
        run = functools.partial(diffusion.ddpm_sample, ours, **options)
        got = jax.jit(run)(key, schedule, x, ALL_STEPS)
        np.testing.assert_allclose(got, expected, rtol=1e-9)


@functools.cache
def _small():
    """Returns schedule, unconditional network, key and noised windows."""
    schedule = diffusion.noise_schedule(BETAS, zero_terminal_snr=True)
    network = cases.network(CASE, jax.random.key(1))
    x = jax.random.normal(jax.random.key(2), CASE.shape)
    return schedule, network, jax.random.key(3), x


def test_posterior_ancestral_sampling_is_ddim_with_eta_one():
    schedule, network, key, x = _small()
    denoise = lambda x, t: network(x, t, 0.0)
    both = jax.jit(
        lambda key: (
            diffusion.ddpm_sample(denoise, key, schedule, x, STEPS, prediction="v"),
            diffusion.ddim_sample(
                denoise, key, schedule, x, STEPS, eta=1.0, prediction="v"
            ),
        )
    )
    np.testing.assert_allclose(*both(key), rtol=1e-5, atol=1e-6)


def test_going_on_gives_the_bits_of_never_having_stopped():
    schedule, network, key, x = _small()
    denoise = lambda x, t: network(x, t, 0.0)
    run = functools.partial(diffusion.ddim_sample, denoise, prediction="v", eta=0.7)
    run = jax.jit(run)
    whole = run(key, schedule, x, STEPS[:5])
    half = run(key, schedule, x, STEPS[:3])
    np.testing.assert_array_equal(run(key, schedule, half, STEPS[2:5]), whole)
    other = run(jax.random.key(4), schedule, half, STEPS[2:5])
    assert (other != whole).all()


@pytest.mark.parametrize("ancestral", [False, True])
def test_own_loop_of_steps_is_the_sampler(ancestral):
    schedule, network, key, x = _small()
    denoise = lambda x, t: network(x, t, 0.0)
    sample, one, options = diffusion.ddim_sample, diffusion.ddim_step, {"eta": 0.7}
    if ancestral:
        sample, one, options = diffusion.ddpm_sample, diffusion.ddpm_step, {}
    options["prediction"] = "v"
    whole = jax.jit(functools.partial(sample, denoise, **options))

    traces = []

    @jax.jit
    def step(x, t, to):
        traces.append(t)
        return one(key, schedule, x, denoise(x, t), t, to, **options)

    state = x
    for t, to in itertools.pairwise(STEPS):
        state = step(state, jnp.int32(t), jnp.int32(to))
    expected = whole(key, schedule, x, STEPS)
    np.testing.assert_allclose(state, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(step(x, jnp.int32(5), jnp.int32(5)), x)
    assert len(traces) == 1


def test_padded_steps_change_nothing_so_clients_may_start_apart():
    schedule, network, _, x = _small()
    denoise = lambda x, t: network(x, t, 0.0)
    starts = [diffusion.diffusion_steps(start, 3) for start in (T, 7, 3)]
    starts.append(np.array([5, 0]))
    padded = np.stack([np.pad(steps, (0, 6 - len(steps))) for steps in starts])
    keys = jax.random.split(jax.random.key(3), len(starts))
    apart = [keys[i] for i in range(len(starts))]
    run = functools.partial(diffusion.ddim_sample, denoise, prediction="x0", eta=0.7)
    each = jax.jit(jax.vmap(run, in_axes=(0, None, None, 0)))
    found = each(keys, schedule, x, padded)
    alone = jax.jit(run)
    for i, steps in enumerate(starts):
        expected = alone(apart[i], schedule, x, steps)
        np.testing.assert_allclose(found[i], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(alone(apart[3], schedule, x, padded[3]), expected)


def test_no_step_gives_the_input_back():
    schedule, _, key, x = _small()
    got = diffusion.ddim_sample(lambda x, t: x + 1, key, schedule, x, [4])
    np.testing.assert_array_equal(got, x)


def test_noise_is_drawn_only_where_eta_is_not_zero():
    schedule, network, key, x = _small()
    denoise = lambda x, t: network(x, t, 0.0)

    def program(eta):
        run = lambda key: diffusion.ddim_sample(
            denoise, key, schedule, x, STEPS, eta=eta, prediction="v"
        )
        return str(jax.make_jaxpr(run)(key))

    assert "random_bits" not in program(0.0)
    assert "random_bits" in program(1e-9) and "random_bits" in program(jnp.float32(0))


def test_one_compilation_serves_every_eta_weight_step_and_schedule():
    schedule, network, key, x = _small()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def run(key, schedule, steps, eta, weight, away):
        guided = diffusion.negative_guidance(network, 1.0, 2.0, 0.0, weight, away)
        return diffusion.ddim_sample(
            guided, key, schedule, x, steps, eta=eta, prediction="v"
        )

    plain = diffusion.noise_schedule(BETAS)
    found = [
        run(key, schedule, STEPS, jnp.float32(0), jnp.float32(1), jnp.float32(0)),
        run(key, schedule, STEPS, jnp.float32(0.5), jnp.float32(1), jnp.float32(0)),
        run(key, schedule, STEPS, jnp.float32(0), jnp.float32(2), jnp.float32(0)),
        run(key, schedule, STEPS, jnp.float32(0), jnp.float32(1), jnp.float32(1)),
        run(key, plain, STEPS, jnp.float32(0), jnp.float32(1), jnp.float32(0)),
        run(key, schedule, STEPS - STEPS // T, *map(jnp.float32, (0, 1, 0))),
    ]
    assert all((first != other).any() for first in found[:1] for other in found[1:])


@pytest.mark.parametrize("prediction", KINDS)
def test_all_stays_finite_at_both_ends(prediction):
    schedule, _, key, x = _small()
    first = T - 1 if prediction == "noise" else T  # Noise alone says nothing at T.

    def loss(scale, eta):
        out = diffusion.ddim_sample(
            lambda x, t: scale * x,
            key,
            schedule,
            x[0],
            np.array([first, 3, 1, 0]),
            eta=eta,
            prediction=prediction,
        )
        return jnp.sum(out)

    run = jax.jit(jax.value_and_grad(loss))
    for eta in (jnp.float32(0), jnp.float32(1)):
        value, slope = run(0.5, eta)
        assert jnp.isfinite(value) and jnp.isfinite(slope) and slope != 0


def test_noise_prediction_cannot_start_without_signal():
    schedule, _, key, x = _small()
    with pytest.raises(ValueError, match="prediction must be 'v' or 'x0' .* step 12"):
        diffusion.ddim_sample(lambda x, t: x, key, schedule, x, STEPS)
    with pytest.raises(ValueError, match="prediction must be 'v' or 'x0' .* step 12"):
        diffusion.dpm_solver_sample(lambda x, t: x, schedule, x, STEPS)


def test_gradients_are_those_of_finite_differences():
    with jax.enable_x64(True):
        schedule, key = diffusion.noise_schedule(BETAS), jax.random.key(0)
        x = np.random.default_rng(0).normal(size=(2, 3))

        def loss(x, scale, eta, weight):
            network = lambda x, t, c: jnp.tanh(scale * x + c * t / T)
            guided = diffusion.classifier_free_guidance(network, 1.0, -1.0, weight)
            out = diffusion.ddim_sample(
                guided, key, schedule, x, STEPS, eta=eta, prediction="v"
            )
            return jnp.sum(out**2)

        points = x, np.float64(0.7), jnp.float64(0.6), jnp.float64(1.5)
        check_grads(jax.jit(loss), points, order=1, modes=("fwd", "rev"))


def test_slope_in_eta_is_finite_at_one():
    # The root of the last step vanishes at eta = 1, and so must its gradient.
    schedule, key = diffusion.noise_schedule(BETAS), jax.random.key(0)
    run = lambda eta: diffusion.ddim_sample(
        lambda x, t: 0.5 * x, key, schedule, jnp.float32(1), STEPS, eta=eta
    )
    value, slope = jax.jit(jax.value_and_grad(run))(jnp.float32(1))
    below = jax.jit(run)(jnp.float32(0.99))
    assert abs((value - below) / 0.01 - slope) < 0.05 * (1 + abs(slope))


def test_clients_side_by_side_in_shard_map(over_a_mesh):
    schedule, network, _, x = _small()
    keys = jax.random.split(jax.random.key(6), 3)
    starts = jnp.stack([x, 2 * x, -x])
    weights = jnp.array([0.0, 1.0, 2.0])

    def client(key, x, weight):
        guided = diffusion.classifier_free_guidance(network, 1.0, 0.0, weight)
        return diffusion.ddim_sample(
            guided, key, schedule, x, STEPS, eta=0.5, prediction="v"
        )

    apart = [keys[i] for i in range(3)]
    got = over_a_mesh(jax.vmap(client))(keys, starts, weights)
    alone = jax.jit(client)
    for i in range(3):
        expected = alone(apart[i], starts[i], weights[i])
        np.testing.assert_allclose(got[i], expected, rtol=1e-4, atol=1e-5)


def test_padding_at_level_zero_asks_for_no_step_that_a_network_does_not_know():
    # Its logarithm of 0 would be infinite, and 0 times that NaN.
    schedule, _, key, x = _small()
    denoise = lambda x, t: x * jnp.log(t.astype(jnp.float32))
    run = functools.partial(diffusion.ddim_sample, denoise, key, schedule, x)
    padded = run(np.array([3, 1, 0, 0]), prediction="v")
    np.testing.assert_array_equal(padded, run(np.array([3, 1, 0]), prediction="v"))
    assert jnp.isfinite(padded).all()
