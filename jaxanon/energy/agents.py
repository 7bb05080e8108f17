"""Agents side by side, or in turn, where networks of one stay in a CPU's cache."""

import jax

from jaxanon.federated.layout import Layout


def each(layout: Layout | None, fn):
    """A function of every agent.

    Args:
      layout: None is in turn on a CPU, and else side by side.
      fn: one agent's tree of arrays to another.

    Returns:
      ``fn`` of trees of arrays ``[agents, ...]``.

    Example:
      >>> import jax.numpy as jnp
      >>> each(None, lambda x: 2 * x)(jnp.array([1.0, 3.0]))
      Array([2., 6.], dtype=float32)
    """
    in_turn = layout is None and jax.default_backend() == "cpu"
    chunk = 1 if in_turn else layout.chunk if layout else None
    if chunk is None:
        return jax.vmap(fn)
    batch_size = None if chunk == 1 else chunk
    return lambda inputs: jax.lax.map(fn, inputs, batch_size=batch_size)
