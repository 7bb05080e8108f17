"""Tests of the conditional baselines: their losses, and that they learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import methods
from jaxanon.models.conditional_autoencoder import AutoencoderBatch
from jaxanon.training import trainer

TINY = {"latent_dim": 3, "hidden_sizes": (5,)}


def _loss(built_design, data, build, **settings):
    design = built_design(build.__module__, build, data.spec, **TINY, **settings)
    (component,) = design.components
    assert component.groups == ("encoder", "decoder") and design.by_class
    assert design.networks.decoder_classes == (2,) and not design.networks.classifiers
    params = design.networks.init(jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 2)
    hot = (jnp.eye(2)[jnp.arange(6) % 2],)
    noise = jax.random.normal(keys[1], (6, 3))
    batch = AutoencoderBatch(jax.random.normal(keys[0], (6, 16, 2)), hot, noise)
    found, (info, _) = component.loss_fn(
        jax.random.key(2), params, design.hyper, batch, None
    )
    return float(found), info


def test_the_variational_one_pays_for_its_latent(built_design, data):
    found, info = _loss(built_design, data, methods.cvae, beta=0.7)
    expected = 256 * info["reconstruction"] + 0.7 * info["kl"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_other_pays_for_its_error_alone(built_design, data):
    found, info = _loss(built_design, data, methods.cae)
    np.testing.assert_allclose(found, 256 * info["reconstruction"], rtol=1e-5)
    assert "kl" not in info


def test_the_released_form(built_design, data):
    found, info = _loss(built_design, data, methods.cvae, variant="official", beta=0.7)
    expected = (512 * info["reconstruction"] + 2 * 0.7 * info["kl"]) / 150
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_code_is_no_sample_and_a_latent_is_one(data):
    for build, same in ((methods.cae, True), (methods.cvae, False)):
        method = build(data.spec, **TINY, batch_size=8, anonymization="deterministic")
        state = method.init(jax.random.key(0))
        anonymize = jax.jit(method.anonymize)
        one, two = (
            anonymize(jax.random.key(seed), state, data.test.windows[:9])
            for seed in (1, 2)
        )
        assert bool(jnp.all(one == two)) == same


@pytest.mark.slow
def test_it_learns_to_rebuild(data):
    method = methods.cae(
        data.spec,
        **TINY,
        batch_size=32,
        classifier_batch_size=8,
        initialization="lecun",
    )
    run = trainer.train(
        method, data, epochs=200, progress=False, hyper={"learning_rate": 0.01}
    )
    # 3 latents and a class determine a wave's two phases and its amplitude.
    assert run.history[0]["losses"]["reconstruction"] > 0.6
    assert run.history[-1]["losses"]["reconstruction"] < 0.4
