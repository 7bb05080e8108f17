"""Runs many rounds of a method as one compiled program, in single precision."""

import functools
from collections.abc import Callable
from typing import TypeVar, cast

import jax
import jax.numpy as jnp


@functools.lru_cache(maxsize=8)
def rounds_program(update):
    """Returns a program ``(key, state, data, num) -> (state, mean info, bad)``.

    The program runs ``num`` rounds. ``bad`` is the index of the first round with
    non-finite info. Otherwise it is the last index if the final state is not
    ``state_is_finite``, and ``num`` if it is.
    """

    # Traced once, for the shapes of info and for the loop.
    one_round = jax.jit(update, inline=True)

    @functools.partial(jax.jit, donate_argnums=1)
    def call(key, state, data, num):
        _, info_shapes = jax.eval_shape(one_round, key, state, data)
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), info_shapes)

        def body(index, carry):
            state, total, bad = carry
            state, info = one_round(key, state, data)
            finite = _all_finite(jax.tree.leaves(info))
            bad = jnp.where(finite, bad, jnp.minimum(bad, index))
            return state, jax.tree.map(jnp.add, total, info), bad

        carry = (state, zeros, jnp.asarray(num, jnp.int32))
        state, total, bad = jax.lax.fori_loop(0, num, body, carry)
        # Info describes the parameters before each step, so check the last ones here.
        bad = jnp.where(state_is_finite(state), bad, jnp.minimum(bad, num - 1))
        return state, jax.tree.map(lambda leaf: leaf / num, total), bad

    return call


def state_is_finite(state):
    """Returns ``bool[]``: whether the squares of a state's parameters are finite.

    Covers the parameters, their running average and personal models. A parameter whose
    square overflows makes the next product infinite.

    Example:
      >>> from jaxanon.federated.engine.algorithm import State
      >>> states = [State(0, {"w": jnp.float32(w)}, {}, {}) for w in (1.0, 1e30)]
      >>> [bool(state_is_finite(state)) for state in states]
      [True, False]
    """
    leaves = jax.tree.leaves((state.params, state.average, state.own))
    leaves = [x for x in leaves if jnp.issubdtype(jnp.result_type(x), jnp.floating)]
    return _all_finite([jnp.sum(jnp.square(x)) for x in leaves])


def _all_finite(numbers):
    """Returns whether all numbers are finite; True for an empty list."""
    return jnp.all(jnp.array([jnp.isfinite(number) for number in numbers], bool))


F = TypeVar("F", bound=Callable)


def single(fn: F) -> F:
    """Wraps ``fn`` to run with ``jax_enable_x64`` disabled in the current thread.

    Windows and networks are float32; a program that mixes them with float64 would not
    compile. The wrapper adds one stack frame, which ``stacklevel`` has to count.

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
