"""The replacement autoencoder's network."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.planes import PlaneConv, normalised, planes


class Replacer(nn.Module):
    """A window to itself, or to a neutral one in its place.

    Convolutions over time by themselves for each channel, down to one filter, batch
    normalisation; three dense layers with SELU and batch normalisation, the last as
    wide as a window; convolutions again.

    Example:
      >>> import jax
      >>> windows = jnp.zeros((1, 128, 2))
      >>> sizes = jax.eval_shape(Replacer().init, jax.random.key(0), windows)
      >>> sum(leaf.size for leaf in jax.tree.leaves(sizes))
      155910

    References:
      Malekzadeh et al., Replacement AutoEncoder, IoTDI 2018, section 4; the layers are
      those of the released program for MotionSense.
    """

    filters: Sequence[int] = (64, 32)
    hidden: Sequence[int] | None = None  # None: as wide as a window, and half of it.

    @nn.compact
    def __call__(self, windows, train: bool = False):
        """``float[batch, time, channels]`` to the same.

        ``train`` normalises by the batch, else by the moving averages.
        """
        batch, time, channels = windows.shape
        size = time * channels
        x = planes(windows)
        for filters in (*self.filters, 1):
            x = nn.selu(PlaneConv(filters, (1, 5))(x))
        x = normalised(x, train).reshape(batch, size)
        hidden = (size, max(1, size // 2)) if self.hidden is None else self.hidden
        for units in (*hidden, size):
            dense = nn.Dense(units, kernel_init=nn.initializers.glorot_uniform())
            x = normalised(nn.selu(dense(x)), train)
        x = x.reshape(batch, channels, time, 1)
        for filters in reversed(self.filters):
            x = nn.selu(PlaneConv(filters, (1, 5))(x))
        return jnp.swapaxes(PlaneConv(1, (1, 5))(x)[..., 0], 1, 2)


class Replacement(NamedTuple):
    """The network with its size, in groups of parameters as methods have them."""

    time: int
    channels: int
    net: Replacer

    def init(self, key):
        """Parameters: ``replacer``, and ``averages`` with those of it."""
        windows = jnp.zeros((1, self.time, self.channels))
        found = self.net.init(key, windows)
        averages = {"replacer": found["batch_stats"]}
        return {"replacer": found["params"], "averages": averages}

    def rewrite(self, params, windows, train: bool = False):
        """``(windows, averages)``; the averages are renewed by ``train``."""
        averages = params["averages"]["replacer"]
        variables = {"params": params["replacer"], "batch_stats": averages}
        if not train:
            return self.net.apply(variables, windows), averages
        x, renewed = self.net.apply(variables, windows, train, mutable=["batch_stats"])
        return x, renewed["batch_stats"]
