"""Constants that vary over a mesh as arrays do, for the loops of ``shard_map``."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import is_key


def zero(*trees) -> jax.Array:
    """``float32[]`` 0 that varies over every mesh axis that an array varies over.

    A loop's carry has to vary from the start as it does at the end. Outside
    ``shard_map`` it is a constant, and costs nothing.

    Example:
      >>> zero({"a": jnp.ones(3)}, jnp.arange(2))
      Array(0., dtype=float32)
    """
    arrays = [jnp.ravel(x)[:0] for x in jax.tree.leaves(trees) if not is_key(x)]
    return sum((jnp.sum(x, dtype=jnp.float32) for x in arrays), jnp.float32(0))


def spread(tree, *others):
    """The tree, varying over every mesh axis that it or the others vary over.

    In ``shard_map`` the gradient of what is the same on all shards is a sum over them;
    of what is spread first it is the shard's own.

    Example:
      >>> spread({"w": jnp.array([1.0, 2.0])}, jnp.ones(3))
      {'w': Array([1., 2.], dtype=float32)}
    """
    one = 1 + zero(tree, others)  # XLA drops a product with 1, but no sum with 0.
    return jax.tree.map(lambda leaf: leaf * one.astype(leaf.dtype), tree)
