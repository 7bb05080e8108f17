"""Convolutions over channels and time, as Keras's networks of windows have them."""

import functools
import itertools

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.convolution import patches


class PlaneConv(nn.Module):
    """A convolution over neighbouring channels and samples, with zeros around.

    As ``nn.Conv(features, reach)`` with Glorot-uniform weights, for a ``reach`` of 1 or
    2 channels, written as a product: inside a loop, where networks train, XLA's
    convolution on a CPU is some 20 times slower.
    """

    features: int
    reach: tuple[int, int] = (2, 5)  # Channels and samples.
    same: bool = True  # Else the result is reach[1] - 1 samples shorter.

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
    """The transposed convolution: ``stretch`` samples for each one.

    As Keras's with padding "same": where a convolution of that stride, over zeros
    around, takes its samples from, there this puts them.
    """

    features: int
    reach: tuple[int, int] = (2, 5)
    stretch: int = 1

    @nn.compact
    def __call__(self, x):
        """To ``[batch, channels, stretch * time, features]``.

        Args:
          x: ``float[batch, channels, time, d]``.
        """
        size, stretch = self.reach[1], self.stretch
        kernel, bias = _weights(self, x.shape[-1])
        first = (size - stretch) // 2  # Samples of the kernel that lie before its own.
        behind, ahead = (size - 1 - first) // stretch, (stretch - 1 + first) // stretch
        rows = _rows(x, (behind, ahead), behind + 1 + ahead)
        offsets = range(-behind, ahead + 1)

        def phase(part, number):
            """What the samples around one give to the one ``number`` after it."""
            places = [number + first - stretch * offset for offset in offsets]
            none = jnp.zeros_like(part[0])
            found = [part[place] if 0 <= place < size else none for place in places]
            return _flat(jnp.stack(found))

        columns = [phase(part, number) for part in kernel for number in range(stretch)]
        product = rows @ jnp.concatenate(columns, axis=1)
        return _joined(product, x.shape, self.reach[0], stretch, back=True) + bias


def max_pool(x, size: int, *, rest: bool = False):
    """The largest of every ``size`` samples.

    Args:
      x: ``float[batch, channels, time, d]``.
      size: how many.
      rest: whether those left over at the end are kept, as one; else they are dropped.

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
    # Not a max over an axis: its gradient looks for the value that won, and finds none
    # where the compiler computed it twice with different rounding.
    return functools.reduce(jnp.maximum, parts)


def batch_norm(x, train: bool):
    """Batch normalisation as Keras has it; by moving averages unless ``train``."""
    layer = nn.BatchNorm(momentum=0.99, epsilon=1e-3)
    return layer(x, use_running_average=not train)


def logits(x, num_classes: int):
    """A last layer; of two classes it has one unit, as for a sigmoid.

    ``float[batch, d] -> float[batch, num_classes]``, not normalised.
    """
    units = 1 if num_classes == 2 else num_classes
    x = nn.Dense(units, kernel_init=nn.initializers.glorot_uniform())(x)
    return x if units > 1 else jnp.concatenate([jnp.zeros_like(x), x], axis=1)


def dropout_bytes(key, sizes) -> list:
    """Random octets for each of ``sizes``, in one draw: programs stay small.

    ``uint8[size]`` each; of no key, ``None`` each.
    """
    if key is None:
        return [None] * len(sizes)
    words = jax.random.bits(key, (sum(sizes) // 4 + 1,), jnp.uint32)
    octets = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(-1)
    ends = list(itertools.accumulate(sizes))
    starts = [0, *ends[:-1]]
    return [octets[start:end] for start, end in zip(starts, ends, strict=True)]


def drop(x, octets, rate: float):
    """Dropout of a share of the units, to 1/256; without octets nothing is dropped.

    Example:
      >>> drop(jnp.ones(4), jnp.array([0, 63, 64, 255], jnp.uint8), 0.25)
      Array([0.       , 0.       , 1.3333334, 1.3333334], dtype=float32)
    """
    if octets is None:
        return x
    kept = octets.reshape(x.shape) >= round(256 * rate)
    return jnp.where(kept, x / (1 - rate), 0)


def to_planes(windows):
    """``float[batch, time, channels] -> float[batch, channels, time, 1]``."""
    return jnp.swapaxes(windows, 1, 2)[..., None]


def _weights(layer, d):
    shape = (*layer.reach, d, layer.features)
    kernel = layer.param("kernel", nn.initializers.glorot_uniform(), shape)
    bias = layer.param("bias", nn.initializers.zeros, shape[-1:])
    return kernel, bias[None, None, None]


def _rows(x, edge, size):
    """Every ``size`` samples in a row, of every channel by itself."""
    padded = jnp.pad(x, ((0, 0), (0, 0), edge, (0, 0)))
    return patches(padded.reshape(-1, *padded.shape[2:]), size)


def _flat(part):
    return part.reshape(-1, part.shape[-1])


def _joined(product, shape, reach, stretch, back=False):
    """What channels give themselves, and with a reach of 2 one neighbour each."""
    batch, channels = shape[:2]
    width = product.shape[-1] // (reach * stretch)
    parts = product.reshape(batch, channels, -1, reach, stretch * width)
    own = parts[:, :, :, 0]
    if reach == 2:
        given, none = parts[:, :, :, 1], ((0, 0), (0, 0), (0, 0))
        own = own + (
            jnp.pad(given[:, :-1], ((0, 0), (1, 0), *none[:2]))
            if back
            else jnp.pad(given[:, 1:], ((0, 0), (0, 1), *none[:2]))
        )
    return own.reshape(batch, channels, -1, width)
