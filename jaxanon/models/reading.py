"""What reads an attribute off a window, and is taught beside an autoencoder."""

import jax
import jax.numpy as jnp
import optax

HIDDEN = 64  # Of the small network.


def init(key, inference: str, inputs: int, num_classes: int) -> dict:
    """Parameters at the start, near zero.

    Args:
      key: typed PRNG key.
      inference: ``ridge``, ``logistic`` or ``network``.
      inputs: numbers of a window.
      num_classes: of the attribute.

    Returns:
      Dict of arrays.

    Example:
      >>> sorted(init(jax.random.key(0), "ridge", 30, 4))
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
