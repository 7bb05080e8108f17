"""Generators and discriminators of windows, convolutional and recurrent."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.unet import Convolution, Double, norm

SLOPE = 0.2  # Negative slope of leaky ReLUs.


class Generator(nn.Module):
    """Generator: a dense layer, then blocks that double the number of samples.

    Binary channels end in tanh.

    Example:
      >>> net = Generator(10, (False, True), 3, widths=(8, 4))
      >>> noise, classes = jnp.zeros((2, 5)), jnp.array([0, 2])
      >>> variables = net.init(jax.random.key(0), noise, classes)
      >>> net.apply(variables, noise, classes).shape
      (2, 10, 2)

    References:
      Mirza and Osindero, Conditional generative adversarial nets, 2014; architecture
      after Radford, Metz, Chintala, ICLR 2016.
    """

    time: int
    bits: Sequence[bool]  # whether each channel is binary, -1 or 1
    num_classes: int
    widths: Sequence[int] = (128, 64)

    @nn.compact
    def __call__(self, noise, classes):
        """``float[batch, d], int32[batch] -> float[batch, time, channels]``."""
        onehot = jax.nn.one_hot(classes, self.num_classes)
        first = math.ceil(self.time / 2 ** len(self.widths))
        x = nn.Dense(first * self.widths[0])(jnp.concatenate([noise, onehot], axis=1))
        x = nn.relu(x).reshape(len(x), first, self.widths[0])
        for number, width in enumerate(self.widths):
            x = Double(width, name=f"double_{number}")(x)
            x = nn.relu(norm(width, f"norm_{number}", x.dtype)(x))
        x = Convolution(len(self.bits), name="last")(x[:, : self.time])
        return jnp.where(jnp.array(self.bits)[None, None], jnp.tanh(x), x)


class Critic(nn.Module):
    """Conditional discriminator: convolutions that halve time, then one logit.

    Example:
      >>> net = Critic(3, widths=(4, 8))
      >>> windows, classes = jnp.zeros((2, 10, 2)), jnp.array([0, 2])
      >>> variables = net.init(jax.random.key(0), windows, classes)
      >>> net.apply(variables, windows, classes).shape
      (2,)
    """

    num_classes: int
    widths: Sequence[int] = (64, 128)

    @nn.compact
    def __call__(self, windows, classes):
        """Returns the logits of being real, ``float[batch]``."""
        onehot = jax.nn.one_hot(classes, self.num_classes)[:, None]
        onehot = jnp.broadcast_to(onehot, (*windows.shape[:2], self.num_classes))
        x = jnp.concatenate([windows, onehot], axis=-1)
        for number, width in enumerate(self.widths):
            x = Convolution(width, name=f"conv_{number}")(x)
            x = nn.leaky_relu(x, SLOPE)
            if x.shape[1] > 1:
                whole = x.shape[1] // 2 * 2
                x = x[:, :whole].reshape(len(x), -1, 2 * width)
        return nn.Dense(1, name="dense")(x.reshape(len(x), -1))[:, 0]


class Recurrent(nn.Module):
    """Layers of gated recurrent units, then a dense layer at every step.

    The reset gate scales the product of a matrix with the state, not the state itself.

    Example:
      >>> net = Recurrent((8, 8), 3)
      >>> x = jnp.zeros((2, 10, 5))
      >>> net.apply(net.init(jax.random.key(0), x), x).shape
      (2, 10, 3)

    References:
      Yoon, Jarrett, van der Schaar, Time-series generative adversarial networks,
      NeurIPS 2019, section 5; Cho et al., EMNLP 2014, except for the reset gate.
    """

    features: Sequence[int]
    outputs: int
    sigmoid: bool = True  # whether outputs are in (0, 1)

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, d_in] -> float[batch, time, outputs]``."""
        for number, width in enumerate(self.features):
            x = jnp.asarray(nn.RNN(nn.GRUCell(width, name=f"layer_{number}"))(x))
        x = nn.Dense(self.outputs, name="dense")(x)
        return jax.nn.sigmoid(x) if self.sigmoid else x


def append_classes(x, classes, num_classes: int):
    """Appends one-hot classes to every time step.

    Args:
      x: ``float[batch, time, d]``.
      classes: ``int32[batch]``.
      num_classes: number of classes.

    Returns:
      ``float[batch, time, d + num_classes]``.

    Example:
      >>> append_classes(jnp.ones((1, 2, 1)), jnp.array([1]), 2)[0]
      Array([[1., 0., 1.],
             [1., 0., 1.]], dtype=float32)
    """
    onehot = jax.nn.one_hot(classes, num_classes, dtype=x.dtype)[:, None]
    shape = (*x.shape[:2], num_classes)
    return jnp.concatenate([x, jnp.broadcast_to(onehot, shape)], axis=-1)
