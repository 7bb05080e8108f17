"""Networks of Malekzadeh et al.: anonymizing and replacement autoencoders, guardian."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.conv2d import (
    PlaneConv,
    PlaneConvTranspose,
    batch_norm,
    drop,
    dropout_bytes,
    logits,
    max_pool,
    to_planes,
)
from jaxanon.models.layers import flatten, unflatten

# Whether max pooling follows each of the five layers of a Reader.
POOLED = (True, True, True, True, True)  # aae
POOLED_LATENT = (False, False, True, False, True)  # msda, for latents
POOLED_OUTPUT = (False, True, True, True, True)  # msda, for windows


class Encoder(nn.Module):
    """Encoder of windows with one latent per channel and four samples.

    Three convolutions with ReLU and batch normalisation, with max pooling over two
    samples after the second and the third, then a convolution with one filter.
    ``deeper`` adds a layer before the last one and uses SELU.

    Example:
      >>> net = Encoder()  # The official gender version.
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

        With ``train``, normalises by batch statistics, else by moving averages.
        """
        activate = nn.selu if self.deeper else nn.relu
        x = to_planes(windows)
        for pooled in (False, True, True) + (False,) * self.deeper:
            x = batch_norm(activate(PlaneConv(self.filters, self.reach)(x)), train)
            x = max_pool(x, 2, rest=True) if pooled else x
        return batch_norm(PlaneConv(1, self.reach)(x), train)


class Decoder(nn.Module):
    """Decoder that mirrors ``Encoder`` with transposed convolutions.

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
        """Decodes latents to ``float[batch, time, channels]``."""
        activate, x = nn.selu if self.deeper else nn.relu, latents
        for stretch in (1, 2, 2):
            x = PlaneConvTranspose(self.filters, self.reach, stretch)(x)
            x = batch_norm(activate(x), train)
        if self.deeper:
            x = activate(PlaneConvTranspose(self.filters, self.reach)(x))
        x = PlaneConv(1, self.reach)(x)[:, :, : self.time, 0]
        return jnp.swapaxes(x, 1, 2)


