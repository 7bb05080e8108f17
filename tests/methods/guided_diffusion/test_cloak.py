"""Tests of Cloak: latent windows, contrastive losses, utility, privacy and errors."""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from jaxanon import datasets, kernels, methods
from jaxanon.methods.common.generator import GeneratorBatch
from jaxanon.methods.guided_diffusion import guidance
from jaxanon.methods.guided_diffusion.guidance import CloakConfig

pytestmark = pytest.mark.slow

DATA = toy.data(per_subject=120)
SMALL = {"widths": (8, 16), "heads": 2, "batch_size": 64, "num_train_timesteps": 50}
SMALL |= {"num_inference_steps": 10, "pretraining": 30, "autoencoder_widths": (16,)}
SMALL |= {"channels": 4, "latent_dim": 32, "projection": 16}
METHOD = methods.cloak(DATA.spec, **SMALL)
# The function hides the module of the same name.
MODULE = importlib.import_module("jaxanon.methods.guided_diffusion.cloak")
NETS = MODULE.networks(DATA.spec, CloakConfig(**SMALL))
WINDOWS = (DATA.test.windows - np.float32(DATA.spec.mean)) / np.float32(DATA.spec.std)


def frequency(windows):
    """Returns the class by the spectrum of the sum of a window's channels."""
    power = np.abs(np.fft.rfft(windows, axis=1)[:, 1:4]) ** 2
    return power.sum(-1).argmax(-1)


def loud(windows):
    """Returns the gender by the amplitude of a window."""
    return (np.std(windows, axis=(1, 2)) > 1.5 * 3 / np.sqrt(2)).astype(int)


@functools.cache
def trained():
    """Returns the state after 90 epochs on the toy data."""
    prepared = METHOD.prepare(datasets.by_client(DATA.train))
    rounds = 90 * METHOD.schedule.rounds_per_epoch(prepared)

    @jax.jit
    def train(state, data):
        step = lambda _, state: METHOD.update(jax.random.key(1), state, data)[0]
        return jax.lax.fori_loop(0, rounds, step, state)

    hyper = {
        "learning_rate": 3e-3,
        "autoencoder_learning_rate": 3e-3,
        "ema_decay": 0.98,
    }
    return train(METHOD.init(jax.random.key(0), **hyper), prepared)


TRACED = []


@jax.jit
def anonymize(key, state, windows):
    """Counts the compilations."""
    TRACED.append(windows.shape)
    return METHOD.anonymize(key, state, windows)


def scores(**hyper):
    """Returns the accuracy of activity and gender on anonymized test windows."""
    state = trained()
    hyper = {name: jnp.float32(value) for name, value in hyper.items()}
    state = state._replace(hyper=state.hyper | hyper)
    safe = np.asarray(anonymize(jax.random.key(4), state, DATA.test.windows))
    assert safe.shape == DATA.test.windows.shape and safe.dtype == np.float32
    assert abs(safe.mean() - 10) < 2  # In physical units.
    labels = DATA.test.labels
    shown = (frequency(safe) == labels["activity"]).mean()
    return shown, (loud(safe) == labels["gender"]).mean()


def test_latent_windows_are_shorter_standard_and_can_be_decoded():
    params = trained().params
    z, _, _ = MODULE.see(NETS, params, WINDOWS)
    assert z.shape == (len(WINDOWS), 8, 4)
    z = np.asarray(z)
    np.testing.assert_allclose(z.mean((0, 1)), 0, atol=0.15)
    np.testing.assert_allclose(z.std((0, 1)), 1, atol=0.15)
    rebuilt = NETS.expand(params, MODULE.unscaled(params, z))
    assert np.mean((rebuilt - WINDOWS) ** 2) < 0.1  # With a variance of 1.


def test_features_tell_their_own_attribute():
    _, public, private = MODULE.see(NETS, trained().params, WINDOWS)
    for latent, own in ((public, "activity"), (private, "gender")):
        nats = kernels.mutual_information(latent, jnp.asarray(DATA.test.labels[own]))
        assert float(nats) > 0.8 * np.log(3 if own == "activity" else 2)


def test_rewriting_keeps_the_public_class_and_loses_the_private():
    shown, told = scores(strength=0.8, guidance_scale=1.5, negative_guidance_scale=1.0)
    assert shown > 0.8 and told < 0.65


def test_negative_guidance_is_what_loses_it():
    _, told = scores(strength=0.7, guidance_scale=1.5, negative_guidance_scale=0.0)
    _, less = scores(strength=0.7, guidance_scale=1.5, negative_guidance_scale=4.0)
    assert told > 0.65 and less < told - 0.15


