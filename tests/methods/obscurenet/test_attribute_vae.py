"""Tests of attribute-specific autoencoders: classifier, shift, sizes by dataset."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import datasets, methods
from jaxanon.core.programs import rounds_program
from jaxanon.models.conditional_autoencoder import AutoencoderBatch

BASELINES = "jaxanon.methods.obscurenet.baselines"

TINY = {
    "latent_dim": 3,
    "hidden_sizes": (16,),
    "batch_size": 32,
    "classifier_batch_size": 32,
    "initialization": "lecun",
    "learning_rate": 5e-3,
}


def test_the_classification_layer_works_with_the_encoder(built_design, data):
    settings = {"latent_dim": 3, "hidden_sizes": (5,), "alpha": 7.0, "beta": 3}
    design = built_design(BASELINES, methods.attribute_vae, data.spec, **settings)
    (component,) = design.components
    assert component.groups == ("encoder", "decoder", "readers") and design.by_class
    params = design.networks.init(jax.random.key(0))
    # A single layer, from z to the classes.
    (layer,) = params["readers"]
    assert [leaf.shape for leaf in jax.tree.leaves(layer)] == [(2,), (3, 2)]
    hot = jnp.eye(2)[jnp.arange(6) % 2]
    keys = jax.random.split(jax.random.key(1), 2)
    batch = AutoencoderBatch(
        jax.random.normal(keys[0], (6, 16, 2)),
        (hot,),
        jax.random.normal(keys[1], (6, 3)),
    )
    found, (info, _) = component.loss_fn(
        jax.random.key(2), params, design.hyper, batch, None
    )
    # Eq. 2 adds the classification loss.
    expected = 256 * info["reconstruction"] + 3 * info["kl"] + 7 * info["reader"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.fixture(scope="module")
def shifted(data):
    """The toy windows, with genders that also differ by an offset."""

    def shift(part):
        gender = part.labels["gender"][:, None, None]
        return part._replace(windows=part.windows + np.float32(20) * gender)

    train, test = shift(data.train), shift(data.test)
    stats = lambda reduce: tuple(reduce(train.windows, axis=(0, 1)).tolist())
    spec = dataclasses.replace(data.spec, mean=stats(np.mean), std=stats(np.std))
    return data._replace(spec=spec, train=train, test=test)


def _levels(data, state, build, kind, **settings):
    """Returns the fraction of windows at the upper gender's level, by gender."""
    method = build(data.spec, **settings, anonymization=kind)
    safe = jax.jit(method.anonymize)(jax.random.key(2), state, data.test.windows)
    upper = np.asarray(safe).mean((1, 2)) > 20
    gender = data.test.labels["gender"]
    return [upper[gender == g].mean() for g in (0, 1)]


@pytest.mark.parametrize("build", [methods.attribute_vae, methods.general_vae])
def test_windows_move_to_the_other_gender_s_mean(shifted, build):
    method = build(shifted.spec, **TINY)
    prepared = method.prepare(datasets.by_client(shifted.train))
    # Whole epochs, so the means match the last parameters.
    num = 40 * method.schedule.rounds_per_epoch(prepared)
    call = rounds_program(method.update)
    state, info, _ = call(
        jax.random.key(1), method.init(jax.random.key(0)), prepared, num
    )
    assert np.isfinite(info["loss"])
    low, high = _levels(shifted, state, build, "deterministic", **TINY)
    assert low > 0.9 and high < 0.1
    low, high = _levels(shifted, state, build, "stochastic", **TINY)
    assert 0.2 < low < 0.8 and 0.2 < high < 0.8
    # Without means, latents do not move and levels are preserved.
    still = state._replace(
        params=state.params | {"means": jnp.zeros_like(state.params["means"])}
    )
    low, high = _levels(shifted, still, build, "deterministic", **TINY)
    assert low < 0.1 and high > 0.9


def test_sizes_are_those_published_for_a_data_set(data):
    name = lambda text: dataclasses.replace(data.spec, name=text)
    sizes = lambda build, text: dataclasses.astuple(build(name(text)).config)[:2]
    assert sizes(methods.attribute_vae, "motion_sense") == (10, (512, 256, 128))
    assert sizes(methods.attribute_vae, "mobi_act") == (5, (512, 512, 256, 128))
    assert sizes(methods.obscurenet, "motion_sense") == (10, (512, 256, 128))
    assert sizes(methods.cvae, "motion_sense") == (10, (512, 512, 256, 128))
    assert sizes(methods.cae, "mobi_act") == (5, (512, 512, 256, 128))
    assert sizes(methods.general_vae, "motion_sense")[1][0] == 4096
    own = methods.attribute_vae(
        name("mobi_act"), latent_dim=7, hidden_sizes=(9,)
    ).config
    assert (own.latent_dim, own.hidden_sizes) == (7, (9,))
