"""TimeGAN's five networks: gated recurrent layers and a dense one after them."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn


class Recurrent(nn.Module):
    """Layers of gated recurrent units, then a dense layer at every step.

    The reset gate scales what a matrix makes of the state, not the state.

    Example:
      >>> net = Recurrent((8, 8), 3)
      >>> x = jnp.zeros((2, 10, 5))
      >>> net.apply(net.init(jax.random.key(0), x), x).shape
      (2, 10, 3)

    References:
      Yoon, Jarrett, van der Schaar, Time-series generative adversarial networks,
      NeurIPS 2019, section 5; Cho et al., EMNLP 2014, but for the place of the gate.
    """

    features: Sequence[int]
    outputs: int
    sigmoid: bool = True  # Whether what it says lies in (0, 1).

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, d_in] -> float[batch, time, outputs]``."""
        for number, width in enumerate(self.features):
            x = jnp.asarray(nn.RNN(nn.GRUCell(width, name=f"layer_{number}"))(x))
        x = nn.Dense(self.outputs, name="dense")(x)
        return jax.nn.sigmoid(x) if self.sigmoid else x


def with_classes(x, classes, num_classes: int):
    """``x`` with its windows' classes beside every step, one-hot.

    Args:
      x: ``float[batch, time, d]``.
      classes: ``int32[batch]``.
      num_classes: how many there are.

    Returns:
      ``float[batch, time, d + num_classes]``.

    Example:
      >>> with_classes(jnp.ones((1, 2, 1)), jnp.array([1]), 2)[0]
      Array([[1., 0., 1.],
             [1., 0., 1.]], dtype=float32)
    """
    told = jax.nn.one_hot(classes, num_classes, dtype=x.dtype)[:, None]
    shape = (*x.shape[:2], num_classes)
    return jnp.concatenate([x, jnp.broadcast_to(told, shape)], axis=-1)
