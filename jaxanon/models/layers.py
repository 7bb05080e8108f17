"""Layers that any jaxanon model is built of."""

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon import kernels
from jaxanon.kernels.ghost.recurrent import lstm

INITIALISATIONS = ("lecun", "official")


def uniform_fan_in(key, shape, dtype=jnp.float32):
    """``U(±1/√fan_in)``, the initialization of the published programs' layers.

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

    With ``initialization="lecun"`` weights start normal with variance ``1/fan_in`` and
    biases at 0; with ``"official"`` both start at ``U(±1/√fan_in)``, as in the
    published programs, where the signal shrinks from layer to layer and learning
    starts slowly.
    """

    features: int
    initialization: str = "lecun"

    @nn.compact
    def __call__(self, x):
        """``float[batch, d_in] -> float[batch, features]``."""
        fan_in = x.shape[-1]
        released = self.initialization == "official"
        initial = uniform_fan_in if released else nn.initializers.lecun_normal()
        kernel = self.param("kernel", initial, (fan_in, self.features))
        initial = _uniform_bias if released else _zero_bias
        bias = self.param("bias", initial, (self.features,), fan_in)
        return kernels.matmul(x, kernel) + bias[None]


class MultiLayer(nn.Module):
    """Dense layers with ReLU between them and none after the last."""

    features: Sequence[int]
    initialization: str = "lecun"

    @nn.compact
    def __call__(self, x):
        """``float[batch, d_in] -> float[batch, features[-1]]``."""
        for features in self.features[:-1]:
            x = nn.relu(Dense(features, self.initialization)(x))
        return Dense(self.features[-1], self.initialization)(x)


def flatten(windows):
    """``float[batch, time, channels] -> float[batch, channels * time]``.

    Channels stay whole, one after another, as in the published programs.
    """
    return jnp.swapaxes(windows, -1, -2).reshape(windows.shape[0], -1)


def unflatten(rows, time: int, channels: int):
    """The inverse of ``flatten``."""
    return jnp.swapaxes(rows.reshape(rows.shape[0], channels, time), -1, -2)


def _remember_bias(key, shape):
    """Zeros, but ones for the forget gate: a fresh layer keeps what it has seen."""
    del key
    return jnp.zeros(shape).at[shape[0] // 4 : shape[0] // 2].set(1.0)


class LSTM(nn.Module):
    """One layer of long short-term memory, from a state of zeros.

    Gates are the columns of ``kernel``, ``recurrent`` and ``bias`` in the order input,
    forget, candidate, output. All time steps meet ``kernel`` in one product before the
    loop, which is left with ``recurrent`` alone. Weights start Lecun-normal and
    orthogonal, biases at 0, those of the forget gate at 1.

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
    """Layers of ``LSTM``, each reading the one before."""

    features: Sequence[int]

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, d_in] -> float[batch, time, features[-1]]``."""
        for features in self.features:
            x = LSTM(features)(x)
        return x


@functools.partial(jax.jit, static_argnums=0)
def apply(net, params, *inputs):
    """What a network of those parameters says of inputs.

    As ``net.apply({"params": params}, *inputs)``, which JAX traces line by line each
    time that it is called: a loss of four looks at a U-Net waits twice as long for its
    gradient to be traced as one whose looks share theirs. What is compiled is the same.

    Args:
      net: ``flax.linen.Module`` whose fields can be hashed; such as are equal share
        their traces. Of its variables it has ``params`` alone.
      params: those of it.
      inputs: arrays, or trees of them.

    Raises:
      ValueError: if a field of the module cannot be hashed, a list for example.

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
