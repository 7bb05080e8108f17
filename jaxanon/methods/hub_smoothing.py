"""Windows made anew, no rougher than those that were measured."""

import jax.numpy as jnp

# Deviations of the Gaussians that a window is smoothed by, in samples.
WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def roughness(windows):
    """``float[..., channels]``, how far neighbouring samples are apart, on average.

    Args:
      windows: ``float[..., time, channels]``; of a single sample it is 0.

    Example:
      >>> roughness(jnp.array([[0.0, 5.0], [1.0, 5.0], [-1.0, 5.0]]))
      Array([1.5, 0. ], dtype=float32)
    """
    if windows.shape[-2] < 2:
        return jnp.zeros(windows.shape[:-2] + windows.shape[-1:], windows.dtype)
    return jnp.mean(jnp.abs(jnp.diff(windows, axis=-2)), axis=-2)


def smoothed(windows, most):
    """Each channel of a window by the narrowest Gaussian that makes it smooth enough.

    A denoiser leaves a trace of noise, which differences of neighbouring samples, such
    as a forecaster of slow measurements learns, are the first to show.

    Args:
      windows: ``float[batch, time, channels]``.
      most: ``float[batch, channels]``, ``roughness`` to come down to. A channel that is
        that smooth stays as it is; one that no width of ``WIDTHS`` makes so is smoothed
        by the last.

    Example:
      >>> window = jnp.array([[[0.0], [1.0], [0.0], [1.0]]])
      >>> bool(jnp.all(smoothed(window, jnp.ones((1, 1))) == window))
      True
      >>> bool(roughness(smoothed(window, jnp.zeros((1, 1))))[0, 0] < 0.01)
      True
    """
    made, smooth = windows, roughness(windows) <= most
    place = jnp.arange(windows.shape[-2], dtype=windows.dtype)
    apart = place[:, None] - place[None]
    for width in WIDTHS:
        weights = jnp.exp(-0.5 * (apart / width) ** 2)
        weights = weights / weights.sum(axis=1, keepdims=True)
        found = jnp.einsum("ts,bsc->btc", weights, windows)
        made = jnp.where(smooth[:, None], made, found)
        smooth = smooth | (roughness(found) <= most)
    return made
