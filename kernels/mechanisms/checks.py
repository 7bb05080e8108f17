"""Argument checks of mechanisms."""

import math

import jax

from jaxanon.kernels.checks import known


def static(**named) -> list[float]:
    """Returns the values as Python floats; raises for traced or infinite values."""
    for name, value in named.items():
        if isinstance(value, jax.core.Tracer):
            raise TypeError(
                f"{name} must be known when the program is traced, got {value}; the "
                "grid needs Python numbers, so create the BoundedValue inside the "
                "compiled function and pass numbers, not arrays."
            )
        if known(value) is None:
            raise TypeError(f"{name} must be a Python number, got {value!r}.")
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value!r}.")
    return [float(value) for value in named.values()]
