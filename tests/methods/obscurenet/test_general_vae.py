"""Tests of the general autoencoder: one model, class means, variants of the loss."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import datasets, methods
from jaxanon.models.conditional_autoencoder import AutoencoderBatch


@pytest.fixture
def design_of(built_design, data):
    """Returns the components and networks for given settings."""
    module = "jaxanon.methods.obscurenet.baselines"
    return functools.partial(built_design, module, methods.general_vae, data.spec)


@pytest.mark.parametrize("variant", ["paper", "official", "keras"])
def test_the_forms_of_its_loss(design_of, variant):
    design = design_of(latent_dim=3, hidden_sizes=(5,), beta=0.3, variant=variant)
    assert not design.by_class
    params = design.networks.init(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 2)
    hot = (jnp.eye(2)[jnp.arange(6) % 2],)
    noise = jax.random.normal(keys[1], (6, 3))
    batch = AutoencoderBatch(jax.random.normal(keys[0], (6, 16, 2)), hot, noise)
    found, (info, _) = design.components[0].loss_fn(
        jax.random.key(2), params, design.hyper, batch, None
    )
    error, kl = info["reconstruction"], info["kl"]
    expected = {
        "paper": 256 * error + 0.3 * kl,
        "official": (512 * error + 2 * 0.3 * kl) / 150,
        "keras": 256 * (error + 2 * 0.3 * kl),
    }
    np.testing.assert_allclose(found, expected[variant], rtol=1e-5)


def test_one_model_has_means_for_every_public_class(data):
    method = methods.general_vae(
        data.spec, latent_dim=3, hidden_sizes=(5,), batch_size=16
    )
    params = jax.eval_shape(method.init, jax.random.key(0)).params
    assert params["means"].shape == (1, 3, 2, 3)
    prepared = method.prepare(datasets.by_client(data.train))
    assert method.schedule.rounds_per_epoch(prepared) == round(
        len(prepared.windows) / 16
    )
    assert method.schedule.work_per_round(prepared) == 16
