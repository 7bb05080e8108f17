"""Layers that any jaxanon model is built of."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon import kernels


def uniform_fan_in(key, shape, dtype=jnp.float32):
    """``U(±1/√fan_in)``, the initialisation of the published programs' layers.

    Args:
      key: typed PRNG key.
      shape: of the weights, outputs last; fan-in is the product of all other axes.
      dtype: of the result.
    """
    fan_in = math.prod(shape[:-1])
    return jax.random.uniform(key, shape, dtype, -1.0, 1.0) / fan_in**0.5


def _uniform_bias(key, shape, fan_in):
    return uniform_fan_in(key, (fan_in, *shape))[0]


class Dense(nn.Module):
    """``x @ kernel + bias``, whose change per client may stay factored.

    The kernel is multiplied through ``jaxanon.kernels.matmul``, so a client's update
    can be handed in as ``Factors`` instead of as a copy of the weights. Weights *and*
    bias start at ``U(±1/√fan_in)``.
    """

    features: int

    @nn.compact
    def __call__(self, x):
        """``float[batch, d_in] -> float[batch, features]``."""
        fan_in = x.shape[-1]
        kernel = self.param("kernel", uniform_fan_in, (fan_in, self.features))
        bias = self.param("bias", _uniform_bias, (self.features,), fan_in)
        return kernels.matmul(x, kernel) + bias


class MultiLayer(nn.Module):
    """Dense layers with ReLU between them and none after the last."""

    features: Sequence[int]

    @nn.compact
    def __call__(self, x):
        """``float[batch, d_in] -> float[batch, features[-1]]``."""
        for features in self.features[:-1]:
            x = nn.relu(Dense(features)(x))
        return Dense(self.features[-1])(x)


def flatten(windows):
    """``float[batch, time, channels] -> float[batch, channels * time]``.

    Channels stay whole, one after another, as in the published programs.
    """
    return jnp.swapaxes(windows, -1, -2).reshape(windows.shape[0], -1)


def unflatten(rows, time: int, channels: int):
    """The inverse of ``flatten``."""
    return jnp.swapaxes(rows.reshape(rows.shape[0], channels, time), -1, -2)
