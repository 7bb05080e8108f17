"""Tests of guidance by latents: conditions, steps and the guided mean."""

import types

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import kernels
from jaxanon.methods.common.diffusion import SCHEDULES
from jaxanon.methods.guided_diffusion import guidance as guided_diffusion_guidance
from jaxanon.methods.guided_diffusion.guidance import GuidedConfig
from jaxanon.models.conditions import null_condition


@pytest.mark.parametrize("strength", [1.0, 0.6, 0.37, 0.2])
def test_steps_of_a_traced_strength_are_those_of_a_known_one(strength):
    config = GuidedConfig(num_train_timesteps=50, num_inference_steps=10)
    steps = jax.jit(
        lambda strength: guided_diffusion_guidance.levels(config, strength)
    )(strength)
    want = kernels.diffusion_steps(round(strength * 50), 10)
    np.testing.assert_array_equal(steps, want)


def test_steps_begin_at_1_at_least_and_at_the_last_at_most():
    config = GuidedConfig(num_train_timesteps=50, num_inference_steps=10)
    low, high = (
        guided_diffusion_guidance.levels(config, s).tolist() for s in (1e-9, 7.0)
    )
    assert low[0] == 1 and low[-1] == 0 and low == sorted(low, reverse=True)
    assert high[0] == 50


def test_what_is_not_known_is_not_told():
    public, private = jnp.array([[2.0, 3.0]] * 3), jnp.array([[5.0]] * 3)
    known = jnp.array([[True, False], [False, True], [False, False]])
    condition = guided_diffusion_guidance.make_condition(public, private, known)
    want = [[2, 3, 1, 0, 0], [0, 0, 0, 5, 1], [0, 0, 0, 0, 0]]
    assert condition.features.tolist() == want
    assert condition.known.tolist() == [True, True, False]
    alike = jax.tree.map(lambda a, b: a.shape == b.shape and a.dtype == b.dtype,
                         condition, null_condition({}, 5, 3))  # fmt: skip
    assert all(jax.tree.leaves(alike))


def test_who_is_told_what_in_training():
    known = guided_diffusion_guidance.one_known(jax.random.key(0), 20_000, 0.2)
    public, private = np.asarray(known).T
    assert not (public & private).any()
    assert public.mean() == pytest.approx(0.4, abs=0.01)
    assert private.mean() == pytest.approx(0.4, abs=0.01)


# Windows are Gaussian with variance 1. The condition shifts their mean by 3 times the
# public latent and 5 times the private one. The best denoiser predicts v = -noise level
# times mean.
CONFIG = GuidedConfig(num_train_timesteps=400, num_inference_steps=400)
SCHEDULE = SCHEDULES["cosine"](400)
NETS = types.SimpleNamespace(
    config=CONFIG,
    schedule=SCHEDULE,
    nothing=lambda batch: null_condition({}, 4, batch),
    denoise=lambda denoiser, x, t, told: (
        -SCHEDULE.noise[t] * (0.5 + told.features @ denoiser)[:, None, None]
        * jnp.ones_like(x)
    ),
)  # fmt: skip
PARAMS = {"average": jnp.array([3.0, 0, 5, 0]), "denoiser": jnp.full(4, jnp.nan)}
ORIGINAL = 7.0


@jax.jit
@chex.assert_max_traces(n=1)  # Strengths and weights do not recompile.
def rewritten(hyper):
    x0, latent = jnp.full((1000, 5, 2), ORIGINAL), jnp.ones((1000, 1))
    key = jax.random.key(1)
    return guided_diffusion_guidance.rewrite(
        NETS, key, PARAMS, hyper, x0, latent, latent
    )


@pytest.mark.parametrize(
    ("strength", "guidance", "negative", "mean"),
    [
        (1.0, 1.0, 0.0, 3.5),
        (1.0, 1.0, 0.5, 1.0),
        (1.0, 2.0, 1.0, 1.5),
        (1.0, 0.0, 0.0, 0.5),
        (0.5, 1.0, 0.5, 1.0),
        (0.2, 1.0, 0.5, 1.0),
    ],
)
def test_where_guidance_leads_and_how_much_of_a_window_stays(
    strength, guidance, negative, mean
):
    """Checks the mean for every strength, in one program."""
    hyper = {
        "strength": strength,
        "guidance_scale": guidance,
        "negative_guidance_scale": negative,
    }
    made = np.asarray(rewritten(jax.tree.map(jnp.float32, hyper)), np.float64)
    kept = float(SCHEDULE.signal[round(400 * strength)])
    assert made.mean() == pytest.approx(mean + kept * (ORIGINAL - mean), abs=0.06)
    assert made.std() == pytest.approx(np.sqrt(1 - kept**2), rel=0.03)
