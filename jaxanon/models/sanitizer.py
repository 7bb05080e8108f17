"""DySan's sanitizer: layer by layer to read, and with its linear layers made one."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.classifiers import drop_units
from jaxanon.models.convolution import Conv, convolve
from jaxanon.models.layers import Dense

FIRST, SECOND = 6, 5  # Samples that the two convolutions look at.

REACH = FIRST + SECOND - 1  # Samples that both together look at.


class Sanitizer(nn.Module):
    """A window to one like it, through a bottleneck, with noise.

    Two convolutions without an activation between, tanh, dense layers down to
    ``hidden[-1]`` numbers, leaky ReLU, dense layers up again, tanh, and two transposed
    convolutions. As coded for MotionSense, with 125 samples of 6 channels and four side
    inputs, it counts 3,920,714 parameters.

    This is the network to read; ``compose`` and ``sanitize`` are the same function in a
    quarter of the arithmetic.

    Example:
      >>> net = Sanitizer(filters=(2, 3), hidden=(8, 4))
      >>> windows, noise = jnp.zeros((5, 20, 6)), jnp.zeros((5, 2))
      >>> params = net.init(jax.random.key(0), windows, jnp.zeros((5, 0)), noise)
      >>> net.apply(params, windows, jnp.zeros((5, 0)), noise)[0].shape
      (5, 20, 6)

    References:
      Boutet et al., DySan, AsiaCCS 2021, appendix A.3; the softmax that it puts on the
      output is not in the released program, and no signal comes out of one.
    """

    filters: Sequence[int] = (64, 128)
    hidden: Sequence[int] = (128, 64)

    @nn.compact
    def __call__(self, windows, sides, noise):
        """The sanitized window, and the side inputs as they come out.

        Args:
          windows: ``float[batch, time, channels]``, time at least 10.
          sides: ``float[batch, s]``, what else is known of a wearer, in [-1, 1].
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
    """A sanitizer with every pair of linear layers as one; weights and biases."""

    look: tuple[jax.Array, jax.Array]  # float[10, channels, filters] and a bias
    squeeze: tuple[jax.Array, jax.Array]  # float[inputs, hidden[-1]] and a bias
    expand: tuple[jax.Array, jax.Array]  # float[hidden[-1], outputs] and a bias
    draw: tuple[jax.Array, jax.Array]  # float[10, filters, channels] and a bias


def compose(params, time: int) -> Composed:
    """Multiplies out what no activation keeps apart.

    Args:
      params: of ``Sanitizer``.
      time: samples of a window.

    Returns:
      ``Composed``; gradients flow through it to the layers that ``params`` are of.
    """
    between = time - FIRST + 1  # Samples from the first convolution to the second.
    return Composed(
        _convolutions(params["conv_0"], params["conv_1"], between, widen=False),
        _dense(params["dense_0"], params["dense_1"]),
        _dense(params["dense_2"], params["dense_3"]),
        _convolutions(params["conv_2"], params["conv_3"], between, widen=True),
    )


def sanitize(composed: Composed, windows, sides, noise):
    """What ``Sanitizer`` makes of windows, up to rounding; arguments as there."""
    kernel, bias = composed.look
    x = jnp.tanh(convolve(windows, kernel) + bias[None])
    shape, x = x.shape, x.reshape(len(x), -1)
    more = jnp.tanh(jnp.concatenate([sides, noise], axis=1))
    edge = x.shape[1]
    x = nn.leaky_relu(_joined(x, more, composed.squeeze), 0.01)
    x, sides = _parted(x, composed.expand, edge)
    kernel, bias = composed.draw
    return convolve(x.reshape(shape), kernel, widen=True) + bias[None], sides


# Many rows are not copied to be joined or parted, nor is a kernel for few of them.
def _joined(x, more, layer):
    """A dense layer's outputs for two groups of inputs."""
    kernel, bias = layer
    if len(x) < kernel.shape[1]:
        return jnp.concatenate([x, more], axis=1) @ kernel + bias[None]
    own, others = jnp.split(kernel, [x.shape[1]])
    return x @ own + more @ others + bias[None]


def _parted(x, layer, edge):
    """The tanh of a dense layer's outputs, in two groups from ``edge``."""
    kernel, bias = layer
    if len(x) < kernel.shape[0]:
        return jnp.split(jnp.tanh(x @ kernel + bias[None]), [edge], axis=1)
    parts = slice(None, edge), slice(edge, None)
    return [jnp.tanh(x @ kernel[:, part] + bias[None, part]) for part in parts]


def _dense(first, second):
    kernel = first["kernel"] @ second["kernel"]
    return kernel, first["bias"] @ second["kernel"] + second["bias"]


