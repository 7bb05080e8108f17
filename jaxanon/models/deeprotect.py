"""DEEProtect's networks: tied autoencoders, and classifiers of inferences."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon.kernels import orthonormal_rows

HIDDEN = 64  # Of the small network.


def init_classifier(key, inference: str, inputs: int, num_classes: int) -> dict:
    """Parameters at the start, near zero.

    Args:
      key: typed PRNG key.
      inference: ``ridge``, ``logistic`` or ``network``.
      inputs: numbers of a window.
      num_classes: of the attribute.

    Returns:
      Dict of arrays.

    Example:
      >>> sorted(init_classifier(jax.random.key(0), "ridge", 30, 4))
      ['bias', 'kernel']
    """
    first, second = jax.random.split(key)
    small = lambda key, *shape: 0.01 * jax.random.normal(key, shape)
    bias = jnp.zeros(num_classes)
    if inference != "network":
        return {"kernel": small(first, inputs, num_classes), "bias": bias}
    spread = inputs**-0.5
    return {
        "hidden": spread * jax.random.normal(first, (inputs, HIDDEN)),
        "hidden_bias": jnp.zeros(HIDDEN),
        "kernel": small(second, HIDDEN, num_classes),
        "bias": bias,
    }


def read(params: dict, windows):
    """What is said of windows: scores, the largest the guess.

    Windows are standardised over the batch: behind two flat curves a layer they differ
    by thousandths, which weights of an ordinary size would not read.

    Args:
      params: of ``init``.
      windows: ``float[batch, inputs]``, at least two.

    Returns:
      ``float[batch, num_classes]``.
    """
    mean = jnp.mean(windows, axis=0, keepdims=True)
    std = jax.lax.stop_gradient(jnp.std(windows, axis=0, keepdims=True))
    x = (windows - mean) / jnp.maximum(std, 1e-12)
    if "hidden" in params:
        x = jnp.tanh(x @ params["hidden"] + params["hidden_bias"][None])
    return x @ params["kernel"] + params["bias"][None]


def loss(params: dict, inference: str, windows, labels):
    """How wrong it is: of ridge the squared distance to ±1, one class against the rest.

    Args:
      params, windows: as ``read``.
      inference: as ``init``.
      labels: ``int[batch]``.

    Returns:
      ``float[]``, a mean over the batch; cross-entropy in nats but for ridge.

    References:
      Liu, Chakraborty and Mittal, DEEProtect, 2017, equation 4.
    """
    told = read(params, windows)
    if inference == "ridge":
        wanted = 2 * jax.nn.one_hot(labels, told.shape[1]) - 1
        return jnp.mean(jnp.sum((told - wanted) ** 2, axis=1))
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(told, labels))


def squares(params: dict):
    """Of all weights but biases, ``float[]``."""
    return sum(
        jnp.sum(params[name] ** 2) for name in ("kernel", "hidden") if name in params
    )


CURVES = {"sigmoid": jax.nn.sigmoid, "linear": lambda x: x}


class Layer(NamedTuple):
    """A layer that encodes by ``W x + b`` and decodes by ``Wᵀ f + b'``, both curved."""

    kernel: jax.Array  # float32[features, inputs], orthonormal rows
    encoder_bias: jax.Array  # float32[features]
    decoder_bias: jax.Array  # float32[inputs]


def init_autoencoder(key, sizes: Sequence[int]) -> tuple[Layer, ...]:
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
      >>> layers = init_autoencoder(jax.random.key(0), (30, 15, 7))
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
                f"hidden_sizes must not grow: {features} features of {inputs} inputs "
                "have no orthonormal rows; give fewer."
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
