"""Tests of ObscureNet: discriminator steps, their effect, and hiding a gender."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy
from optimized import optimized

from jaxanon import datasets, methods
from jaxanon.core.programs import rounds_program
from jaxanon.methods.obscurenet import autoencoders
from jaxanon.models.conditional_autoencoder import AutoencoderBatch, autoencoder_loss

pytestmark = pytest.mark.slow


@pytest.fixture
def design_of(built_design, data):
    """Returns the components and networks for given settings."""
    module = "jaxanon.methods.obscurenet.obscurenet"
    return functools.partial(built_design, module, methods.obscurenet, data.spec)


def _batch(size=6):
    keys = jax.random.split(jax.random.key(1), 2)
    hot = jnp.eye(2)[jnp.arange(size) % 2]
    noise = jax.random.normal(keys[1], (size, 3))
    return AutoencoderBatch(jax.random.normal(keys[0], (size, 16, 2)), (hot,), noise)


def test_the_adversary_reads_fixed_latents_before_the_model_answers(design_of):
    design = design_of(latent_dim=3, hidden_sizes=(5,), discriminator_steps=7)
    adversary, model = design.components
    assert (adversary.groups, adversary.steps) == (("readers",), 7)
    assert model.groups == ("encoder", "decoder")
    assert not (adversary.accumulate or adversary.fresh)
    params, batch = design.networks.init(jax.random.key(0)), _batch()
    given = adversary.given_fn(jax.random.key(2), params, None, batch)
    # The same sample of latents as in the model's loss.
    mean, log_variance = design.networks.encode(params, batch.windows)
    np.testing.assert_allclose(
        given, mean + np.exp(log_variance / 2) * batch.noise, rtol=1e-5, atol=1e-6
    )
    loss, _ = adversary.loss_fn(jax.random.key(2), params, None, batch, given)
    _, (told, _) = model.loss_fn(jax.random.key(2), params, design.hyper, batch, None)
    np.testing.assert_allclose(loss, told["reader"], rtol=1e-5)


def test_the_model_gains_what_the_adversary_loses(design_of):
    design = design_of(latent_dim=3, hidden_sizes=(5,), beta=3.0, gamma=7.0)
    params, batch = design.networks.init(jax.random.key(0)), _batch()
    found, (info, _) = design.components[1].loss_fn(
        jax.random.key(2), params, design.hyper, batch, None
    )
    np.testing.assert_allclose(
        found,
        256 * info["reconstruction"] + 3 * info["kl"] - 7 * info["reader"],
        rtol=1e-5,
    )


def test_the_released_forms(design_of):
    design = design_of(
        latent_dim=3, hidden_sizes=(5,), variant="official", accumulate=True
    )
    assert design.components[0].accumulate and design.components[0].steps == 20
    params, batch = design.networks.init(jax.random.key(0)), _batch()
    found, _ = design.components[1].loss_fn(
        jax.random.key(2), params, design.hyper, batch, None
    )
    expected, _ = autoencoder_loss(
        design.networks,
        params,
        batch,
        beta=2.0,
        classifier_weight=-0.2 * 75,
        variant="official",
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.fixture(scope="module")
def plenty():
    """More windows of the toy dataset, where genders differ in amplitude."""
    return toy.data(per_subject=300)


def _amplitudes(data, state, **settings):
    """Returns the mean amplitude of anonymized windows by gender; 3 and 6 before."""
    method = methods.obscurenet(data.spec, **settings)
    safe = jax.jit(method.anonymize)(jax.random.key(2), state, data.test.windows)
    amplitude = np.std(np.asarray(safe) - 10, axis=(1, 2)) * 2**0.5
    gender = data.test.labels["gender"]
    return [amplitude[gender == g].mean() for g in (0, 1)]


def test_the_adversary_makes_the_shown_gender_count(plenty):
    settings = {
        "latent_dim": 4,
        "hidden_sizes": (32,),
        "batch_size": 64,
        "classifier_batch_size": 64,
        "initialization": "lecun",
        "learning_rate": 3e-3,
        "discriminator_steps": 5,
        "discriminator_learning_rate": 3e-3,
    }
    method = methods.obscurenet(plenty.spec, **settings)
    prepared = method.prepare(datasets.by_client(plenty.train))

    def train(gamma):
        state = method.init(jax.random.key(0), gamma=gamma)
        call = optimized(rounds_program(method.update))
        return call(jax.random.key(1), state, prepared, 400)[0]

    hidden, open_ = train(200.0), train(0.0)
    low, high = _amplitudes(plenty, open_, **settings)
    gap = high - low
    assert gap > 1.5  # Without discriminators, the wearer's gender remains.
    low, high = _amplitudes(plenty, hidden, **settings)
    assert abs(high - low) < gap / 2  # A random gender.
    low, high = _amplitudes(plenty, hidden, **settings, anonymization="deterministic")
    assert low > high + 0.8  # The other gender.


def test_each_of_five_branches_is_the_one_of_its_index():
    branches = [lambda n=n: jnp.float32(n) for n in range(5)]
    chosen = jax.jit(lambda index: autoencoders._branch(index, branches))
    found = [float(chosen(jnp.int32(n))) for n in range(-1, 6)]
    assert found == [0, 0, 1, 2, 3, 4, 4]
