"""What every mechanism refuses at its door, in words that say what to do."""

import math
import numbers

import jax
import jax.numpy as jnp


def typed_key(key) -> None:
    """Raises TypeError unless ``key`` is one typed PRNG key."""
    dtype = getattr(key, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key):
        raise TypeError(
            "key must be a typed PRNG key such as jax.random.key(0), "
            f"got {type(key).__name__} with dtype {dtype}."
        )


def positive(**named) -> None:
    """Raises ValueError unless every Python number is > 0; arrays pass."""
    for name, value in named.items():
        if isinstance(value, numbers.Real) and not float(value) > 0:
            raise ValueError(f"{name} must be > 0, got {value!r}.")


def not_negative(**named) -> None:
    """Raises ValueError unless every Python number is >= 0; arrays pass."""
    for name, value in named.items():
        if isinstance(value, numbers.Real) and not float(value) >= 0:
            raise ValueError(f"{name} must be >= 0, got {value!r}.")


def classes(num_classes) -> None:
    """Raises ValueError unless ``num_classes`` is an int >= 2."""
    if not isinstance(num_classes, numbers.Integral) or num_classes < 2:
        raise ValueError(f"num_classes must be an int >= 2, got {num_classes!r}.")


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


def float_dtype(dtype):
    """The type to compute in: float32 for anything narrower or not a float."""
    wide = jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits > 32
    return jnp.dtype(dtype) if wide else jnp.dtype(jnp.float32)
