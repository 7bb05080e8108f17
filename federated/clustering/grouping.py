"""Grouping of clients based on inner products of their vectors."""

import jax
import jax.numpy as jnp

from jaxanon.kernels import coordinate_median
from jaxanon.kernels.checks import whole


def inner_products(trees):
    """Computes inner products of all pairs of clients' trees.

    For gradients of few rows, ``jaxanon.kernels.inner_product`` computes them from
    factors. It needs fewer operations only below √(d_in d_out / (d_in + d_out)) rows,
    such as 7 rows for a layer of 1000 by 64.

    Args:
      trees: tree of arrays ``[clients, ...]``.

    Returns:
      ``float[clients, clients]`` in at least float32.

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


def centre(trees, present):
    """Returns clients' vectors minus their median, which leaves distances as they are.

    Inner products of vectors far from 0 would lose the digits of their distances.

    Args:
      trees: tree of arrays ``[clients, ...]``.
      present: ``bool[clients]``. Other clients do not affect the median.

    Example:
      >>> centre(jnp.array([[1e6], [1e6 + 1], [9.0]]), jnp.array([True, True, False]))
      Array([[-5.000000e-01],
             [ 5.000000e-01],
             [-9.999915e+05]], dtype=float32)
    """
    wide = lambda leaf: leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32))
    trees = jax.tree.map(wide, trees)
    median = coordinate_median(trees, mask=present)
    return jax.tree.map(lambda leaf, middle: leaf - middle[None], trees, median)


def cosines(products):
    """Converts ``inner_products`` to cosines; 0 for zero vectors.

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
    """Clusters clients with k-means (Lloyd's algorithm) on inner products.

    Initialisation is deterministic: the first centre is the client farthest from the
    global mean, and each further centre is the client farthest from the previous ones.

    Args:
      products: ``float[clients, clients]``, result of ``inner_products``, of vectors
        from ``centre`` if they are far from 0.
      present: ``bool[clients]``. Other clients are assigned to the nearest group but do
        not affect the means.
      num_groups: k, from 1 to the number of clients.
      num_steps: iterations; the default suffices for hundreds of clients.

    Returns:
      ``int32[clients]`` below k; ties go to the first group. Groups can be empty if
      there are fewer than k distinct clients.

    Raises:
      ValueError: for ``num_groups`` out of range.

    Example:
      >>> x = jnp.array([0.0, 9.0, 1.0, 8.0])
      >>> k_means(x[:, None] * x[None, :], jnp.ones(4, bool), 2)
      Array([0, 1, 0, 1], dtype=int32)

    References:
      Lloyd, Least squares quantization in PCM, 1982; Schölkopf, Smola and Müller, 1998,
      for means from inner products; Gonzalez, 1985, for the initialisation.
    """
    num = whole("num_groups", num_groups, least=1)
    if num > len(products):
        raise ValueError(
            f"num_groups must be <= {len(products)}, the number of clients, got "
            f"{num_groups!r}."
        )
    squares = jnp.diagonal(products)

    def apart(weights):
        """Returns squared distances of clients from a weighted mean."""
        fractions = weights / jnp.maximum(jnp.sum(weights), 1)
        toward = products @ fractions
        far = squares - 2 * toward + fractions @ toward
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
    """Returns the connected components of a graph of clients.

    Args:
      near: ``bool[clients, clients]``, symmetric.

    Returns:
      ``bool[clients, clients]``, True for clients in the same component.

    Example:
      >>> near = jnp.zeros((4, 4), bool).at[0, 1].set(True).at[1, 3].set(True)
      >>> link_clients(near | near.T).astype(int)
      Array([[1, 1, 0, 1],
             [1, 1, 0, 1],
             [0, 0, 1, 0],
             [1, 1, 0, 1]], dtype=int32)
    """
    found = near | jnp.eye(len(near), dtype=bool)
    # Each product doubles the maximum path length.
    for _ in range((len(near) - 1).bit_length()):
        counts = found.astype(jnp.float32) @ found.astype(jnp.float32)
        found = counts > 0.5
    return found
