"""DySan's predictor and discriminator: what grades a sanitized window."""

from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.classifier import drop_units
from jaxanon.models.convolution import Conv
from jaxanon.models.layers import Dense
from jaxanon.models.sanitizer import FIRST, SECOND

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
        x = _dense(self.hidden)(jnp.tanh(x))
        return _dense(self.num_classes)(x)


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
        x = _dense(self.hidden)(x.reshape(-1, x.shape[2]))
        x = nn.softmax(x.reshape(len(windows), self.filters, self.hidden), axis=1)
        x = _with_sides(x.reshape(len(x), -1), sides, key)
        return _dense(self.num_classes)(jnp.tanh(x))


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


def _dense(features):
    return Dense(features, "released")


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
