"""Layers that any jaxanon model is built of."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon import kernels

INITIALISATIONS = ("lecun", "released")


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


def _zero_bias(key, shape, fan_in):
    del key, fan_in
    return jnp.zeros(shape)


class Dense(nn.Module):
    """``x @ kernel + bias``, whose change per client may stay factored.

    The kernel is multiplied through ``jaxanon.kernels.matmul``, so a client's update
    can be handed in as ``Factors`` instead of as a copy of the weights.

    With ``initialisation="lecun"`` weights start normal with variance ``1/fan_in`` and
    biases at 0; with ``"released"`` both start at ``U(±1/√fan_in)``, as in the
    published programs, where the signal shrinks from layer to layer and learning
    starts slowly.
    """

    features: int
    initialisation: str = "lecun"

    @nn.compact
    def __call__(self, x):
        """``float[batch, d_in] -> float[batch, features]``."""
        fan_in = x.shape[-1]
        released = self.initialisation == "released"
        initial = uniform_fan_in if released else nn.initializers.lecun_normal()
        kernel = self.param("kernel", initial, (fan_in, self.features))
        initial = _uniform_bias if released else _zero_bias
        bias = self.param("bias", initial, (self.features,), fan_in)
        return kernels.matmul(x, kernel) + bias[None]


class MultiLayer(nn.Module):
    """Dense layers with ReLU between them and none after the last."""

    features: Sequence[int]
    initialisation: str = "lecun"

    @nn.compact
    def __call__(self, x):
        """``float[batch, d_in] -> float[batch, features[-1]]``."""
        for features in self.features[:-1]:
            x = nn.relu(Dense(features, self.initialisation)(x))
        return Dense(self.features[-1], self.initialisation)(x)


def flatten(windows):
    """``float[batch, time, channels] -> float[batch, channels * time]``.

    Channels stay whole, one after another, as in the published programs.
    """
    return jnp.swapaxes(windows, -1, -2).reshape(windows.shape[0], -1)


def unflatten(rows, time: int, channels: int):
    """The inverse of ``flatten``."""
    return jnp.swapaxes(rows.reshape(rows.shape[0], channels, time), -1, -2)
