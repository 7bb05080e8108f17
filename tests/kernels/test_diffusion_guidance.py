"""Guidance by hand, for every prediction type, and exact for Gaussians."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.kernels import diffusion
from jaxanon.kernels.diffusion import cases

BETAS = cases.CASES["small"].betas
STEPS = diffusion.diffusion_steps(len(BETAS), 5)
X = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)


def _toy(x, t, condition):
    return jnp.sin(x) * condition + t


def test_weights_zero_and_one_are_the_single_passes_bit_for_bit():
    run = jax.jit(
        lambda weight: diffusion.classifier_free_guidance(_toy, 0.7, 0.1, weight)(X, 3)
    )
    np.testing.assert_array_equal(run(0.0), jax.jit(_toy)(X, 3, 0.1))
    np.testing.assert_array_equal(run(1.0), jax.jit(_toy)(X, 3, 0.7))


def test_three_passes_by_hand():
    # sin(x) (c0 + w (c1 - c0) - v (c2 - c0)) + t with c = .5, 2, 1 and w, v = 3, 1/4.
    guided = diffusion.negative_guidance(_toy, 2.0, 1.0, 0.5, 3.0, 0.25)(X, 7)
    expected = np.sin(X) * (0.5 + 3 * 1.5 - 0.25 * 0.5) + 7
    np.testing.assert_allclose(guided, expected, rtol=1e-6)


def test_no_weight_on_the_negative_is_classifier_free_guidance():
    both = jax.jit(
        lambda weight: (
            diffusion.negative_guidance(_toy, 2.0, 9.0, 0.5, weight, 0.0)(X, 3),
            diffusion.classifier_free_guidance(_toy, 2.0, 0.5, weight)(X, 3),
        )
    )
    np.testing.assert_allclose(*both(1.5), rtol=1e-6)


def test_one_weight_per_example_is_each_example_with_its_own():
    weights = jnp.array([0.25, 4.0])
    run = lambda weight, x: diffusion.classifier_free_guidance(_toy, 2.0, 0.5, weight)(
        x, 3
    )
    together = jax.jit(run)(weights, X)
    apart = jax.jit(jax.vmap(run))(weights, X)
    np.testing.assert_allclose(together, apart, rtol=1e-6)


def test_the_network_is_called_once_with_all_conditions_as_one_batch():
    shapes = []

    def network(x, t, condition):
        shapes.append((x.shape, condition["side"].shape))
        return x * condition["side"][:, None]

    side = {"side": jnp.array([1.0, 2.0])}
    none = {"side": jnp.zeros(2)}
    got = diffusion.negative_guidance(network, side, side, none, 2.0, 1.0)(X, 1)
    np.testing.assert_allclose(got, X * np.array([[1.0], [2.0]]), rtol=1e-6)
    assert shapes == [((2, 3), (2,))]


@pytest.mark.parametrize("prediction", ["noise", "x0", "v"])
def test_guidance_does_not_depend_on_what_is_predicted(prediction):
    schedule = diffusion.noise_schedule(BETAS)

    def network(x, t, condition):
        output = jnp.sin(x) * condition
        return diffusion.convert_denoiser_output(
            schedule, x, output, t, "v", prediction
        )

    @jax.jit
    def run(key, network_prediction):
        guided = diffusion.negative_guidance(network, 1.0, 0.5, 0.2, 3.0, 0.5)
        return diffusion.ddim_sample(
            guided, key, schedule, X, STEPS, prediction=prediction
        )

    plain = lambda x, t: jnp.sin(x) * (0.2 + 3 * 0.8 - 0.5 * 0.3)
    expected = jax.jit(
        lambda key: diffusion.ddim_sample(
            plain, key, schedule, X, STEPS, prediction="v"
        )
    )(jax.random.key(0))
    np.testing.assert_allclose(
        run(jax.random.key(0), 0), expected, rtol=2e-3, atol=1e-4
    )


@pytest.mark.parametrize("away", [0.0, 0.75])
def test_guided_gaussians_are_a_gaussian_with_the_guided_mean(away):
    # Best denoisers with equal std differ by a shift, linear in the mean.
    with jax.enable_x64(True):
        schedule = diffusion.noise_schedule(BETAS, zero_terminal_snr=True)

        def network(x, t, mean):
            signal, level = schedule.signal[t], schedule.noise[t]
            excess = (x - signal * mean) / ((0.4 * signal) ** 2 + level**2)
            return signal * level * excess - level * (mean + 0.16 * signal * excess)

        def sample(denoise):
            x = np.array([0.0, 1.0])
            run = lambda key: diffusion.ddim_sample(
                denoise, key, schedule, x, STEPS, prediction="v"
            )
            return np.asarray(jax.jit(run)(jax.random.key(0)))

        guided = diffusion.negative_guidance(network, 2.0, -1.0, 0.5, 1.5, away)
        mean = 0.5 + 1.5 * (2 - 0.5) - away * (-1 - 0.5)
        got, alone = sample(guided), sample(lambda x, t: network(x, t, mean))
        # Zero noise ends in the mean, because no signal was left at the start.
        np.testing.assert_allclose(got[0], mean, rtol=1e-12)
        np.testing.assert_allclose(got, alone, rtol=1e-12)
        for wrong in (2 / 3, 3 / 2):
            assert abs(got[0] - (0.5 + wrong * (mean - 0.5))) > 0.1


def test_half_precision_outputs_are_combined_in_float32():
    # 101 - 100 times numbers that bfloat16 rounds to their neighbours.
    outputs = jnp.array([1.0, 1.0078125], jnp.bfloat16)
    network = lambda x, t, which: outputs[which] * jnp.ones_like(x)
    guided = diffusion.classifier_free_guidance(network, 1, 0, 64.0)
    got = guided(jnp.ones(2, jnp.bfloat16), 1)
    assert got.dtype == jnp.bfloat16
    np.testing.assert_array_equal(got.astype(np.float32), 1.5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: diffusion.classifier_free_guidance(_toy, X, X[0], 1.0),
            ValueError,
            r"null_condition must match condition in tree, shapes and dtypes, .* got .*"
            r"\(3,\)",
        ),
        (
            lambda: diffusion.negative_guidance(_toy, 1.0, 1, 1.0, 1.0, 1.0),
            ValueError,
            "negative must match positive in tree, shapes and dtypes",
        ),
        (
            lambda: diffusion.classifier_free_guidance(_toy, {"a": X}, X, 1.0),
            ValueError,
            "null_condition must match condition in tree",
        ),
        (
            lambda: diffusion.classifier_free_guidance(_toy, 1.0, 0.0, jnp.ones(3))(
                X, 1
            ),
            ValueError,
            r"weight must be a scalar or have the leading axes of \(2, 3\)",
        ),
        (
            lambda: diffusion.classifier_free_guidance(_toy, 1.0, 0.0, True),
            TypeError,
            "weight must be a number, got bool",
        ),
    ],
)
def test_says_what_was_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call()
