"""Groups of clients by inner products of what belongs to each, and by nothing else."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import whole


def inner_products(trees):
    """Inner products of every two clients' trees, as one long vector each.

    Where a client's tree is one gradient of few rows, its factors give the same without
    the gradient (``jaxanon.kernels.inner_product``), but only those of fewer than
    √(d_in d_out / (d_in + d_out)) rows do so by fewer products, which for layers of a
    thousand by 64 is 7: what clients make of hundreds of rows or of many steps is
    multiplied out before.

    Args:
      trees: tree of arrays ``[clients, ...]``.

    Returns:
      ``float[clients, clients]``, in float32 or the wider type of a leaf.

    Example:
      >>> inner_products({"a": jnp.array([[1.0, 2.0], [0.0, 1.0]]), "b": jnp.ones(2)})
      Array([[6., 3.],
             [3., 2.]], dtype=float32)
    """

    def of_leaf(leaf):
        wide = leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32))
        flat = wide.reshape(len(leaf), -1)
        return jnp.matmul(flat, flat.T, precision=jax.lax.Precision.HIGHEST)

    return sum(map(of_leaf, jax.tree.leaves(trees)))


def cosines(products):
    """Cosines of the angles between clients, of ``inner_products``; 0 beside nothing.

    Example:
      >>> cosines(jnp.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
      Array([[1. , 0.5, 0. ],
             [0.5, 1. , 0. ],
             [0. , 0. , 0. ]], dtype=float32)
    """
    squares = jnp.diagonal(products)
    lengths = jnp.sqrt(jnp.where(squares > 0, squares, 1))
    return products / lengths[:, None] / lengths[None, :]


def k_means(products, present, num_groups: int, *, num_steps: int = 20):
    """Groups whose members are near their mean, by Lloyd's steps on inner products.

    The first centre is the client that is furthest from the mean of all, each next one
    that which is furthest from those before: nothing is drawn.

    Args:
      products: ``float[clients, clients]``, of ``inner_products``.
      present: ``bool[clients]``; others are put to the nearest group, and form none.
      num_groups: k, from 1 to the number of clients.
      num_steps: of Lloyd's, enough for clients by the hundred.

    Returns:
      ``int32[clients]`` below k; of clients as near to two groups the first. Groups
      can be empty where clients are fewer than k, or lie on each other.

    Raises:
      ValueError: for a number of groups out of its range.

    Example:
      >>> x = jnp.array([0.0, 9.0, 1.0, 8.0])
      >>> k_means(x[:, None] * x[None, :], jnp.ones(4, bool), 2)
      Array([0, 1, 0, 1], dtype=int32)

    References:
      Lloyd, Least squares quantization in PCM, 1982; Schölkopf, Smola and Müller, 1998,
      for means that are known by inner products; Gonzalez, 1985, for where it begins.
    """
    num = whole("num_groups", num_groups, least=1)
    if num > len(products):
        raise ValueError(
            f"num_groups must be at most the {len(products)} clients there are, got "
            f"{num_groups!r}."
        )
    squares = jnp.diagonal(products)

    def apart(weights):
        """Squared distances of clients from a mean, its own part of it given."""
        share = weights / jnp.maximum(jnp.sum(weights), 1)
        toward = products @ share
        far = squares - 2 * toward + share @ toward
        return jnp.where(jnp.sum(weights) > 0, far, jnp.inf)

    nearest, centres = apart(present.astype(products.dtype)), []
    for number in range(num):
        furthest = jnp.argmax(jnp.where(present, nearest, -1))
        centres.append(jax.nn.one_hot(furthest, len(products), dtype=products.dtype))
        away = apart(centres[-1])
        nearest = jnp.minimum(nearest, away) if number else away
    nearest_of = lambda weights: jnp.argmin(jax.vmap(apart)(weights), axis=0)

    def step(groups, _):
        own = groups[None, :] == jnp.arange(num)[:, None]
        return nearest_of((own & present[None, :]).astype(products.dtype)), None

    groups, _ = jax.lax.scan(step, nearest_of(jnp.stack(centres)), length=num_steps)
    return groups.astype(jnp.int32)


def link_clients(near):
    """Groups of clients that are linked to each other, by others if need be.

    Args:
      near: ``bool[clients, clients]``, symmetric.

    Returns:
      ``bool[clients, clients]``, who is of one group; each is of its own.

    Example:
      >>> near = jnp.zeros((4, 4), bool).at[0, 1].set(True).at[1, 3].set(True)
      >>> link_clients(near | near.T).astype(int)
      Array([[1, 1, 0, 1],
             [1, 1, 0, 1],
             [0, 0, 1, 0],
             [1, 1, 0, 1]], dtype=int32)
    """
    found = near | jnp.eye(len(near), dtype=bool)
    # Each product doubles how many links lie between two of a group.
    for _ in range((len(near) - 1).bit_length()):
        counts = found.astype(jnp.float32) @ found.astype(jnp.float32)
        found = counts > 0.5
    return found
