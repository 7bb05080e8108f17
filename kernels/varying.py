"""Values marked as varying over mesh axes, for loops inside ``shard_map``."""

import jax
import jax.numpy as jnp


def zero(*trees) -> jax.Array:
    """Returns ``float32[]`` 0 that varies over all mesh axes of the given arrays.

    A loop's carry must vary over the same axes at the start and at the end. Outside
    ``shard_map`` the result is a plain constant.

    Example:
      >>> zero({"a": jnp.ones(3)}, jnp.arange(2))
      Array(0., dtype=float32)
    """
    return spread(jnp.float32(0), trees)


def spread(tree, *others):
    """Marks a tree as varying over all mesh axes that it or the others vary over.

    In ``shard_map`` the gradient of a replicated array is summed over shards; after
    ``spread`` each shard keeps its local gradient. Outside ``shard_map`` the tree is
    returned unchanged, so ``vmap`` shares it between clients without a copy.

    Example:
      >>> spread({"w": jnp.array([1.0, 2.0])}, jnp.ones(3))
      {'w': Array([1., 2.], dtype=float32)}
    """
    axes = _axes(tree, others)

    def one(leaf):
        missing = tuple(axes - _axes(leaf))
        return jax.lax.pcast(leaf, missing, to="varying") if missing else leaf

    return jax.tree.map(one, tree)


def _axes(*trees):
    """Returns the mesh axes that any array varies over; empty outside ``shard_map``."""
    types = map(jax.typeof, jax.tree.leaves(trees))
    return frozenset().union(*(kind.manual_axis_type.varying for kind in types))
