"""Cutting of padded recordings into windows."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import whole
from jaxanon.kernels.signals.recordings import as_lengths, with_time


class CutWindows(NamedTuple):
    """Windows of each recording in chronological order."""

    windows: jax.Array  # float[..., num_windows, length, channels]
    mask: jax.Array  # bool[..., num_windows], False where a window is padding


def cut_windows(recordings, lengths, length, stride) -> CutWindows:
    """Cuts recordings into windows of one length.

    Window ``i`` holds samples ``i * stride`` to ``i * stride + length``. A window that
    includes padding has mask False and holds zeros. An incomplete window at the end of
    a recording is dropped.

    Args:
      recordings: ``float[..., time, channels]``, each padded to ``time`` samples.
      lengths: ``int[...]`` in [0, time], number of real samples per recording. None is
        all.
      length: samples per window, a Python int >= 1.
      stride: samples between the starts of windows, a Python int >= 1. Windows overlap
        if it is below ``length``.

    Returns:
      ``CutWindows`` with ``num_windows = (time - length) // stride + 1``, or 0 if
      ``time < length``, in the dtype of ``recordings``.

    Raises:
      TypeError: if ``lengths`` are not integers, or a number is not a Python int.
      ValueError: if a shape is wrong or a number is below 1.

    Example:
      >>> recordings = jnp.array([[0.0, 1.0, 2.0, 3.0, 4.0]])[..., None]
      >>> cut = cut_windows(recordings, jnp.array([4]), length=3, stride=2)
      >>> cut.windows[..., 0], cut.mask
      (Array([[[0., 1., 2.],
              [0., 0., 0.]]], dtype=float32), Array([[ True, False]], dtype=bool))
    """
    recordings = with_time(recordings, "recordings")
    length = whole("length", length, least=1)
    stride = whole("stride", stride, least=1)
    *batch, time, _ = recordings.shape
    num_windows = max(0, (time - length) // stride + 1)
    windows = _cut(recordings, num_windows, length, stride)
    if lengths is None:
        return CutWindows(windows, jnp.ones((*batch, num_windows), bool))
    lengths = as_lengths(lengths, recordings)
    ends = length + stride * jnp.arange(num_windows)
    mask = ends.reshape((1,) * len(batch) + (-1,)) <= lengths[..., None]
    return CutWindows(jnp.where(mask[..., None, None], windows, 0), mask)


def _cut(x, num_windows, length, stride):
    """Cuts one slice per window, which is cheaper than an index per sample."""
    *batch, time, channels = x.shape
    if not num_windows:
        return jnp.zeros((*batch, 0, length, channels), x.dtype)
    starts = stride * jnp.arange(num_windows)
    slice_at = lambda one, start: jax.lax.dynamic_slice_in_dim(one, start, length)
    each = jax.vmap(jax.vmap(slice_at, (None, 0)), (0, None))
    flat = each(x.reshape(math.prod(batch), time, channels), starts)
    return flat.reshape(*batch, num_windows, length, channels)
