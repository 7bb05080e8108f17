"""Convolutions over channels and time, as in Keras networks for windows."""

import functools
import itertools

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.convolution import patches


class PlaneConv(nn.Module):
    """Zero-padded convolution over neighbouring channels and samples.

    Equals ``nn.Conv(features, reach)`` with Glorot-uniform weights, for a ``reach`` of
    1 or 2 channels. It is written as a matrix product: XLA's convolution is about 20
    times slower on a CPU inside a training loop.
    """

    features: int
    reach: tuple[int, int] = (2, 5)  # kernel size, in channels and samples
    same: bool = True  # False: no padding over time

    @nn.compact
    def __call__(self, x):
        """``float[batch, channels, time, d]`` to the same with ``features``."""
        size = self.reach[1]
        kernel, bias = _weights(self, x.shape[-1])
        edge = ((size - 1) // 2, size // 2) if self.same else (0, 0)
        rows = _rows(x, edge, size)
        weights = jnp.concatenate([_flat(part) for part in kernel], axis=1)
        return _joined(rows @ weights, x.shape, self.reach[0], 1) + bias


class PlaneConvTranspose(nn.Module):
    """Transposed convolution with padding "same", as in Keras; stride ``stretch``."""

    features: int
    reach: tuple[int, int] = (2, 5)
    stretch: int = 1

    @nn.compact
    def __call__(self, x):
        """Returns ``float[batch, channels, stretch * time, features]``.

        Args:
          x: ``float[batch, channels, time, d]``.
        """
        size, stretch = self.reach[1], self.stretch
        kernel, bias = _weights(self, x.shape[-1])
        first = (size - stretch) // 2  # Kernel samples before the central ones.
        behind, ahead = (size - 1 - first) // stretch, (stretch - 1 + first) // stretch
        rows = _rows(x, (behind, ahead), behind + 1 + ahead)
        offsets = range(-behind, ahead + 1)

        def phase(part, number):
            """Kernel of the output samples with phase ``number``."""
            indices = [number + first - stretch * offset for offset in offsets]
            zero = jnp.zeros_like(part[0])
            taps = [part[i] if 0 <= i < size else zero for i in indices]
            return _flat(jnp.stack(taps))

        columns = [phase(part, number) for part in kernel for number in range(stretch)]
        product = rows @ jnp.concatenate(columns, axis=1)
        return _joined(product, x.shape, self.reach[0], stretch, back=True) + bias


def max_pool(x, size: int, *, rest: bool = False):
    """Returns the maximum of every ``size`` samples.

    Args:
      x: ``float[batch, channels, time, d]``.
      size: window and stride, in samples.
      rest: whether to pool the remaining samples at the end; else they are dropped.

    Example:
      >>> x = jnp.array([3.0, 1.0, 2.0])[None, None, :, None]
      >>> max_pool(x, 2).ravel(), max_pool(x, 2, rest=True).ravel()
      (Array([3.], dtype=float32), Array([3., 2.], dtype=float32))
    """
    spare = -x.shape[2] % size
    if rest and spare:
        x = jnp.pad(x, ((0, 0), (0, 0), (0, spare), (0, 0)), mode="edge")
    whole = x.shape[2] // size * size
    parts = [x[:, :, place:whole:size] for place in range(size)]
    # The gradient of jnp.max compares values with the maximum. No value is equal if XLA
    # computes it twice with different rounding.
    return functools.reduce(jnp.maximum, parts)


def batch_norm(x, train: bool):
    """Applies Keras's batch normalisation; uses moving averages unless ``train``."""
    layer = nn.BatchNorm(momentum=0.99, epsilon=1e-3)
    return layer(x, use_running_average=not train)


def logits(x, num_classes: int):
    """Applies a final layer, ``float[batch, d] -> float[batch, num_classes]``.

    For two classes, it has a single unit, as for a sigmoid.
    """
    units = 1 if num_classes == 2 else num_classes
    x = nn.Dense(units, kernel_init=nn.initializers.glorot_uniform())(x)
    return x if units > 1 else jnp.concatenate([jnp.zeros_like(x), x], axis=1)


def dropout_bytes(key, sizes) -> list:
    """Draws ``uint8[size]`` for each of ``sizes`` at once; ``None`` each without a key.

    A single draw keeps the compiled program small.
    """
    if key is None:
        return [None] * len(sizes)
    words = jax.random.bits(key, (sum(sizes) // 4 + 1,), jnp.uint32)
    octets = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(-1)
    ends = list(itertools.accumulate(sizes))
    starts = [0, *ends[:-1]]
    return [octets[start:end] for start, end in zip(starts, ends, strict=True)]


def drop(x, octets, rate: float):
    """Applies dropout with a rate rounded to 1/256; without ``octets``, returns ``x``.

    Example:
      >>> drop(jnp.ones(4), jnp.array([0, 63, 64, 255], jnp.uint8), 0.25)
      Array([0.       , 0.       , 1.3333334, 1.3333334], dtype=float32)
    """
    if octets is None:
        return x
    kept = octets.reshape(x.shape) >= round(256 * rate)
    return jnp.where(kept, x / (1 - rate), 0)


def to_planes(windows):
    """Converts ``float[batch, time, channels]`` to ``[batch, channels, time, 1]``."""
    return jnp.swapaxes(windows, 1, 2)[..., None]


def _weights(layer, d):
    shape = (*layer.reach, d, layer.features)
    kernel = layer.param("kernel", nn.initializers.glorot_uniform(), shape)
    bias = layer.param("bias", nn.initializers.zeros, shape[-1:])
    return kernel, bias[None, None, None]


def _rows(x, edge, size):
    """Windows of ``size`` consecutive samples of each channel."""
    padded = jnp.pad(x, ((0, 0), (0, 0), edge, (0, 0)))
    return patches(padded.reshape(-1, *padded.shape[2:]), size)


def _flat(part):
    return part.reshape(-1, part.shape[-1])


def _joined(product, shape, reach, stretch, back=False):
    """Adds the products of each channel and, for a reach of 2, of its neighbour."""
    batch, channels = shape[:2]
    width = product.shape[-1] // (reach * stretch)
    parts = product.reshape(batch, channels, -1, reach, stretch * width)
    total = parts[:, :, :, 0]
    if reach == 2:
        neighbor, none = parts[:, :, :, 1], ((0, 0), (0, 0))
        total = total + (
            jnp.pad(neighbor[:, :-1], ((0, 0), (1, 0), *none))
            if back
            else jnp.pad(neighbor[:, 1:], ((0, 0), (0, 1), *none))
        )
    return total.reshape(batch, channels, -1, width)
