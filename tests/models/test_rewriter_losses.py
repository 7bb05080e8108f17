"""Losses of the ObscureNet family, against the published formulas by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models.conditional_autoencoder import (
    AutoencoderBatch,
    autoencoder_loss,
    binary_cross_entropy,
    classifier_loss,
    conditional_autoencoder,
)

BETA, READING = 1.7, -3.0


@pytest.fixture(scope="module")
def case():
    """Returns networks for two private attributes, their parameters, and a batch."""
    keys = jax.random.split(jax.random.key(0), 5)
    net = conditional_autoencoder(
        8,
        2,
        [2, 3],
        latent=4,
        hidden=(6,),
        conditional=True,
        classifier_hidden_sizes=(5,),
    )
    hot = lambda key, n: jax.nn.one_hot(jax.random.randint(key, (7,), 0, n), n)
    batch = AutoencoderBatch(
        jax.random.normal(keys[1], (7, 8, 2)),
        (hot(keys[2], 2), hot(keys[3], 3)),
        jax.random.normal(keys[4], (7, 4)),
    )
    return net, net.init(keys[0]), batch


def _parts(net, params, batch):
    """Returns squared error, summed KL divergence, and the classifiers' softmax."""
    mean, log_variance = map(np.float64, net.encode(params, batch.windows))
    z = jnp.float32(mean + np.exp(log_variance / 2) * np.asarray(batch.noise))
    rebuilt = np.float64(net.decode(params, z, batch.private))
    error = np.mean((rebuilt - np.asarray(batch.windows)) ** 2)
    summed = np.sum(1 + log_variance - mean**2 - np.exp(log_variance), axis=1)
    softmax = [np.float64(jax.nn.softmax(one)) for one in net.classify(params, z)]
    return error, summed, softmax


def test_the_plain_loss_is_an_evidence_bound_per_window(case):
    net, params, batch = case
    error, summed, softmax = _parts(net, params, batch)
    entropy = sum(
        -np.mean(np.log(p[np.asarray(y) == 1]))
        for p, y in zip(softmax, batch.private, strict=True)
    )
    kl = np.mean(-0.5 * summed)
    loss, info = autoencoder_loss(
        net, params, batch, beta=BETA, classifier_weight=READING
    )
    np.testing.assert_allclose(
        loss, 512 * 0.5 * error + BETA * kl + READING * entropy, rtol=1e-5
    )
    told = {"loss": loss, "reconstruction": error, "kl": kl, "reader": entropy}
    assert info.keys() == told.keys()
    for name, value in told.items():
        np.testing.assert_allclose(info[name], value, rtol=1e-5)


def test_the_released_loss_is_the_published_program_s(case):
    net, params, batch = case
    error, summed, softmax = _parts(net, params, batch)
    c, weight = BETA, -READING / 75
    kld = np.mean(-c * summed)
    binary = sum(
        -np.mean(np.log(np.where(np.asarray(y) == 1, p, 1 - p)))
        for p, y in zip(softmax, batch.private, strict=True)
    )
    expected = (512 * error + kld) / 150 - weight * binary
    loss, _ = autoencoder_loss(
        net, params, batch, beta=BETA, classifier_weight=READING, variant="official"
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_a_reader_alone_is_judged_as_in_the_whole(case):
    net, params, batch = case
    z = net.draw(params, batch.windows, batch.noise)
    for variant in ("paper", "official"):
        _, info = autoencoder_loss(net, params, batch, variant=variant)
        alone = classifier_loss(net, params, z, batch.private, variant=variant)
        np.testing.assert_allclose(alone, info["reader"], rtol=1e-6)


def test_two_classes_make_no_difference_and_three_do():
    logits = 3 * jax.random.normal(jax.random.key(1), (50, 2))
    y = jnp.eye(2)[jnp.arange(50) % 2]
    entropy = -jnp.mean(jnp.sum(y * jax.nn.log_softmax(logits), axis=1))
    np.testing.assert_allclose(binary_cross_entropy(logits, y), entropy, rtol=1e-5)
    # Three equal classes: -(log 1/3 + 2 log 2/3) / 3.
    expected = (np.log(3) + 2 * np.log(1.5)) / 3
    found = binary_cross_entropy(jnp.zeros((1, 3)), jnp.eye(3)[:1])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_certainty_has_a_finite_loss_and_slope():
    loss = lambda logits: binary_cross_entropy(logits, jnp.eye(3)[:1])
    sure, wrong = jnp.array([[90.0, 0, 0]]), jnp.array([[0, 90.0, 0]])
    for logits, expected in ((sure, 0.0), (wrong, 2 * 90 / 3)):
        value, slope = jax.value_and_grad(loss)(logits)
        np.testing.assert_allclose(value, expected, rtol=0.02, atol=1e-6)
        assert jnp.all(jnp.isfinite(slope))


def test_a_code_is_judged_by_its_error_alone(case):
    _, _, batch = case
    net = conditional_autoencoder(
        8, 2, [2, 3], latent=4, hidden=(6,), conditional=True, random=False
    )
    params = net.init(jax.random.key(3))
    loss, info = autoencoder_loss(net, params, batch)
    assert info.keys() == {"loss", "reconstruction"}
    np.testing.assert_allclose(loss, 256 * info["reconstruction"], rtol=1e-6)
