"""The network that judges and attacks windows: a multi-layer perceptron."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn


def drop_units(key, x, rate):
    """Dropout whose ``rate`` (float[], a multiple of 1/256) may be traced."""
    words = jax.random.bits(key, (x.size // 4 + 1,), jnp.uint32)
    octets = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(-1)[: x.size]
    kept = octets.reshape(x.shape) >= jnp.round(256 * rate)
    return jnp.where(kept, x / (1 - rate), 0)


class Classifier(nn.Module):
    """Standardised windows to the logits of one attribute.

    Dense layers of ``hidden`` units with ReLU, dropout after those marked in
    ``drops``, and a last layer of ``num_classes`` logits. The defaults are the
    evaluation network published for MotionSense, where it counts 363,732 parameters
    with 4 classes; weights start Glorot-uniform, biases at zero, as in Keras.

    Example:
      >>> net = Classifier(num_classes=4)
      >>> params = net.init(jax.random.key(0), jnp.zeros((1, 128, 2)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(params))
      363732

    References:
      Hajihassani, Ardakanian, Khazaei, ObscureNet, IoTDI 2021 (released networks).
    """

    num_classes: int
    hidden: Sequence[int] = (512, 256, 256, 128, 16)
    drops: Sequence[bool] = (True, True, False, True, True)

    @nn.compact
    def __call__(self, windows, key=None, dropout=0.0, real=None):
        """Logits, not normalised.

        Args:
          windows: ``float[batch, time, channels]``, standardised per channel; a row
            is laid out channel after channel, ``[gyro 128 | acc 128]``.
          key: typed key for dropout; ``None`` drops nothing.
          dropout: share of units dropped, ``float[]`` in [0, 1), to 1/256.
          real: not used; rows do not meet.

        Returns:
          ``float[batch, num_classes]``.
        """
        del real
        x = jnp.swapaxes(windows, -1, -2).reshape(windows.shape[0], -1)
        initial = nn.initializers.glorot_uniform()
        for layer, (units, drop) in enumerate(
            zip(self.hidden, self.drops, strict=True)
        ):
            x = nn.relu(nn.Dense(units, kernel_init=initial)(x))
            if drop and key is not None:
                x = drop_units(jax.random.fold_in(key, layer), x, dropout)
        return nn.Dense(self.num_classes, kernel_init=initial)(x)
