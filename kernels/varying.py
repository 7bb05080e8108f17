"""Constants that vary over a mesh as arrays do, for the loops of ``shard_map``."""

import jax
import jax.numpy as jnp


def zero(*trees) -> jax.Array:
    """``float32[]`` 0 that varies over every mesh axis that an array varies over.

    A loop's carry has to vary from the start as it does at the end. Outside
    ``shard_map`` it is a constant, and costs nothing.

    Example:
      >>> zero({"a": jnp.ones(3)}, jnp.arange(2))
      Array(0., dtype=float32)
    """
    return spread(jnp.float32(0), trees)


def spread(tree, *others):
    """The tree, varying over every mesh axis that it or the others vary over.

    In ``shard_map`` the gradient of what is the same on all shards is a sum over them;
    of what is spread first it is the shard's own. Outside ``shard_map`` the tree comes
    back as it is, so ``vmap`` shares it between clients and copies nothing.

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
    """The mesh axes that some array varies over; none outside ``shard_map``."""
    types = map(jax.typeof, jax.tree.leaves(trees))
    return frozenset().union(*(kind.manual_axis_type.varying for kind in types))