def _convolutions(first, second, between, widen):
    """One kernel for two, and a bias for every sample: edges see less of the first."""
    # Taken for a signal, the first kernel is seen by the second from behind.
    signal = jnp.swapaxes(first["kernel"], 0, 1)
    kernel = convolve(signal, second["kernel"][::-1], widen=True)
    constant = jnp.broadcast_to(
        first["bias"][None, None], (1, between, len(first["bias"]))
    )
    bias = convolve(constant, second["kernel"], widen=widen)[0]
    return jnp.swapaxes(kernel, 0, 1), bias + second["bias"][None]


DROPOUT = 0.5


class Predictor(nn.Module):
    """A window to the logits of its public class.

    Convolutions over 6 samples, then 5, each with ReLU and the mean of every two
    samples, the first followed by batch normalisation; dropout, tanh, and two dense
    layers. As coded for MotionSense, with three side inputs, it counts 303,796
    parameters; averages of the batches' statistics are not among them.

    Example:
      >>> import jax
      >>> net = Predictor(num_classes=4)
      >>> shapes = jax.eval_shape(
      ...     net.init, jax.random.key(0), jnp.zeros((1, 125, 6)), jnp.zeros((1, 3)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(shapes["params"]))
      303796

    References:
      Boutet et al., DySan, AsiaCCS 2021, appendix A.2, and the released program.
    """

    num_classes: int
    filters: Sequence[int] = (100, 100, 160, 160)
    hidden: int = 64

    @nn.compact
    def __call__(self, windows, sides, key=None):
        """Logits, not normalised.

        Args:
          windows: ``float[batch, time, channels]``; ``least_time`` says how long.
          sides: ``float[batch, s]``, what else is known, in [-1, 1].
          key: typed key for dropout, in training; ``None`` drops nothing and
            normalises by the averages in place of the batch.

        Returns:
          ``float[batch, num_classes]``.
        """
        x = windows
        for layer, filters in enumerate(self.filters):
            x = _halved(nn.relu(Conv(filters, SECOND if layer else FIRST)(x)))
            x = x if layer else _normalised(x, key is not None)
        x = _with_sides(x.reshape(len(x), -1), sides, key)
        x = _official_dense(self.hidden)(jnp.tanh(x))
        return _official_dense(self.num_classes)(x)


class Discriminator(nn.Module):
    """A window, and what else is known of it, to the logits of a private class.

    A convolution over 6 samples, ReLU, the mean of every two samples and batch
    normalisation; each filter's samples through a dense layer, a softmax over the
    filters, dropout, tanh and a dense layer. As coded for MotionSense, with four side
    inputs, it counts 14,602 parameters.

    Example:
      >>> import jax
      >>> net = Discriminator(num_classes=2)
      >>> shapes = jax.eval_shape(
      ...     net.init, jax.random.key(0), jnp.zeros((1, 125, 6)), jnp.zeros((1, 4)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(shapes["params"]))
      14602

    References:
      Boutet et al., DySan, AsiaCCS 2021, appendix A.1; it has ReLU where the released
      program and this have the softmax.
    """

    num_classes: int
    filters: int = 64
    hidden: int = 64

    @nn.compact
    def __call__(self, windows, sides, key=None):
        """As ``Predictor``, for windows of 7 samples or more."""
        x = _halved(nn.relu(Conv(self.filters, FIRST)(windows)))
        x = jnp.swapaxes(_normalised(x, key is not None), 1, 2)
        x = _official_dense(self.hidden)(x.reshape(-1, x.shape[2]))
        x = nn.softmax(x.reshape(len(windows), self.filters, self.hidden), axis=1)
        x = _with_sides(x.reshape(len(x), -1), sides, key)
        return _official_dense(self.num_classes)(jnp.tanh(x))


def least_time(filters: Sequence[int]) -> int:
    """Samples that a window must have for ``Predictor`` to see one at the end.

    Example:
      >>> least_time((100, 100, 160, 160)), least_time((8,))
      (77, 7)
    """
    samples = 1
    for layer in reversed(range(len(filters))):
        samples = 2 * samples + (SECOND if layer else FIRST) - 1
    return samples


def _official_dense(features):
    return Dense(features, "official")


def _halved(x):
    """The mean of every two samples; one that is left over is dropped."""
    even = x.shape[1] // 2 * 2
    return (x[:, 0:even:2] + x[:, 1:even:2]) / 2


def _normalised(x, train):
    layer = nn.BatchNorm(momentum=0.9, epsilon=1e-5)
    return layer(x, use_running_average=not train)


def _with_sides(x, sides, key):
    x = x if key is None else drop_units(key, x, DROPOUT)
    return jnp.concatenate([x, sides], axis=1)