class Reader(nn.Module):
    """Attribute classifier of latents or windows (a "regularizer" in the paper).

    Five convolutions with ReLU and dropout of 0.25, with max pooling over two samples
    after those marked in ``pooled``; then dense layers with ReLU and dropout of 0.5.

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
        """Returns logits.

        Args:
          x: ``float[batch, channels, time, 1]``, latents or ``to_planes`` of windows.
          key: typed key for dropout; ``None`` disables it.

        Returns:
          ``float[batch, num_classes]``.
        """
        dropped = iter(dropout_bytes(key, self._sizes(x.shape)))
        for pooled in self.pooled:
            x = nn.relu(PlaneConv(self.filters)(x))
            x = max_pool(x, 2, rest=True) if pooled else x
            x = drop(x, next(dropped), 0.25)
        x = x.reshape(len(x), -1)
        for units in self.hidden:
            dense = nn.Dense(units, kernel_init=nn.initializers.glorot_uniform())
            x = drop(nn.relu(dense(x)), next(dropped), 0.5)
        return logits(x, self.num_classes)

    def _sizes(self, shape):
        """Number of units of each layer, over the batch."""
        (batch, channels, time, _), sizes = shape, []
        for pooled in self.pooled:
            time = -(-time // 2) if pooled else time
            sizes.append(batch * channels * time * self.filters)
        return sizes + [batch * units for units in self.hidden]


class MalekzadehNetworks(NamedTuple):
    """Autoencoder with attribute classifiers of windows and, optionally, latents."""

    time: int
    channels: int
    encoder: Encoder
    decoder: Decoder
    readers: dict[str, Reader]  # attribute to the classifier of windows
    latent_readers: dict[str, Reader]

    def init(self, key):
        """Returns the groups ``encoder``, ``decoder``, ``readers`` and ``averages``."""
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
                "windows": make(self.readers, to_planes(windows)),
                "latents": make(self.latent_readers, latents),
            },
            "averages": {
                "encoder": encoder["batch_stats"],
                "decoder": decoder["batch_stats"],
            },
        }

    def rewrite(self, params, windows, train: bool = False):
        """Returns ``(latents, windows, averages)``; ``train`` updates the averages."""
        latents, encoder = _apply(self.encoder, params, "encoder", windows, train)
        windows, decoder = _apply(self.decoder, params, "decoder", latents, train)
        return latents, windows, {"encoder": encoder, "decoder": decoder}

    def read(self, params, latents, windows, key=None):
        """Returns ``[(attribute, logits)]``, first for windows, then for latents.

        Args:
          params: parameters with the group ``readers``.
          latents: latents, from ``rewrite``.
          windows: ``float[batch, time, channels]``.
          key: typed key for dropout; ``None`` disables it.
        """
        result = []
        pairs = [(("windows", name), net) for name, net in self.readers.items()]
        pairs += [(("latents", name), net) for name, net in self.latent_readers.items()]
        for number, ((kind, name), net) in enumerate(pairs):
            net_key = None if key is None else jax.random.fold_in(key, number)
            x = to_planes(windows) if kind == "windows" else latents
            variables = {"params": params["readers"][kind][name]}
            result.append((name, net.apply(variables, x, net_key)))
        return result


def _apply(net, params, group, x, train):
    averages = params["averages"][group]
    variables = {"params": params[group], "batch_stats": averages}
    if not train:
        return net.apply(variables, x), averages
    x, renewed = net.apply(variables, x, train, mutable=["batch_stats"])
    return x, renewed["batch_stats"]


MIN_TIME = 30  # Shortest window that leaves a sample after the last convolution.


class Estimator(nn.Module):
    """Classifier of all attributes with a shared trunk and one head per attribute.

    Convolutions over time, shared by all channels; dense layers on the filters of each
    sample; max pooling over 2, then 3 samples; dropout. The ReLUs are ours, because the
    paper names no activation. The network has 410,905 parameters for MotionSense with
    12 channels, 50 samples, 4 activities and gender.

    References:
      Malekzadeh et al., Protecting Sensory Data against Sensitive Inferences, W-P2DS
      2018, section 4; the layers are those of the official program.
    """

    classes: Sequence[tuple[str, int]]  # attribute and its number of classes
    filters: Sequence[int] = (50, 40, 20)
    hidden: int = 400

    @nn.compact
    def __call__(self, windows, key=None):
        """Returns logits by attribute, a dict of ``float[batch, classes]``.

        Args:
          windows: ``float[batch, time, channels]``, time at least 30.
          key: typed key for dropout; ``None`` disables it.
        """
        first, second, third = self.filters
        conv = lambda features, size, same=False: PlaneConv(features, (1, size), same)
        batch, time, channels = windows.shape
        rows = [(time - 4) // 2, ((time - 4) // 2 - 4) // 3]
        rows.append(rows[1] - 2)
        pairs = zip(rows, self.filters, strict=True)
        sizes = [batch * channels * samples * filters for samples, filters in pairs]
        dropped = iter(dropout_bytes(key, [*sizes, batch * self.hidden]))
        x = nn.relu(conv(first, 5)(to_planes(windows)))
        x = nn.relu(conv(first, 3, True)(x))
        x = drop(max_pool(nn.relu(_dense(first)(x)), 2), next(dropped), 0.2)
        x = nn.relu(_dense(second)(nn.relu(conv(second, 5)(x))))
        x = drop(max_pool(x, 3), next(dropped), 0.2)
        x = drop(nn.relu(conv(third, 3)(x)), next(dropped), 0.2)
        x = nn.relu(_dense(self.hidden)(x.reshape(len(x), -1)))
        x = drop(x, next(dropped), 0.4)
        return {name: logits(x, num) for name, num in self.classes}


class Guardian(nn.Module):
    """Autoencoder of dense layers; the narrowest has an eighth of a window's size.

    The first and the last layer are linear; the others have ReLU.

    Example:
      >>> import jax
      >>> import jax.numpy as jnp
      >>> net = Guardian()
      >>> sizes = jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, 50, 12)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(sizes))
      834675
    """

    hidden: Sequence[int] | None = None  # None: 1/2, 1/4, 1/8, 1/4, 1/2 of a window.

    @nn.compact
    def __call__(self, windows):
        """Rewrites windows, ``float[batch, time, channels]``."""
        x = flatten(windows)
        size = x.shape[1]
        hidden = self.hidden
        if hidden is None:
            hidden = [max(1, size // divisor) for divisor in (2, 4, 8, 4, 2)]
        x = _dense(size)(x)
        for units in hidden:
            x = nn.relu(_dense(units)(x))
        return unflatten(_dense(size)(x), *windows.shape[1:])


def _dense(units):
    return nn.Dense(units, kernel_init=nn.initializers.glorot_uniform())


class Replacer(nn.Module):
    """Network that returns a window unchanged or replaces it by a neutral one.

    Convolutions over time, separate for each channel, down to one filter, with batch
    normalisation; three dense layers with SELU and batch normalisation, the last of a
    window's size; convolutions again.

    Example:
      >>> import jax
      >>> windows = jnp.zeros((1, 128, 2))
      >>> sizes = jax.eval_shape(Replacer().init, jax.random.key(0), windows)
      >>> sum(leaf.size for leaf in jax.tree.leaves(sizes))
      155910

    References:
      Malekzadeh et al., Replacement AutoEncoder, IoTDI 2018, section 4; the layers are
      those of the official program for MotionSense.
    """

    filters: Sequence[int] = (64, 32)
    hidden: Sequence[int] | None = None  # None: a window's size, then half of it.

    @nn.compact
    def __call__(self, windows, train: bool = False):
        """Rewrites windows, ``float[batch, time, channels]``.

        With ``train``, normalises by batch statistics, else by moving averages.
        """
        batch, time, channels = windows.shape
        size = time * channels
        x = to_planes(windows)
        for filters in (*self.filters, 1):
            x = nn.selu(PlaneConv(filters, (1, 5))(x))
        x = batch_norm(x, train).reshape(batch, size)
        hidden = (size, max(1, size // 2)) if self.hidden is None else self.hidden
        for units in (*hidden, size):
            dense = nn.Dense(units, kernel_init=nn.initializers.glorot_uniform())
            x = batch_norm(nn.selu(dense(x)), train)
        x = x.reshape(batch, channels, time, 1)
        for filters in reversed(self.filters):
            x = nn.selu(PlaneConv(filters, (1, 5))(x))
        return jnp.swapaxes(PlaneConv(1, (1, 5))(x)[..., 0], 1, 2)


class Replacement(NamedTuple):
    """Replacement autoencoder for windows of one size."""

    time: int
    channels: int
    net: Replacer

    def init(self, key):
        """Returns the parameter groups ``replacer`` and ``averages``."""
        windows = jnp.zeros((1, self.time, self.channels))
        variables = self.net.init(key, windows)
        averages = {"replacer": variables["batch_stats"]}
        return {"replacer": variables["params"], "averages": averages}

    def rewrite(self, params, windows, train: bool = False):
        """Returns ``(windows, averages)``; ``train`` updates the averages."""
        averages = params["averages"]["replacer"]
        variables = {"params": params["replacer"], "batch_stats": averages}
        if not train:
            return self.net.apply(variables, windows), averages
        x, renewed = self.net.apply(variables, windows, train, mutable=["batch_stats"])
        return x, renewed["batch_stats"]
