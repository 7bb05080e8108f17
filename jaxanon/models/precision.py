"""Networks learn in 32 bits, whatever else JAX is asked for."""

import functools
from collections.abc import Callable
from typing import TypeVar, cast

import jax

F = TypeVar("F", bound=Callable)


def single(fn: F) -> F:
    """``fn``, for whose thread ``jax_enable_x64`` is switched off as long as it runs.

    Windows are float32, and so are the networks that learn of them; a program of both
    types would not compile. Warnings from within have one frame more to their caller.

    Example:
      >>> with jax.enable_x64(True):
      ...     single(lambda: jax.numpy.zeros(()).dtype)()
      dtype('float32')
    """

    @functools.wraps(fn)
    def in_single(*args, **kwargs):
        with jax.enable_x64(False):
            return fn(*args, **kwargs)

    return cast(F, in_single)
