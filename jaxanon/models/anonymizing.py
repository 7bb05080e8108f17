"""The anonymizing autoencoder's networks: what rewrites windows, what reads them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.planes import (
    PlaneConv,
    PlaneConvTranspose,
    drop,
    largest,
    logits,
    noise,
    normalised,
    planes,
)

POOLED = (True, True, True, True, True)  # Of the readers' five layers, in ``aae``.
POOLED_LATENT = (False, False, True, False, True)  # In ``msda``, of latents,
POOLED_OUTPUT = (False, True, True, True, True)  # and of windows.


class Encoder(nn.Module):
    """A window to a latent of one number for every four samples of a channel.

    Convolutions with an activation and batch normalisation, the larger of every two
    samples after the second and the third, and a last one of one filter. ``deeper`` has
    another layer before that and SELU in place of ReLU.

    Example:
      >>> net = Encoder()  # The gender version's, as released.
      >>> sizes = jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, 128, 2)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(sizes))
      84165
    """

    filters: int = 64
    reach: tuple[int, int] = (2, 5)
    deeper: bool = False

    @nn.compact
    def __call__(self, windows, train: bool = False):
        """``float[batch, time, channels] -> float[batch, channels, time / 4, 1]``.

        ``train`` normalises by the batch, else by the moving averages.
        """
        activate = nn.selu if self.deeper else nn.relu
        x = planes(windows)
        for pooled in (False, True, True) + (False,) * self.deeper:
            x = normalised(activate(PlaneConv(self.filters, self.reach)(x)), train)
            x = largest(x, 2, rest=True) if pooled else x
        return normalised(PlaneConv(1, self.reach)(x), train)


class Decoder(nn.Module):
    """The encoder's way back, by transposed convolutions.

    Example:
      >>> net = Decoder(time=128)
      >>> sizes = jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, 2, 32, 1)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(sizes))
      84161
    """

    time: int
    filters: int = 64
    reach: tuple[int, int] = (2, 5)
    deeper: bool = False

    @nn.compact
    def __call__(self, latents, train: bool = False):
        """Latents of ``Encoder`` to ``float[batch, time, channels]``."""
        activate, x = nn.selu if self.deeper else nn.relu, latents
        for stretch in (1, 2, 2):
            x = PlaneConvTranspose(self.filters, self.reach, stretch)(x)
            x = normalised(activate(x), train)
        if self.deeper:
            x = activate(PlaneConvTranspose(self.filters, self.reach)(x))
        x = PlaneConv(1, self.reach)(x)[:, :, : self.time, 0]
        return jnp.swapaxes(x, 1, 2)


class Reader(nn.Module):
    """A regulariser network: latents or windows to the logits of one attribute.

    Five convolutions with ReLU, the larger of every two samples after those marked in
    ``pooled``, dropout of a quarter; dense layers with ReLU and dropout of a half.

    Example:
      >>> net = Reader(num_classes=2)
      >>> x = jnp.zeros((1, 2, 128, 1))
      >>> sizes = jax.eval_shape(net.init, jax.random.key(0), x)
      >>> sum(leaf.size for leaf in jax.tree.leaves(sizes))
      78497
    """

    num_classes: int
    filters: int = 32
    hidden: Sequence[int] = (128, 32)
    pooled: Sequence[bool] = POOLED

    @nn.compact
    def __call__(self, x, key=None):
        """Logits, not normalised.

        Args:
          x: ``float[batch, channels, time, 1]``, a latent or ``planes`` of windows.
          key: typed key for dropout; ``None`` drops nothing.

        Returns:
          ``float[batch, num_classes]``.
        """
        dropped = iter(noise(key, self._sizes(x.shape)))
        for pooled in self.pooled:
            x = nn.relu(PlaneConv(self.filters)(x))
            x = largest(x, 2, rest=True) if pooled else x
            x = drop(x, next(dropped), 0.25)
        x = x.reshape(len(x), -1)
        for units in self.hidden:
            dense = nn.Dense(units, kernel_init=nn.initializers.glorot_uniform())
            x = drop(nn.relu(dense(x)), next(dropped), 0.5)
        return logits(x, self.num_classes)

    def _sizes(self, shape):
        """Units of each layer."""
        (batch, channels, time, _), sizes = shape, []
        for pooled in self.pooled:
            time = -(-time // 2) if pooled else time
            sizes.append(batch * channels * time * self.filters)
        return sizes + [batch * units for units in self.hidden]


class Networks(NamedTuple):
    """An autoencoder with readers of its windows, and perhaps of its latents."""

    time: int
    channels: int
    encoder: Encoder
    decoder: Decoder
    readers: dict[str, Reader]  # attribute to the reader of windows
    latent_readers: dict[str, Reader]

    def init(self, key):
        """Parameters: ``encoder``, ``decoder``, ``readers`` and ``averages``."""
        keys = iter(
            jax.random.split(key, 2 + len(self.readers) + len(self.latent_readers))
        )
        windows = jnp.zeros((1, self.time, self.channels))
        encoder = self.encoder.init(next(keys), windows)
        latents = self.encoder.apply(encoder, windows)
        decoder = self.decoder.init(next(keys), latents)
        make = lambda nets, x: {
            name: net.init(next(keys), x)["params"] for name, net in nets.items()
        }
        return {
            "encoder": encoder["params"],
            "decoder": decoder["params"],
            "readers": {
                "windows": make(self.readers, planes(windows)),
                "latents": make(self.latent_readers, latents),
            },
            "averages": {
                "encoder": encoder["batch_stats"],
                "decoder": decoder["batch_stats"],
            },
        }

    def rewrite(self, params, windows, train: bool = False):
        """``(latents, windows, averages)``; the averages are renewed by ``train``."""
        latents, encoder = _apply(self.encoder, params, "encoder", windows, train)
        windows, decoder = _apply(self.decoder, params, "decoder", latents, train)
        return latents, windows, {"encoder": encoder, "decoder": decoder}

    def read(self, params, latents, windows, key=None):
        """``[(attribute, logits)]``, first of windows, then of latents.

        Args:
          params: with the group ``readers``.
          latents, windows: as ``rewrite`` has them.
          key: for dropout; ``None`` drops nothing.
        """
        found = []
        pairs = [(("windows", name), net) for name, net in self.readers.items()]
        pairs += [(("latents", name), net) for name, net in self.latent_readers.items()]
        for number, ((what, name), net) in enumerate(pairs):
            own = None if key is None else jax.random.fold_in(key, number)
            x = planes(windows) if what == "windows" else latents
            given = {"params": params["readers"][what][name]}
            found.append((name, net.apply(given, x, own)))
        return found


def _apply(net, params, group, x, train):
    averages = params["averages"][group]
    variables = {"params": params[group], "batch_stats": averages}
    if not train:
        return net.apply(variables, x), averages
    x, renewed = net.apply(variables, x, train, mutable=["batch_stats"])
    return x, renewed["batch_stats"]
