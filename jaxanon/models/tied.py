"""Tied autoencoders with orthonormal rows: DEEProtect's features."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels import orthonormal_rows

CURVES = {"sigmoid": jax.nn.sigmoid, "linear": lambda x: x}


class Layer(NamedTuple):
    """A layer that encodes by ``W x + b`` and decodes by ``Wᵀ f + b'``, both curved."""

    kernel: jax.Array  # float32[features, inputs], orthonormal rows
    encoder_bias: jax.Array  # float32[features]
    decoder_bias: jax.Array  # float32[inputs]


def init(key, sizes: Sequence[int]) -> tuple[Layer, ...]:
    """Layers at the start: random orthonormal rows, biases of zero.

    Args:
      key: typed PRNG key.
      sizes: numbers of a window, then of each layer's features, none larger than the
        one before it.

    Returns:
      One ``Layer`` per pair of neighbouring sizes.

    Raises:
      ValueError: if a layer would have more features than inputs, whose rows cannot be
        orthonormal.

    Example:
      >>> layers = init(jax.random.key(0), (30, 15, 7))
      >>> [layer.kernel.shape for layer in layers]
      [(15, 30), (7, 15)]
    """
    check_sizes(sizes)
    pairs = list(itertools.pairwise(sizes))
    return tuple(
        Layer(
            orthonormal_rows(jax.random.normal(one, (features, inputs))),
            jnp.zeros(features),
            jnp.zeros(inputs),
        )
        for one, (inputs, features) in zip(
            jax.random.split(key, len(pairs)), pairs, strict=True
        )
    )


def check_sizes(sizes: Sequence[int]) -> None:
    """Raises ValueError if a layer would have more features than inputs.

    Example:
      >>> check_sizes((30, 15, 7))
    """
    for inputs, features in itertools.pairwise(sizes):
        if features > inputs:
            raise ValueError(
                f"hidden must not grow: {features} features of {inputs} inputs have no "
                "orthonormal rows; give fewer."
            )


def encode(layers: Sequence[Layer], x, curve: str = "sigmoid"):
    """Features of windows.

    Args:
      layers: the first of an autoencoder's, or all of them; of none, ``x``.
      x: ``float[batch, inputs]``, for the sigmoid curve in (0, 1).
      curve: of ``CURVES``, behind every layer.

    Returns:
      ``float[batch, features]``, of the sigmoid curve in (0, 1).
    """
    for layer in layers:
        # A rounded product would be another map than the one that is orthonormal.
        x = jnp.matmul(x, layer.kernel.T, precision="highest")
        x = CURVES[curve](x + layer.encoder_bias[None])
    return x


def decode(layers: Sequence[Layer], features, curve: str = "sigmoid"):
    """Windows of features: the layers backwards, each by its transpose.

    Args:
      layers, curve: as ``encode`` was given them.
      features: ``float[batch, features]``, any numbers.

    Returns:
      ``float[batch, inputs]``, of the sigmoid curve in (0, 1).
    """
    for layer in reversed(layers):
        features = CURVES[curve](features @ layer.kernel + layer.decoder_bias[None])
    return features


def project(layer: Layer) -> Layer:
    """The layer with the orthonormal rows that are nearest to its own.

    References:
      Liu, Chakraborty and Mittal, DEEProtect, 2017, equations 8 and 31.
    """
    return layer._replace(kernel=orthonormal_rows(layer.kernel))


def sparsity(features, rho):
    """How far the mean of each feature is from ``rho``, summed: KL of Bernoulli laws.

    Args:
      features: ``float[batch, features]`` in (0, 1).
      rho: wanted mean, in (0, 1).

    Returns:
      ``float[]`` in nats, >= 0.

    Example:
      >>> float(sparsity(jnp.array([[0.2, 0.5], [0.4, 0.5]]), 0.5)) > 0
      True

    References:
      DEEProtect, equations 26 and 27.
    """
    mean = jnp.clip(jnp.mean(features, axis=0), 1e-6, 1 - 1e-6)
    told = rho * jnp.log(rho / mean) + (1 - rho) * jnp.log((1 - rho) / (1 - mean))
    return jnp.sum(told)