def test_guidance_is_what_keeps_the_public_class():
    shown, _ = scores(strength=1.0, guidance_scale=1.5, negative_guidance_scale=0.0)
    compiled = len(TRACED)
    guessed, _ = scores(strength=1.0, guidance_scale=0.0, negative_guidance_scale=0.0)
    assert shown > 0.8 and guessed < 0.55
    assert len(TRACED) == compiled  # Weights change without recompiling.


class Says:
    """A network with a constant output."""

    def __init__(self, answer):
        self.apply = lambda variables, *inputs: answer


PARAMS = {"compressor": {}, "expander": {}}
PARAMS["scale"] = {"mean": jnp.array([2.0, 0.0]), "std": jnp.array([4.0, 1.0])}


def test_the_autoencoder_s_loss_and_the_scale_by_hand():
    """Latents have means 4 and 0 and a std near 0; 1s are reconstructed as 2s."""
    mean = jnp.broadcast_to(jnp.array([[[4.0, 0.0]]]), (3, 8, 2))
    nets = NETS._replace(
        compressor=Says((mean, jnp.zeros_like(mean))),
        expander=Says(jnp.full((3, 16, 2), 2.0)),
    )
    batch = GeneratorBatch(jnp.ones((3, 16, 2)), {})
    loss, (info, kept) = MODULE.embedding(nets, None).loss_fn(
        jax.random.key(0), PARAMS, {"kl": 0.25}, batch, None
    )
    # An error of 1, and 4^2 / 2 nats in one of 2 channels.
    assert float(info["reconstruction"]) == 1 and float(info["kl"]) == 4
    assert float(loss) == 2
    # 95 % of the old and 5 % of the batch's.
    np.testing.assert_allclose(kept["scale"]["mean"], [2.1, 0], rtol=1e-6)
    np.testing.assert_allclose(kept["scale"]["std"], [3.8, 0.95], rtol=1e-6)


def test_scaling_is_undone():
    params = {"scale": {"mean": jnp.array([2.0, 1.0]), "std": jnp.array([4.0, 0.0])}}
    z = jnp.array([[[1.0, 0.0], [0.5, 0.0]]])
    want = [[[6.0, 1.0], [4.0, 1.0]]]
    np.testing.assert_allclose(MODULE.unscaled(params, z), want)
    nets = NETS._replace(compressor=Says((jnp.array(want), None)))
    nets = nets._replace(
        classifiers=dict.fromkeys(NETS.sizes, Says((None, jnp.ones((1, 32)))))
    )
    params |= {"compressor": {}, "classifiers": {name: {} for name in NETS.sizes}}
    scaled, public, private = MODULE.see(nets, params, jnp.zeros((1, 16, 2)))
    np.testing.assert_allclose(scaled, z, atol=1e-6)
    np.testing.assert_allclose(public, jnp.ones((1, 32)), rtol=1e-6)
    np.testing.assert_allclose(private, jnp.ones((1, 32)), rtol=1e-6)


def test_contrasts_add_up_over_attributes_by_hand():
    """Tests equal features: the loss is the log of the number of the others."""
    alike = dict.fromkeys(NETS.sizes, Says((jnp.ones((5, 16)), None)))
    labels = {"activity": jnp.array([0, 0, 1, 1, 2]), "gender": jnp.zeros(5, int)}
    loss, (info, _) = MODULE.contrasting(
        NETS._replace(classifiers=alike), None
    ).loss_fn(
        jax.random.key(0),
        {"classifiers": {name: {} for name in NETS.sizes}},
        {"temperature": 0.1},
        GeneratorBatch(jnp.ones((5, 16, 2)), labels),
        None,
    )
    assert float(loss) == pytest.approx(2 * np.log(4), rel=1e-6)
    assert set(info) == {"activity contrast", "gender contrast"}


def test_latents_stand_side_by_side_and_have_one_length():
    features = {
        "activity": jnp.array([[3.0, 4.0]]),
        "gender": jnp.array([[0.0, 2.0]]),
    }
    public, private = guidance.joined(NETS, features)
    np.testing.assert_allclose(public, np.sqrt(2) * np.array([[0.6, 0.8]]), rtol=1e-6)
    np.testing.assert_allclose(private, np.sqrt(2) * np.array([[0, 1]]), rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (
            {"autoencoder_widths": (4,) * 4},
            "of 32 samples for a U-Net of 2 widths, which halves them 1 times "
            "after 4 earlier halvings, got 16",
        ),
    ],
)
def test_settings_that_cannot_be(settings, match):
    with pytest.raises(ValueError, match=match):
        methods.cloak(DATA.spec, **SMALL | settings)


def test_classes_without_windows_are_no_hindrance():
    """Checks that guidance uses latents of windows and no classes."""
    clients = datasets.by_client(DATA.train)
    mask = clients.mask & (clients.labels["activity"] != 1)
    data = methods.cloak(DATA.spec, **SMALL).prepare(clients._replace(mask=mask))
    assert data.counts.tolist()[1] == 0
