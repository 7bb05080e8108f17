"""Many rounds of a method as one program, however many they are."""

import functools

import jax
import jax.numpy as jnp


@functools.lru_cache(maxsize=8)
def rounds_program(update):
    """``(key, state, data, num) -> (state, mean info, bad)``; ``num`` rounds.

    ``bad`` is the first round, of those, whose info is not finite, ``num`` if none is.
    """

    @functools.partial(jax.jit, donate_argnums=1)
    def call(key, state, data, num):
        _, like = jax.eval_shape(update, key, state, data)
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)

        def body(index, carry):
            state, total, bad = carry
            state, info = update(key, state, data)
            finite = jnp.isfinite(jnp.stack(jax.tree.leaves(info))).all()
            bad = jnp.where(finite, bad, jnp.minimum(bad, index))
            return state, jax.tree.map(jnp.add, total, info), bad

        carry = (state, zeros, jnp.asarray(num, jnp.int32))
        state, total, bad = jax.lax.fori_loop(0, num, body, carry)
        return state, jax.tree.map(lambda leaf: leaf / num, total), bad

    return call
