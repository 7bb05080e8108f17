"""The std of latents within classes, against NumPy, and which latents are moved."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.models import blinder as models
from jaxanon.models import losses
from jaxanon.models.kd_blinder import class_covariance_root, rarity, shift_latents

spread = jax.jit(class_covariance_root, static_argnames="num_classes")


def _covariance(z, labels, mask, num_classes):
    root = spread(*map(jnp.asarray, (z, labels, mask)), num_classes=num_classes)
    return np.asarray(root @ root.T)


def test_spread_is_the_mean_covariance_by_counts():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(40, 3)).astype(np.float32) @ rng.normal(size=(3, 3))
    z = z.astype(np.float32)
    labels = rng.permutation(np.repeat([0, 1, 3], [25, 14, 1]))
    # The distance between classes is not part of the std within them.
    z += 10 * labels[:, None]
    mask = rng.random(40) < 0.8
    mask |= labels == 3
    real, own = z[mask], labels[mask]
    counts = np.bincount(own, minlength=4)
    each = [np.cov(real[own == c].T, bias=True) for c in (0, 1)]
    expected = (counts[0] * each[0] + counts[1] * each[1]) / counts.sum()
    spoiled = np.where(mask[:, None], z, np.nan).astype(np.float32)
    got = _covariance(spoiled, labels, mask, 4)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    # The unweighted mean over classes is different.
    assert not np.allclose(got, (each[0] + each[1]) / 2, rtol=1e-2)


def test_singular_and_empty_spreads_are_defined():
    z = np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]], np.float32)
    got = _covariance(z, [0, 0, 0], [True] * 3, 1)
    np.testing.assert_allclose(got, np.cov(z.T, bias=True), rtol=1e-4)
    np.testing.assert_array_equal(_covariance(z, [0, 1, 2], [True] * 3, 3), 0.0)
    np.testing.assert_array_equal(_covariance(z, [0, 0, 0], [False] * 3, 1), 0.0)


def test_rarity_of_classes():
    np.testing.assert_allclose(rarity(jnp.array([8, 2, 4, 0])), [0, 0.75, 0.5, 1])
    np.testing.assert_array_equal(rarity(jnp.zeros(2, jnp.int32)), 0)


def test_moved_latents_are_decoded_and_seen_and_cost_no_divergence():
    net = models.networks(
        4, 1, [2], latent=2, hidden=(5,), discriminator_hidden_sizes=(3,)
    )
    keys = jax.random.split(jax.random.key(0), 5)
    hot = lambda key, num: jax.nn.one_hot(jax.random.randint(key, (6,), 0, num), num)
    params = net.init(keys[0], 4, 1, 3)
    windows = jax.random.normal(keys[1], (6, 4, 1))
    noise, public, private = (
        jax.random.normal(keys[2], (6, 2)),
        hot(keys[3], 3),
        hot(keys[4], 2),
    )
    batch = models.BlinderBatch(
        windows, public, (private,), jnp.ones(6), noise, (), noise[:0], ()
    )
    shift = jnp.array([[3.0, -1.0]] * 6)
    scale = models.LossScale(0.5, 2.0, 0.3)
    total, info = models.vae_loss(shift_latents(net, shift), scale)(params, batch)
    mean, log_variance = net.encode(params, windows)
    z = mean + jnp.exp(log_variance / 2) * noise + shift
    error = jnp.sum((windows - net.decode(params, z, [private], public)) ** 2) / 6
    (logits,) = net.discriminate(params, z)
    seen = -jnp.sum(private * jax.nn.log_softmax(logits)) / 6
    kl = jnp.mean(losses.kl_to_standard_normal(mean, log_variance))
    np.testing.assert_allclose(total, 0.5 * error + 2 * kl - 0.3 * seen, rtol=1e-5)
    np.testing.assert_allclose(info["kl"], kl, rtol=1e-5)
