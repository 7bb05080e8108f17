"""Argument checks of mechanisms."""

import math

import jax


def static(**named) -> list[float]:
    """Returns the values as Python floats; raises for traced or infinite values."""
    for name, value in named.items():
        if isinstance(value, jax.core.Tracer):
            raise TypeError(
                f"{name} must be known when the program is traced, got {value}; the "
                "grid needs Python numbers, so create the BoundedValue inside the "
                "compiled function and pass numbers, not arrays."
            )
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value!r}.")
    return [float(value) for value in named.values()]
