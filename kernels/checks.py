"""What kernels refuse at their doors, in words that say what to do."""

import numbers

import jax
import jax.numpy as jnp


def is_key(array) -> bool:
    """Whether an array holds typed PRNG keys.

    Example:
      >>> is_key(jax.random.key(0)), is_key(jnp.zeros(2, jnp.uint32))
      (True, False)
    """
    dtype = getattr(array, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def typed_key(key) -> None:
    """Raises TypeError unless ``key`` is a typed PRNG key.

    Example:
      >>> typed_key(jax.random.key(0))
    """
    if not is_key(key):
        raise TypeError(
            "key must be a typed PRNG key such as jax.random.key(0), "
            f"got {type(key).__name__} with dtype {getattr(key, 'dtype', None)}."
        )


def positive(**named) -> None:
    """Raises ValueError unless every Python number is > 0; arrays pass.

    Example:
      >>> positive(epsilon=0.5)
    """
    for name, value in named.items():
        if isinstance(value, numbers.Real) and not float(value) > 0:
            raise ValueError(f"{name} must be > 0, got {value!r}.")


def not_negative(**named) -> None:
    """Raises ValueError unless every Python number is >= 0; arrays pass.

    Example:
      >>> not_negative(scale=0.0)
    """
    for name, value in named.items():
        if isinstance(value, numbers.Real) and not float(value) >= 0:
            raise ValueError(f"{name} must be >= 0, got {value!r}.")


def one_of(name, value, choices) -> None:
    """Raises ValueError unless ``value`` is one of the words.

    Example:
      >>> one_of("kind", "lowpass", ("lowpass", "highpass"))
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}, got {value!r}.")
