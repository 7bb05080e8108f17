"""Errors of the diffusion kernels; each message names the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.kernels import diffusion
from jaxanon.kernels.diffusion import cases

BETAS = cases.CASES["small"].betas
STEPS = diffusion.diffusion_steps(len(BETAS), 5)


def _schedule():
    return diffusion.noise_schedule(BETAS)


X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: diffusion.noise_schedule([0.1, 0.0]),
            ValueError,
            r"betas must be in \(0, 1\) .*got 0.0 for step 2 of 2",
        ),
        (
            lambda: diffusion.noise_schedule([1.0, 0.5]),
            ValueError,
            "got 1.0 for step 1 of 2",
        ),
        (
            lambda: diffusion.noise_schedule([0.5, float("nan")]),
            ValueError,
            "got nan for step 2",
        ),
        (
            lambda: diffusion.noise_schedule([]),
            ValueError,
            r"betas must be float\[T\] with T >= 1, got shape \(0,\)",
        ),
        (
            lambda: diffusion.noise_schedule([0.5], zero_terminal_snr=True),
            ValueError,
            "betas must have at least 2 entries for zero_terminal_snr, got 1",
        ),
        (
            lambda: jax.jit(diffusion.noise_schedule)(jnp.ones(2) / 2),
            TypeError,
            "betas must be known when the program is built",
        ),
        (
            lambda: diffusion.linear_noise_schedule(10, 0.2, 0.1),
            ValueError,
            "0 < first_beta <= last_beta < 1, got 0.2 and 0.1",
        ),
        (
            lambda: diffusion.quadratic_noise_schedule(0, 0.1, 0.2),
            ValueError,
            "num_steps must be >= 1, got 0",
        ),
        (
            lambda: diffusion.cosine_noise_schedule(2.0),
            TypeError,
            "num_steps must be a Python int, got 2.0",
        ),
        (
            lambda: diffusion.cosine_noise_schedule(4, offset=0),
            ValueError,
            "offset must be > 0, got 0; the paper's is 0.008",
        ),
        (
            lambda: diffusion.cosine_noise_schedule(4, max_beta=1.5),
            ValueError,
            r"max_beta must be in \(0, 1\], got 1.5",
        ),
        (
            lambda: diffusion.diffuse(_schedule(), X, X[0], 1),
            ValueError,
            r"noise must have the shape of x0, \(2, 3\), got \(3,\)",
        ),
        (
            lambda: diffusion.diffuse(_schedule(), X.astype(int), X, 1),
            TypeError,
            "x0 must hold floats, got int",
        ),
        (
            lambda: diffusion.diffuse(_schedule(), X, X, 13),
            ValueError,
            r"t must be in \[0, 12\], the steps of this schedule, got 13",
        ),
        (
            lambda: diffusion.diffuse(_schedule(), X, X, [-1, 3]),
            ValueError,
            r"t must be in \[0, 12\].*got -1",
        ),
        (
            lambda: diffusion.diffuse(_schedule(), X, X, 0.5),
            TypeError,
            "t must hold integer steps, got float",
        ),
        (
            lambda: diffusion.diffuse(_schedule(), X, X, [1, 2, 3]),
            ValueError,
            r"t must be a scalar or have the leading axes of \(2, 3\).*\(3,\)",
        ),
        (
            lambda: diffusion.convert_denoiser_output(
                _schedule(), X, X, 1, "epsilon", "x0"
            ),
            ValueError,
            "given must be one of .*'noise', 'x0', 'v'.*got 'epsilon'",
        ),
        (
            lambda: diffusion.convert_denoiser_output(_schedule(), X, X, 1, "v", "x"),
            ValueError,
            "wanted must be one of .*got 'x'",
        ),
        (
            lambda: diffusion.diffusion_posterior(_schedule(), X, X, [1, 2], 0),
            ValueError,
            r"to must have the shape of t, \(2,\), got \(\)",
        ),
        (
            lambda: diffusion.diffusion_posterior(_schedule(), X, X, [1, 2], [0, 3]),
            ValueError,
            r"to must be <= t, towards clean data, got to \[0 3\] and t \[1 2\]",
        ),
        (
            lambda: diffusion.ddim_step(jax.random.key(0), _schedule(), X, X, 3, 4),
            ValueError,
            "to must be <= t, towards clean data, got to 4 and t 3",
        ),
    ],
)
def test_says_what_was_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call()


def _call(sample=diffusion.ddim_sample, **change):
    arguments = dict(
        denoise_fn=lambda x, t: x,
        key=jax.random.key(0),
        schedule=_schedule(),
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
        ({"steps": [3, 5, 0]}, ValueError, r"steps must not increase.*got \[3, 5, 0\]"),
        ({"steps": [13, 0]}, ValueError, r"steps must be in \[0, 12\].*got 13"),
        ({"steps": [3, -1]}, ValueError, r"steps must be in \[0, 12\].*got -1"),
        ({"steps": 5}, ValueError, r"steps must be int\[n \+ 1\].*got shape \(\)"),
        ({"steps": [5.0, 0]}, TypeError, "steps must hold integer steps, got float"),
        (
            {
                "schedule": diffusion.cosine_noise_schedule(12, zero_terminal_snr=True),
                "steps": [12, 0],
            },
            ValueError,
            "prediction must be 'v' or 'x0' .* starts at step 12.*got 'noise'",
        ),
        ({"eta": 1.5}, ValueError, r"eta must be in \[0, 1\], got 1.5"),
        ({"eta": -0.1}, ValueError, r"eta must be in \[0, 1\], got -0.1"),
        (
            {"eta": jnp.ones(2)},
            ValueError,
            r"eta must be a scalar, got shape \(2,\); use jax.vmap",
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
def test_samplers_say_what_was_wrong(change, error, message):
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
                jax.random.key(0), _schedule(), X, X, [3, 2], 1
            ),
            ValueError,
            r"t must be a single step, got shape \(2,\); use jax.vmap",
        ),
        (
            lambda: diffusion.ddpm_step(jax.random.key(0), _schedule(), X, X[0], 3, 1),
            ValueError,
            "output must have the shape of x",
        ),
    ],
)
def test_steps_say_what_was_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call()
