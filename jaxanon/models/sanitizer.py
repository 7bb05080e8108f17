"""DySan's networks, and the sanitizer with merged linear layers."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.classifiers import drop_units
from jaxanon.models.convolution import Conv, convolve
from jaxanon.models.layers import Dense

FIRST, SECOND = 6, 5  # kernel sizes of the two convolutions

REACH = FIRST + SECOND - 1  # kernel size of both together


class Sanitizer(nn.Module):
    """Sanitizer of windows: a noisy autoencoder with a bottleneck.

    Two convolutions without an activation between them, tanh, dense layers down to
    ``hidden[-1]`` units, leaky ReLU, dense layers up again, tanh, and two transposed
    convolutions. The official network for MotionSense, with 125 samples of 6 channels
    and four side inputs, has 3,920,714 parameters.

    This is the readable form; ``compose`` and ``sanitize`` compute the same function
    with a quarter of the arithmetic.

    Example:
      >>> net = Sanitizer(filters=(2, 3), hidden=(8, 4))
      >>> windows, noise = jnp.zeros((5, 20, 6)), jnp.zeros((5, 2))
      >>> params = net.init(jax.random.key(0), windows, jnp.zeros((5, 0)), noise)
      >>> net.apply(params, windows, jnp.zeros((5, 0)), noise)[0].shape
      (5, 20, 6)

    References:
      Boutet et al., DySan, AsiaCCS 2021, appendix A.3. Its output softmax is omitted,
      as in the official program; a softmax cannot produce a signal.
    """

    filters: Sequence[int] = (64, 128)
    hidden: Sequence[int] = (128, 64)

    @nn.compact
    def __call__(self, windows, sides, noise):
        """Returns sanitized windows and side inputs.

        Args:
          windows: ``float[batch, time, channels]``, time at least 10.
          sides: ``float[batch, s]``, side inputs about the wearer, in [-1, 1].
          noise: ``float[batch, n]``, U[0, 1).

        Returns:
          ``(float[batch, time, channels], float[batch, s])``.
        """
        (first, second), (wide, narrow) = self.filters, self.hidden
        dense = lambda features, name: Dense(features, "official", name=name)
        x = Conv(second, SECOND, name="conv_1")(
            Conv(first, FIRST, name="conv_0")(windows)
        )
        shape = x.shape
        x = jnp.concatenate([x.reshape(len(x), -1), sides, noise], axis=1)
        outputs = x.shape[1] - noise.shape[1]
        x = dense(narrow, "dense_1")(dense(wide, "dense_0")(jnp.tanh(x)))
        x = dense(outputs, "dense_3")(dense(wide, "dense_2")(nn.leaky_relu(x, 0.01)))
        x, sides = jnp.split(jnp.tanh(x), [outputs - sides.shape[1]], axis=1)
        x = Conv(first, SECOND, True, name="conv_2")(x.reshape(shape))
        return Conv(windows.shape[2], FIRST, True, name="conv_3")(x), sides


class Composed(NamedTuple):
    """Weights and biases of a sanitizer with merged pairs of linear layers."""

    look: tuple[jax.Array, jax.Array]  # float[10, channels, filters] and a bias
    squeeze: tuple[jax.Array, jax.Array]  # float[inputs, hidden[-1]] and a bias
    expand: tuple[jax.Array, jax.Array]  # float[hidden[-1], outputs] and a bias
    draw: tuple[jax.Array, jax.Array]  # float[10, filters, channels] and a bias


def compose(params, time: int) -> Composed:
    """Merges each pair of linear layers without an activation between them.

    Gradients flow through the result to ``params``.

    Args:
      params: parameters of ``Sanitizer``.
      time: samples per window.
    """
    between = time - FIRST + 1  # Samples from the first convolution to the second.
    return Composed(
        _convolutions(params["conv_0"], params["conv_1"], between, widen=False),
        _dense(params["dense_0"], params["dense_1"]),
        _dense(params["dense_2"], params["dense_3"]),
        _convolutions(params["conv_2"], params["conv_3"], between, widen=True),
    )


def sanitize(composed: Composed, windows, sides, noise):
    """Computes the result of ``Sanitizer`` up to rounding, with the same arguments."""
    kernel, bias = composed.look
    x = jnp.tanh(convolve(windows, kernel) + bias[None])
    shape, x = x.shape, x.reshape(len(x), -1)
    more = jnp.tanh(jnp.concatenate([sides, noise], axis=1))
    edge = x.shape[1]
    x = nn.leaky_relu(_joined(x, more, composed.squeeze), 0.01)
    x, sides = _split_tanh(x, composed.expand, edge)
    kernel, bias = composed.draw
    return convolve(x.reshape(shape), kernel, widen=True) + bias[None], sides


# For few rows, concatenate or split the rows; for many, slice the kernel instead.
def _joined(x, more, layer):
    """Applies a dense layer to two groups of inputs."""
    kernel, bias = layer
    if len(x) < kernel.shape[1]:
        return jnp.concatenate([x, more], axis=1) @ kernel + bias[None]
    first, second = jnp.split(kernel, [x.shape[1]])
    return x @ first + more @ second + bias[None]


def _split_tanh(x, layer, edge):
    """Applies a dense layer and tanh; returns the outputs split at ``edge``."""
    kernel, bias = layer
    if len(x) < kernel.shape[0]:
        return jnp.split(jnp.tanh(x @ kernel + bias[None]), [edge], axis=1)
    parts = slice(None, edge), slice(edge, None)
    return [jnp.tanh(x @ kernel[:, part] + bias[None, part]) for part in parts]


def _dense(first, second):
    kernel = first["kernel"] @ second["kernel"]
    return kernel, first["bias"] @ second["kernel"] + second["bias"]


def _convolutions(first, second, between, widen):
    """Merges two convolutions into a kernel and a bias per sample (edges differ)."""
    # The merged kernel is the first one convolved with the flipped second one.
    signal = jnp.swapaxes(first["kernel"], 0, 1)
    kernel = convolve(signal, second["kernel"][::-1], widen=True)
    constant = jnp.broadcast_to(
        first["bias"][None, None], (1, between, len(first["bias"]))
    )
    bias = convolve(constant, second["kernel"], widen=widen)[0]
    return jnp.swapaxes(kernel, 0, 1), bias + second["bias"][None]


DROPOUT = 0.5


class Predictor(nn.Module):
    """Classifier of the public attribute.

    Convolutions over 6, then 5 samples, each with ReLU and average pooling over two
    samples, the first with batch normalisation; dropout, tanh and two dense layers. The
    official network for MotionSense, with three side inputs, has 303,796 parameters,
    without moving averages.

    Example:
      >>> import jax
      >>> net = Predictor(num_classes=4)
      >>> shapes = jax.eval_shape(
      ...     net.init, jax.random.key(0), jnp.zeros((1, 125, 6)), jnp.zeros((1, 3)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(shapes["params"]))
      303796

    References:
      Boutet et al., DySan, AsiaCCS 2021, appendix A.2, and the official program.
    """

    num_classes: int
    filters: Sequence[int] = (100, 100, 160, 160)
    hidden: int = 64

    @nn.compact
    def __call__(self, windows, sides, key=None):
        """Returns logits.

        Args:
          windows: ``float[batch, time, channels]``; see ``min_time`` for the length.
          sides: ``float[batch, s]``, side inputs in [-1, 1].
          key: typed key for dropout in training; ``None`` disables dropout and
            normalises by moving averages.

        Returns:
          ``float[batch, num_classes]``.
        """
        x = windows
        for layer, filters in enumerate(self.filters):
            x = _average_pool(nn.relu(Conv(filters, SECOND if layer else FIRST)(x)))
            x = x if layer else _batch_norm(x, key is not None)
        x = _with_sides(x.reshape(len(x), -1), sides, key)
        x = _official_dense(self.hidden)(jnp.tanh(x))
        return _official_dense(self.num_classes)(x)


class Discriminator(nn.Module):
    """Classifier of one private attribute from windows and side inputs.

    The layers are a convolution over 6 samples, ReLU, average pooling over two samples
    and batch normalisation. Then a dense layer over the samples of each filter, a
    softmax over filters, dropout, tanh and a dense layer follow. The official network
    for MotionSense, with four side inputs, has 14,602 parameters.

    Example:
      >>> import jax
      >>> net = Discriminator(num_classes=2)
      >>> shapes = jax.eval_shape(
      ...     net.init, jax.random.key(0), jnp.zeros((1, 125, 6)), jnp.zeros((1, 4)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(shapes["params"]))
      14602

    References:
      Boutet et al., DySan, AsiaCCS 2021, appendix A.1, which has ReLU instead of the
      softmax; the softmax is that of the official program.
    """

    num_classes: int
    filters: int = 64
    hidden: int = 64

    @nn.compact
    def __call__(self, windows, sides, key=None):
        """Returns logits; arguments as for ``Predictor``, time at least 7."""
        x = _average_pool(nn.relu(Conv(self.filters, FIRST)(windows)))
        x = jnp.swapaxes(_batch_norm(x, key is not None), 1, 2)
        x = _official_dense(self.hidden)(x.reshape(-1, x.shape[2]))
        x = nn.softmax(x.reshape(len(windows), self.filters, self.hidden), axis=1)
        x = _with_sides(x.reshape(len(x), -1), sides, key)
        return _official_dense(self.num_classes)(jnp.tanh(x))


def min_time(filters: Sequence[int]) -> int:
    """Returns the shortest window length that ``Predictor`` accepts.

    Example:
      >>> min_time((100, 100, 160, 160)), min_time((8,))
      (77, 7)
    """
    samples = 1
    for layer in reversed(range(len(filters))):
        samples = 2 * samples + (SECOND if layer else FIRST) - 1
    return samples


def _official_dense(features):
    return Dense(features, "official")


def _average_pool(x):
    """Averages every two samples; an odd last sample is dropped."""
    even = x.shape[1] // 2 * 2
    return (x[:, 0:even:2] + x[:, 1:even:2]) / 2


def _batch_norm(x, train):
    layer = nn.BatchNorm(momentum=0.9, epsilon=1e-5)
    return layer(x, use_running_average=not train)


def _with_sides(x, sides, key):
    x = x if key is None else drop_units(key, x, DROPOUT)
    return jnp.concatenate([x, sides], axis=1)
