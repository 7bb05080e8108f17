"""Samplers against the papers' loops, and exact for Gaussians, where all is known."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec
from jax.test_util import check_grads
from scipy import stats

from jaxanon.kernels import diffusion
from jaxanon.kernels.diffusion import cases, reference

CASE = cases.CASES["small"]
BETAS, T = CASE.betas, len(CASE.betas)
KINDS = ("noise", "x0", "v")
STEPS = diffusion.diffusion_steps(T, 5)
ALL_STEPS = diffusion.diffusion_steps(T, T)
# A beginning of standard noise, and data that are neither centred nor of scale 1.
MEAN, STD = 1.5, 0.4


def gaussian(schedule, mean, std, prediction="noise"):
    """The best denoiser of N(mean, std²), in JAX."""

    def denoise(x, t):
        signal, level = schedule.signal[t], schedule.noise[t]
        excess = (x - signal * mean) / ((signal * std) ** 2 + level**2)
        x0, noise = mean + signal * std**2 * excess, level * excess
        return {"noise": noise, "x0": x0, "v": signal * noise - level * x0}[prediction]

    return denoise


@functools.cache
def _noises(shape):
    """What the sampler draws at each step: ``fold_in(key, t)`` and nothing else."""
    key = jax.random.key(0)
    draw = lambda t: jax.random.normal(jax.random.fold_in(key, t), shape, jnp.float64)
    return np.asarray(jax.jit(jax.vmap(draw))(jnp.arange(T + 1)))


def _padded(steps, length):
    """Steps that stay at the last level: one compilation for all lengths."""
    return np.pad(np.array(steps), (0, length - len(steps)), mode="edge")


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
        # Not a denoiser's, so that no term can hide behind another.
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
def _sampler(variance):
    """20,000 samples of the Gaussian from standard noise; DDIM if there is no word."""

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
    """The same by a sampler that believes in ``betas``, along ``steps``."""
    truth, schedule = diffusion.noise_schedule(BETAS), diffusion.noise_schedule(betas)
    arguments = truth, schedule, _padded(steps, T + 1), jnp.float32(eta)
    draws = _sampler(variance)(jax.random.key(3), *arguments)
    return np.asarray(draws, np.float64)


def _could_be(draws, mean, variance):
    """Whether a normal sample may have come from N(mean, variance); 1 in 100 errs."""
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
    # A schedule of two thirds of the betas, in the sampler alone, is seen too.
    thinner = tuple(beta * 2 / 3 for beta in BETAS)
    assert not _could_be(_draws(thinner, steps, variance="posterior"), mean, variance)


def test_wider_ancestral_variance_is_rejected_as_posterior_and_the_other_way():
    steps = tuple(ALL_STEPS[:-1])  # The last step of either adds no noise.
    mean, variance = reference.gaussian_moments(
        BETAS, MEAN, STD, steps, (0.0, 1.0), eta=1.0
    )[-1]
    assert not _could_be(_draws(BETAS, steps, variance="beta"), mean, variance)
    # By hand for one step: both means are one, variances beta and posterior.
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
    # The same noise at every step would add up otherwise.
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
    """Offset and slope of deterministic DDIM, which is affine for a Gaussian."""
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
    # The flow keeps (x - signal mean) / scale_t, where scale_t is that of the marginal.
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
    # First order: half the error for twice the steps, and little at last.
    for coarse, fine in itertools.pairwise(errors[:3]):
        assert (1.7 < coarse / fine).all() and (coarse / fine < 2.3).all()
    assert (errors[-1] < 0.004).all() and errors[0][1] > 0.02
    for wrong in (2 / 3, 3 / 2):
        assert abs(errors[-1][1] + slope - np.sqrt(wrong) * slope) > 0.05


def test_only_zero_terminal_snr_samples_without_a_bias():
    # All steps keep a mean of signal * MEAN; pure noise has it where signal is 0.
    offset, _ = _affine(BETAS, tuple(STEPS), zero=True)
    np.testing.assert_allclose(offset, MEAN, rtol=1e-12)
    offset, slope = _affine(BETAS, tuple(STEPS))
    left = np.sqrt(reference.alpha_bar(BETAS)[-1])
    np.testing.assert_allclose(offset, MEAN * (1 - slope * left), rtol=1e-10)
    assert abs(offset - MEAN) > 0.1


@functools.cache
def _small():
    """Schedule, network without a condition, key and noised windows."""
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


def test_part_way_start_rewrites_what_was_noised():
    # Data of N(5, 1) noised to step 4 and sampled to N(5, 1) again: x stays near.
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
    # With std 1 every step's slope is sqrt(alpha_bar_t / alpha_bar_to): product in all.
    expected = product / np.sqrt(variance)
    correlation = np.corrcoef(x0, rewritten)[0, 1]
    assert abs(correlation - expected) < 4 * (1 - expected**2) / np.sqrt(4000)


def test_noise_is_drawn_only_where_eta_is_not_zero():
    schedule, network, key, x = _small()
    denoise = lambda x, t: network(x, t, 0.0)

    def program(eta):
        run = lambda key: diffusion.ddim_sample(
            denoise, key, schedule, x, STEPS, eta=eta
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


def test_half_precision_is_carried_in_float32():
    # Noise predicted 0: x grows by 1 / sqrt(1 - beta) a step, far below bfloat16's
    # spacing. Rounded at every step, x would stay where it is.
    schedule = diffusion.noise_schedule([1e-3] * 100)
    steps = diffusion.diffusion_steps(100, 100)

    def denoise(x, t):
        assert x.dtype == jnp.bfloat16 and t.dtype == jnp.int32 and t.shape == ()
        return jnp.zeros_like(x)

    x = jnp.array([1.0, -2.0], jnp.bfloat16)
    run = jax.jit(functools.partial(diffusion.ddim_sample, denoise))
    got = run(jax.random.key(0), schedule, x, steps)
    assert got.dtype == jnp.bfloat16
    expected = np.array([1.0, -2.0]) / np.sqrt(0.999**100)
    np.testing.assert_allclose(got.astype(np.float32), expected, rtol=2**-8)


@pytest.mark.parametrize("prediction", KINDS)
def test_all_stays_finite_at_both_ends(prediction):
    schedule, _, key, x = _small()

    def loss(scale, eta):
        out = diffusion.ddim_sample(
            lambda x, t: scale * x,
            key,
            schedule,
            x[0],
            np.array([T, 3, 1, 0]),
            eta=eta,
            prediction=prediction,
        )
        return jnp.sum(out)

    run = jax.jit(jax.value_and_grad(loss))
    for eta in (jnp.float32(0), jnp.float32(1)):
        value, slope = run(0.5, eta)
        assert jnp.isfinite(value) and jnp.isfinite(slope) and slope != 0


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


def test_gradient_is_that_of_the_affine_map_and_survives_checkpoints():
    # Of every step only (1 - slope signal) adds to the mean: see the test of the bias.
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


def test_slope_in_eta_is_finite_at_one():
    # The root of the last step vanishes at eta = 1, and with it must its gradient.
    schedule, key = diffusion.noise_schedule(BETAS), jax.random.key(0)
    run = lambda eta: diffusion.ddim_sample(
        lambda x, t: 0.5 * x, key, schedule, jnp.float32(1), STEPS, eta=eta
    )
    value, slope = jax.jit(jax.value_and_grad(run))(jnp.float32(1))
    below = jax.jit(run)(jnp.float32(0.99))
    assert abs((value - below) / 0.01 - slope) < 0.05 * (1 + abs(slope))


def test_clients_side_by_side_in_shard_map():
    schedule, network, _, x = _small()
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.make_mesh((1,), ("clients",), axis_types=auto)
    keys = jax.random.split(jax.random.key(6), 3)
    starts = jnp.stack([x, 2 * x, -x])
    weights = jnp.array([0.0, 1.0, 2.0])

    def client(key, x, weight):
        guided = diffusion.classifier_free_guidance(network, 1.0, 0.0, weight)
        return diffusion.ddim_sample(
            guided, key, schedule, x, STEPS, eta=0.5, prediction="v"
        )

    spec = PartitionSpec("clients")
    every = jax.vmap(client)
    sharded = jax.shard_map(every, mesh=mesh, in_specs=spec, out_specs=spec)
    apart = [keys[i] for i in range(3)]
    got = jax.jit(sharded)(keys, starts, weights)
    alone = jax.jit(client)
    for i in range(3):
        expected = alone(apart[i], starts[i], weights[i])
        np.testing.assert_allclose(got[i], expected, rtol=1e-4, atol=1e-5)


X = np.ones((2, 3), np.float32)


def _call(sample=diffusion.ddim_sample, **change):
    arguments = dict(
        denoise_fn=lambda x, t: x,
        key=jax.random.key(0),
        schedule=diffusion.noise_schedule(BETAS),
        x=X,
        steps=STEPS,
    )
    return sample(**(arguments | change))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"key": np.zeros(2, np.uint32)},
            TypeError,
            r"key must be a typed PRNG key such as jax.random.key\(0\), got ndarray",
        ),
        (
            {"key": jax.random.split(jax.random.key(0))},
            ValueError,
            r"key must be a single key, got shape \(2,\); use jax.vmap",
        ),
        ({"x": X.astype(int)}, TypeError, "x must hold floats, got int"),
        (
            {"denoise_fn": lambda x, t: x[:, :1]},
            ValueError,
            r"output must have the shape of x, \(2, 3\), got \(2, 1\)",
        ),
        ({"steps": [3, 5, 0]}, ValueError, r"steps must not rise.*got \[3, 5, 0\]"),
        ({"steps": [13, 0]}, ValueError, r"steps must be in \[0, 12\].*got 13"),
        ({"steps": [3, -1]}, ValueError, r"steps must be in \[0, 12\].*got -1"),
        ({"steps": 5}, ValueError, r"steps must be int\[n \+ 1\].*got shape \(\)"),
        ({"steps": [5.0, 0]}, TypeError, "steps must hold whole steps, got float"),
        ({"eta": 1.5}, ValueError, r"eta must be in \[0, 1\], got 1.5"),
        ({"eta": -0.1}, ValueError, r"eta must be in \[0, 1\], got -0.1"),
        (
            {"eta": jnp.ones(2)},
            ValueError,
            r"eta must be a single number, got shape \(2,\); use jax.vmap",
        ),
        (
            {"prediction": "score"},
            ValueError,
            "prediction must be one of .*'noise', 'x0', 'v'.*got 'score'",
        ),
        (
            {"sample": diffusion.ddpm_sample, "variance": "small"},
            ValueError,
            "variance must be one of .*'posterior', 'beta'.*got 'small'",
        ),
    ],
)
def test_says_what_was_wrong(change, error, message):
    with pytest.raises(error, match=message):
        _call(**change)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: diffusion.diffusion_steps(5, 6),
            ValueError,
            "num_steps must be <= start, 5, got 6",
        ),
        (
            lambda: diffusion.diffusion_steps(0, 1),
            ValueError,
            "start must be >= 1, got 0",
        ),
        (
            lambda: diffusion.ddim_step(
                jax.random.key(0), diffusion.noise_schedule(BETAS), X, X, [3, 2], 1
            ),
            ValueError,
            r"t must be a single step, got shape \(2,\); use jax.vmap",
        ),
        (
            lambda: diffusion.ddpm_step(
                jax.random.key(0), diffusion.noise_schedule(BETAS), X, X[0], 3, 1
            ),
            ValueError,
            "output must have the shape of x",
        ),
    ],
)
def test_says_what_was_wrong_elsewhere(call, error, message):
    with pytest.raises(error, match=message):
        call()
