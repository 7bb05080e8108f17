"""DEEProtect's networks: autoencoders with tied weights, and attribute classifiers."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon.kernels import orthonormal_rows

HIDDEN = 64  # Hidden units of the "network" classifier.


def init_classifier(key, inference: str, inputs: int, num_classes: int) -> dict:
    """Returns the initial parameters of a classifier, near zero.

    Args:
      key: typed PRNG key.
      inference: ``ridge``, ``logistic`` or ``network``.
      inputs: number of inputs.
      num_classes: number of classes.

    Example:
      >>> sorted(init_classifier(jax.random.key(0), "ridge", 30, 4))
      ['bias', 'kernel']
    """
    first, second = jax.random.split(key)
    small = lambda key, *shape: 0.01 * jax.random.normal(key, shape)
    bias = jnp.zeros(num_classes)
    if inference != "network":
        return {"kernel": small(first, inputs, num_classes), "bias": bias}
    std = inputs**-0.5
    return {
        "hidden": std * jax.random.normal(first, (inputs, HIDDEN)),
        "hidden_bias": jnp.zeros(HIDDEN),
        "kernel": small(second, HIDDEN, num_classes),
        "bias": bias,
    }


def predict_scores(params: dict, windows):
    """Returns a score for each class; the largest is the prediction.

    Windows are first standardised over the batch. After two sigmoids per layer, they
    differ only by thousandths, too little for weights of an ordinary size.

    Args:
      params: classifier parameters, from ``init_classifier``.
      windows: ``float[batch, inputs]``, batch at least 2.

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
    """Returns a classifier's mean loss over the batch, ``float[]``.

    The loss of ``ridge`` is the squared distance of the scores from ±1, one class
    against the rest. The loss of the others is the cross-entropy in nats.

    Args:
      params: classifier parameters, from ``init_classifier``.
      inference: ``ridge``, ``logistic`` or ``network``.
      windows: ``float[batch, inputs]``, batch at least 2.
      labels: ``int[batch]``.

    References:
      Liu, Chakraborty and Mittal, DEEProtect, 2017, equation 4.
    """
    scores = predict_scores(params, windows)
    if inference == "ridge":
        targets = 2 * jax.nn.one_hot(labels, scores.shape[1]) - 1
        return jnp.mean(jnp.sum((scores - targets) ** 2, axis=1))
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(scores, labels))


def squared_norm(params: dict):
    """Returns the sum of squared weights without biases, ``float[]``."""
    return sum(
        jnp.sum(params[name] ** 2) for name in ("kernel", "hidden") if name in params
    )


CURVES = {"sigmoid": jax.nn.sigmoid, "linear": lambda x: x}


class Layer(NamedTuple):
    """Layer that encodes by ``s(W x + b)`` and decodes by ``s(Wᵀ f + b')``."""

    kernel: jax.Array  # float32[features, inputs], orthonormal rows
    encoder_bias: jax.Array  # float32[features]
    decoder_bias: jax.Array  # float32[inputs]


def init_autoencoder(key, sizes: Sequence[int]) -> tuple[Layer, ...]:
    """Returns initial layers with random orthonormal rows and zero biases.

    Args:
      key: typed PRNG key.
      sizes: number of inputs, then of each layer's features; must not increase.

    Returns:
      One ``Layer`` per pair of consecutive sizes.

    Raises:
      ValueError: if a layer has more features than inputs, so that its rows cannot be
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
    """Raises ValueError if a layer has more features than inputs.

    Example:
      >>> check_sizes((30, 15, 7))
    """
    for inputs, features in itertools.pairwise(sizes):
        if features > inputs:
            raise ValueError(
                f"hidden_sizes must not increase, got {features} features for {inputs} "
                "inputs; orthonormal rows require at most as many features."
            )


def encode(layers: Sequence[Layer], x, curve: str = "sigmoid"):
    """Encodes windows to features.

    Args:
      layers: first layers of an autoencoder, or all; without layers, returns ``x``.
      x: ``float[batch, inputs]``, in (0, 1) for the sigmoid.
      curve: activation of every layer, a key of ``CURVES``.

    Returns:
      ``float[batch, features]``, in (0, 1) for the sigmoid.
    """
    for layer in layers:
        # In lower precision the map would no longer be orthonormal.
        x = jnp.matmul(x, layer.kernel.T, precision="highest")
        x = CURVES[curve](x + layer.encoder_bias[None])
    return x


def decode(layers: Sequence[Layer], features, curve: str = "sigmoid"):
    """Decodes features to windows by the transposed layers in reverse order.

    Args:
      layers: the layers that encoded.
      features: ``float[batch, features]``, any numbers.
      curve: activation of every layer, a key of ``CURVES``.

    Returns:
      ``float[batch, inputs]``, in (0, 1) for the sigmoid.
    """
    for layer in reversed(layers):
        features = CURVES[curve](features @ layer.kernel + layer.decoder_bias[None])
    return features


def project(layer: Layer) -> Layer:
    """Projects the rows of a layer to the nearest orthonormal ones.

    References:
      Liu, Chakraborty and Mittal, DEEProtect, 2017, equations 8 and 31.
    """
    return layer._replace(kernel=orthonormal_rows(layer.kernel))


def sparsity(features, rho):
    """Returns the summed KL divergence of Bernoulli(rho) from each feature's mean.

    Args:
      features: ``float[batch, features]`` in (0, 1).
      rho: target mean, in (0, 1).

    Returns:
      ``float[]`` in nats, >= 0.

    Example:
      >>> float(sparsity(jnp.array([[0.2, 0.5], [0.4, 0.5]]), 0.5)) > 0
      True

    References:
      DEEProtect, equations 26 and 27.
    """
    mean = jnp.clip(jnp.mean(features, axis=0), 1e-6, 1 - 1e-6)
    kl = rho * jnp.log(rho / mean) + (1 - rho) * jnp.log((1 - rho) / (1 - mean))
    return jnp.sum(kl)
