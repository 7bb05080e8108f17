"""Networks of the ObscureNet family: published sizes, conditions, and draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models.conditional_autoencoder import conditional_autoencoder

MOBI_ACT, MOTION_SENSE = (128, 6), (128, 2)
FOUR, THREE = (512, 512, 256, 128), (512, 256, 128)
MOBI_GENERAL = (2048, 1024, 512, 256, 128)


def _count(shape, classes, latent, hidden, **options):
    net = conditional_autoencoder(
        *shape, [classes], latent=latent, hidden=hidden, **options
    )
    params = jax.eval_shape(net.init, jax.random.key(0))
    size = lambda tree: sum(leaf.size for leaf in jax.tree.leaves(tree))
    return {group: size(own) for group, own in params.items()}


@pytest.mark.parametrize(
    ("shape", "classes", "latent", "hidden", "told", "encoder", "decoder"),
    [
        (MOBI_ACT, 2, 5, FOUR, True, 821_898, 822_272),  # ObscureNet, gender
        (MOTION_SENSE, 2, 10, THREE, True, 298_388, 297_600),  # ObscureNet
        (MOBI_ACT, 2, 5, FOUR, False, 821_898, 822_016),  # attribute-specific
        (MOTION_SENSE, 2, 10, FOUR, False, 561_044, 560_000),  # official
        (MOTION_SENSE, 2, 10, THREE, False, 298_388, 297_344),  # paper
        (MOBI_ACT, 2, 5, MOBI_GENERAL, False, 4_363_402, 4_363_520),  # general
    ],
)
def test_published_sizes(shape, classes, latent, hidden, told, encoder, decoder):
    found = _count(shape, classes, latent, hidden, conditional=told)
    assert found == {"encoder": encoder, "decoder": decoder}


def test_published_size_of_the_general_autoencoder_for_motion_sense():
    found = _count(MOTION_SENSE, 2, 10, (4096, *MOBI_GENERAL))
    assert sum(found.values()) == 24_465_172


def test_a_third_class_is_one_more_row_of_the_decoder():
    two, three = (
        _count(MOBI_ACT, n, 5, FOUR, conditional=True)["decoder"] for n in (2, 3)
    )
    assert three - two == 128


def test_a_code_has_no_variance():
    code = _count(MOTION_SENSE, 2, 10, FOUR, conditional=True, random=False)
    latent = _count(MOTION_SENSE, 2, 10, FOUR, conditional=True)
    assert latent["encoder"] - code["encoder"] == 128 * 10 + 10
    assert latent["decoder"] == code["decoder"]


def test_readers_are_a_layer_or_a_network():
    layer = _count(MOTION_SENSE, 2, 10, THREE, classifier_hidden_sizes=())
    network = _count(MOTION_SENSE, 2, 10, THREE, classifier_hidden_sizes=(128,))
    assert layer["readers"] == 10 * 2 + 2
    assert network["readers"] == 10 * 128 + 128 + 128 * 2 + 2


@pytest.fixture(scope="module")
def windows():
    return jax.random.normal(jax.random.key(9), (3, 8, 2))


def test_what_is_told_and_drawn_counts(windows):
    noise = jax.random.normal(jax.random.key(8), (3, 4))
    net = conditional_autoencoder(
        8,
        2,
        [2, 3],
        latent=4,
        hidden=(6,),
        conditional=True,
        classifier_hidden_sizes=(),
    )
    params = net.init(jax.random.key(0))
    mean, log_variance = net.encode(params, windows)
    z = net.draw(params, windows, noise)
    np.testing.assert_allclose(z, mean + np.exp(log_variance / 2) * noise, rtol=1e-5)
    private = [jnp.eye(2)[jnp.array([0, 1, 0])], jnp.eye(3)[jnp.array([2, 1, 0])]]
    other = [private[0], jnp.eye(3)[jnp.array([2, 0, 0])]]
    shown, changed = (net.decode(params, z, told) for told in (private, other))
    assert shown.shape == windows.shape
    # Only the second window has another class.
    np.testing.assert_array_equal(
        np.any(shown != changed, axis=(1, 2)), [False, True, False]
    )
    assert [logits.shape for logits in net.classify(params, z)] == [(3, 2), (3, 3)]


def test_a_code_is_the_same_every_time(windows):
    net = conditional_autoencoder(8, 2, [2], latent=4, hidden=(6,), random=False)
    params = net.init(jax.random.key(0))
    code, none = net.encode(params, windows)
    assert none is None
    drawn = net.draw(params, windows, jax.random.normal(jax.random.key(7), (3, 4)))
    np.testing.assert_array_equal(drawn, code)


def test_layers_start_as_in_the_released_programs(windows):
    net = conditional_autoencoder(8, 2, [2], latent=4, hidden=(400,))
    layer = net.init(jax.random.key(0))["encoder"]["MultiLayer_0"]["Dense_0"]
    for leaf in jax.tree.leaves(layer):  # Including biases.
        np.testing.assert_allclose(jnp.abs(leaf).max(), 16**-0.5, rtol=0.02)
        np.testing.assert_allclose(jnp.std(leaf), (16 * 3) ** -0.5, rtol=0.1)
