"""Feature-level augmentation: latents of rare classes, spread as their class would."""

from typing import NamedTuple, cast

import jax
import jax.numpy as jnp

from jaxanon.models.blinder import Networks


def rarity(counts):
    """``1 - n_c / n_max`` of each class, ``float[classes]``; 0 if there is no row.

    Example:
      >>> rarity(jnp.array([4, 1, 0]))
      Array([0.  , 0.75, 1.  ], dtype=float32)
    """
    most = jnp.max(counts)
    return jnp.where(most > 0, 1 - counts / jnp.maximum(most, 1), 0)


def class_spread(z, labels, mask, num_classes: int):
    """A root of the classes' mean covariance, weighted by their counts.

    Normal rows times its transpose have that covariance. It may be singular, and is 0
    where there is no row; a class of one row has covariance 0.

    Args:
      z: ``float[n, latent]``.
      labels: ``int[n]`` in ``[0, num_classes)``.
      mask: ``bool[n]``, False where a row is padding.
      num_classes: a Python int >= 1.

    Returns:
      ``float[latent, latent]``.

    Example:
      >>> z, labels = jnp.array([[1.0], [5.0], [9.0]]), jnp.array([0, 0, 1])
      >>> root = class_spread(z, labels, jnp.ones(3, bool), 2)
      >>> abs(float((root @ root.T)[0, 0]) - 8 / 3) < 1e-5
      True

    References:
      Shuai et al., BalanceFL, IPSN 2022; Yang and Ardakanian, Blinder, ACM TOSN 2023,
      section 7, baseline 4.
    """
    z = jnp.where(mask[:, None], z, 0)
    exact = jax.lax.Precision.HIGHEST
    hot = jax.nn.one_hot(labels, num_classes, dtype=z.dtype) * mask[:, None]
    counts = jnp.maximum(jnp.sum(hot, axis=0), 1)
    means = jnp.matmul(hot.T, z, precision=exact) / counts[:, None]
    centred = (z - jnp.matmul(hot, means, precision=exact)) * mask[:, None]
    covariance = jnp.matmul(centred.T, centred, precision=exact)
    covariance = covariance / jnp.maximum(jnp.sum(mask), 1)
    values, vectors = jnp.linalg.eigh(covariance)
    return vectors * jnp.sqrt(jnp.maximum(values, 0))[None]


def shifted(networks: Networks, shift) -> Networks:
    """Networks whose latents are moved on their way to what reads them.

    A latent's own mean and variance, and so its KL divergence, stay.

    Args:
      networks: ``Networks``.
      shift: ``float[batch, latent]``.
    """
    return cast(Networks, _Shifted(networks, shift))


class _Shifted(NamedTuple):
    networks: Networks
    shift: jax.Array

    def encode(self, params, windows):
        return self.networks.encode(params, windows)

    def decode(self, params, z, private, public):
        return self.networks.decode(params, z + self.shift, private, public)

    def discriminate(self, params, z):
        return self.networks.discriminate(params, z + self.shift)
