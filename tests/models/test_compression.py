"""The window autoencoder: its shapes, and that it preserves amplitudes."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.models.autoencoder import LOG_VARIANCE
from jaxanon.models.guided_diffusion import Compressor, Expander


def test_each_width_halves_and_doubles_again():
    x = jnp.zeros((2, 24, 3))
    for widths in ((4,), (4, 6, 8)):
        net, back = Compressor(widths, 5), Expander(widths[::-1], 3)
        mean, log_variance = net.init_with_output(jax.random.key(0), x)[0]
        assert mean.shape == log_variance.shape == (2, 24 // 2 ** len(widths), 5)
        assert back.init_with_output(jax.random.key(0), mean)[0].shape == x.shape


def test_how_large_a_window_is_reaches_its_latent():
    x = jax.random.normal(jax.random.key(1), (1, 16, 2))
    both = jnp.concatenate([x, 4 * x])
    net = Compressor((8,), 4)
    mean, _ = net.apply(net.init(jax.random.key(0), both), both)
    size = np.linalg.norm(np.asarray(mean), axis=(1, 2))
    assert size[1] > 2 * size[0]


def test_log_variances_are_clipped():
    x = 1e6 * jnp.ones((1, 8, 1))
    net = Compressor((4,), 2)
    _, log_variance = net.apply(net.init(jax.random.key(0), x), x)
    low, high = LOG_VARIANCE
    assert np.all((log_variance >= low) & (log_variance <= high))
    assert np.any((log_variance == low) | (log_variance == high))
