"""DEEProtect's public range: windows as numbers of it, and back."""

import jax.numpy as jnp
import numpy as np


def in_range(spec, config, windows):
    """Standardised windows as numbers of the public range, clipped to it.

    Args:
      spec, config: of the method, ``config`` with its range.
      windows: ``float32[batch, time, channels]``, standardised.

    Returns:
      ``float32[batch, time * channels]`` in [0, 1].
    """
    low, high, mean, std = (
        jnp.asarray(ends, jnp.float32)[None, None]
        for ends in (config.low, config.high, spec.mean, spec.std)
    )
    unit = (windows * std + mean - low) / (high - low)
    return jnp.clip(unit, 0, 1).reshape(len(windows), -1)


def out_of_range(spec, config, unit, shape):
    """The inverse of ``in_range``, but for what was clipped.

    Args:
      spec, config: as ``in_range`` was given them.
      unit: ``float32[batch, time * channels]``, numbers of the public range.
      shape: of the windows, ``(batch, time, channels)``.

    Returns:
      ``float32[batch, time, channels]``, standardised.
    """
    low, high, mean, std = (
        np.asarray(ends, np.float32)[None, None]
        for ends in (config.low, config.high, spec.mean, spec.std)
    )
    return (unit.reshape(shape) * (high - low) + low - mean) / std


def outside(config, windows) -> tuple[int, int]:
    """How much of some windows lies outside the public range, and will be clipped.

    Args:
      config: of the method, with its range.
      windows: ``float[N, time, channels]`` in physical units.

    Returns:
      ``(numbers, windows)``: how many numbers, and in how many windows.

    Example:
      >>> from jaxanon.methods.deeprotect_config import DEEProtectConfig
      >>> config = DEEProtectConfig(low=(-1.0,), high=(1.0,))
      >>> outside(config, np.array([[[0.5], [3.0]], [[0.0], [1.0]]]))
      (1, 1)
    """
    low, high = (
        np.asarray(ends, np.float32)[None, None] for ends in (config.low, config.high)
    )
    beyond = (windows < low) | (windows > high)
    return int(beyond.sum()), int(beyond.any(axis=(1, 2)).sum())
