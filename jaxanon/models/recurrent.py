"""Recurrent layers: long short-term memory, one layer or a stack."""

from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen as nn

from jaxanon.kernels.ghost.recurrent import lstm


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
