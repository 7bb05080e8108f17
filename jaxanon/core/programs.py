"""Many rounds of a method as one program, in single precision."""

import functools
from collections.abc import Callable
from typing import TypeVar, cast

import jax
import jax.numpy as jnp


@functools.lru_cache(maxsize=8)
def rounds_program(update):
    """``(key, state, data, num) -> (state, mean info, bad)``; ``num`` rounds.

    ``bad`` is the first round, of those, whose info is not finite, else the last one if
    it left a state that is not ``sound``, else ``num``.
    """

    a_round = jax.jit(update, inline=True)  # Traced once for its shape and the loop.

    @functools.partial(jax.jit, donate_argnums=1)
    def call(key, state, data, num):
        _, like = jax.eval_shape(a_round, key, state, data)
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)

        def body(index, carry):
            state, total, bad = carry
            state, info = a_round(key, state, data)
            finite = _all_finite(jax.tree.leaves(info))
            bad = jnp.where(finite, bad, jnp.minimum(bad, index))
            return state, jax.tree.map(jnp.add, total, info), bad

        carry = (state, zeros, jnp.asarray(num, jnp.int32))
        state, total, bad = jax.lax.fori_loop(0, num, body, carry)
        # Info is of the parameters before a step; nobody has seen the last ones yet.
        bad = jnp.where(sound(state), bad, jnp.minimum(bad, num - 1))
        return state, jax.tree.map(lambda leaf: leaf / num, total), bad

    return call


def sound(state):
    """``bool[]``: whether parameters, and their average, have finite squares.

    Beyond that they are NaN, infinite, or make the next product infinite.

    Example:
      >>> from jaxanon.federated.engine.algorithm import State
      >>> [bool(sound(State(0, {"w": jnp.float32(w)}, {}, {}))) for w in (1.0, 1e30)]
      [True, False]
    """
    kept = getattr(state, "own", None)  # Of clients that keep models of their own.
    leaves = jax.tree.leaves((state.params, state.average, kept))
    leaves = [x for x in leaves if jnp.issubdtype(jnp.result_type(x), jnp.floating)]
    return _all_finite([jnp.sum(jnp.square(x)) for x in leaves])


def _all_finite(numbers):
    """True of none: a method may have nothing to tell, or to learn."""
    return jnp.all(jnp.array([jnp.isfinite(number) for number in numbers], bool))


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
