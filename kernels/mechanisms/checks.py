"""What mechanisms alone refuse at their door, in words that say what to do."""

import math

import jax


def static(**named) -> list[float]:
    """The values as Python floats; raises where tracing has hidden one."""
    for name, value in named.items():
        if isinstance(value, jax.core.Tracer):
            raise TypeError(
                f"{name} must be known when the program is traced, got {value}; the "
                "grid is exact arithmetic on Python numbers, so make the BoundedValue "
                "inside the compiled function and pass numbers, not arrays."
            )
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value!r}.")
    return [float(value) for value in named.values()]
