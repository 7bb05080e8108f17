"""Layers shared by the models."""

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon import kernels
from jaxanon.kernels.ghost.recurrent import lstm

INITIALIZATIONS = ("lecun", "official")


def uniform_fan_in(key, shape, dtype=jnp.float32):
    """Draws ``U(±1/√fan_in)``, the initial weights of the official programs.

    Args:
      key: typed PRNG key.
      shape: shape of the weights, outputs last; fan-in is the product of other axes.
      dtype: dtype of the result.
    """
    fan_in = math.prod(shape[:-1])
    return jax.random.uniform(key, shape, dtype, -1.0, 1.0) / fan_in**0.5


def _uniform_bias(key, shape, fan_in):
    return uniform_fan_in(key, (fan_in, *shape))[0]


def _zero_bias(key, shape, fan_in):
    del key, fan_in
    return jnp.zeros(shape)


class Dense(nn.Module):
    """Dense layer ``x @ kernel + bias`` that accepts factored updates per client.

    The product uses ``jaxanon.kernels.matmul``, so a client's update can be ``Factors``
    instead of a copy of the weights.

    With ``initialization="lecun"``, weights start normal with variance ``1/fan_in`` and
    biases at 0. With ``"official"``, both start as ``U(±1/√fan_in)``, as in the
    official programs; the signal then shrinks from layer to layer, and learning starts
    slowly.
    """

    features: int
    initialization: str = "lecun"

    @nn.compact
    def __call__(self, x):
        """``float[batch, d_in] -> float[batch, features]``."""
        fan_in = x.shape[-1]
        official = self.initialization == "official"
        initial = uniform_fan_in if official else nn.initializers.lecun_normal()
        kernel = self.param("kernel", initial, (fan_in, self.features))
        initial = _uniform_bias if official else _zero_bias
        bias = self.param("bias", initial, (self.features,), fan_in)
        return kernels.matmul(x, kernel) + bias[None]


class MultiLayer(nn.Module):
    """Dense layers with ReLU between them."""

    features: Sequence[int]
    initialization: str = "lecun"

    @nn.compact
    def __call__(self, x):
        """``float[batch, d_in] -> float[batch, features[-1]]``."""
        for features in self.features[:-1]:
            x = nn.relu(Dense(features, self.initialization)(x))
        return Dense(self.features[-1], self.initialization)(x)


def flatten(windows):
    """Flattens ``float[batch, time, channels]`` to ``float[batch, channels * time]``.

    Channels follow one after another, as in the official programs.
    """
    return jnp.swapaxes(windows, -1, -2).reshape(windows.shape[0], -1)


def unflatten(rows, time: int, channels: int):
    """Inverts ``flatten``."""
    return jnp.swapaxes(rows.reshape(rows.shape[0], channels, time), -1, -2)


def _remember_bias(key, shape):
    """Zeros, except ones for the forget gate, so that a new layer remembers."""
    del key
    return jnp.zeros(shape).at[shape[0] // 4 : shape[0] // 2].set(1.0)


class LSTM(nn.Module):
    """LSTM layer that starts from a zero state.

    The columns of ``kernel``, ``recurrent`` and ``bias`` are the gates in the order
    input, forget, candidate, output. The product of all time steps with ``kernel`` is
    computed before the loop. ``kernel`` starts LeCun-normal, ``recurrent`` orthogonal,
    and biases at 0, except 1 for the forget gate.

    References:
      Hochreiter and Schmidhuber, Long Short-Term Memory, Neural Computation 1997; Gers,
      Schmidhuber, Cummins, Learning to Forget, Neural Computation 2000.
    """

    features: int

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, d_in] -> float[batch, time, features]``."""
        d_in = x.shape[-1]
        gates = 4 * self.features
        initial = nn.initializers.lecun_normal()
        kernel = self.param("kernel", initial, (d_in, gates))
        initial = nn.initializers.orthogonal()
        recurrent = self.param("recurrent", initial, (self.features, gates))
        bias = self.param("bias", _remember_bias, (gates,))
        return lstm(x, kernel, recurrent, bias)


class MultiLSTM(nn.Module):
    """Stacked ``LSTM`` layers."""

    features: Sequence[int]

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, d_in] -> float[batch, time, features[-1]]``."""
        for features in self.features:
            x = LSTM(features)(x)
        return x


@functools.partial(jax.jit, static_argnums=0)
def apply(net, params, *inputs):
    """Applies a network, sharing traces between calls.

    Equals ``net.apply({"params": params}, *inputs)`` and compiles to the same program.
    Calls with equal modules and shapes are traced once, which halves the tracing time
    of a loss that calls a U-Net four times.

    Args:
      net: hashable ``flax.linen.Module`` with ``params`` as its only variables.
      params: parameters of ``net``.
      inputs: arrays or trees of arrays.

    Raises:
      ValueError: if a field of the module, such as a list, cannot be hashed.

    Example:
      >>> import jax.numpy as jnp
      >>> from jaxanon.models.classifiers import WindowClassifier
      >>> net, windows = WindowClassifier(3, filters=(4,)), jnp.zeros((2, 8, 5))
      >>> params = net.init(jax.random.key(0), windows)["params"]
      >>> logits, features = apply(net, params, windows)
      >>> logits.shape, features.shape
      ((2, 3), (2, 64))
    """
    return net.apply({"params": params}, *inputs)
