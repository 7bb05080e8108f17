"""Gaussian noise for clipped rows and for their sum.

Noise is drawn in floating point, at least float32. An attacker with exact outputs could
exploit the low bits (Mironov, CCS 2012).
"""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import typed_key
from jaxanon.kernels.clipping import factors
from jaxanon.kernels.clipping import layer_groups as grouping
from jaxanon.kernels.clipping.bounded import BoundedSum, noise_stddevs
from jaxanon.kernels.precision import wide


def add_noise_to_sum(key, total: BoundedSum, noise_multipliers):
    """Adds Gaussian noise to a clipped sum (central differential privacy).

    The aggregator is trusted and releases only the noisy sum. Each entry gets
    independent noise with the standard deviation of its group from ``noise_stddevs``,
    regardless of the number of rows.

    Args:
      key: typed PRNG key. After a sum over a mesh it is the same on every shard.
      total: result of ``clipped_sum``.
      noise_multipliers: one number z >= 0 for the whole sum, or a tree like
        ``total.clip_norms`` with one z_m per group.

    Returns:
      The tree of ``total.value`` with the same dtypes; half precision becomes float32.

    Raises:
      TypeError: if ``key`` is not a typed key, or ``total`` is not a ``BoundedSum``.
      ValueError: same conditions as ``noise_stddevs``.

    Example:
      >>> from jaxanon.kernels.clipping import clipped_sum
      >>> total = clipped_sum(jnp.array([[3.0, 4.0]]), 2.5)
      >>> add_noise_to_sum(jax.random.key(0), total, 0.0)
      Array([1.5, 2. ], dtype=float32)

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1.
    """
    _bounded(total)
    stddevs = noise_stddevs(total.clip_norms, noise_multipliers)
    return _noisy_sum(key, total, stddevs)


def add_aggregate_client_noise(key, total: BoundedSum, noise_multipliers):
    """Adds the summed noise of all clients to a sum with a single draw.

    Use it to simulate local noise (each client adds noise before sending) if only the
    sum is needed. The sum of independent Gaussians is Gaussian; its standard deviation
    is that of one client times the root of the sum of squared weights. The result has
    the distribution of the weighted sum of ``clip_and_noise_per_client``, with N times
    fewer random numbers. Do not use it if single client updates are inspected.

    Args:
      key: typed PRNG key. After a sum over a mesh it is the same on every shard.
      total: result of ``clipped_sum`` over clients.
      noise_multipliers: noise multipliers of one client, see
        ``clip_and_noise_per_client``.

    Returns:
      The tree of ``total.value`` with the same dtypes; half precision becomes float32.

    Raises:
      TypeError: if ``key`` is not a typed key, or ``total`` is not a ``BoundedSum``.
      ValueError: same conditions as ``noise_stddevs``.

    Example:
      >>> from jaxanon.kernels.clipping import clipped_sum
      >>> total = clipped_sum(jnp.array([[3.0, 4.0], [0.0, 2.0]]), 2.5)
      >>> add_aggregate_client_noise(jax.random.key(0), total, 0.0)
      Array([1.5, 4. ], dtype=float32)
    """
    _bounded(total)
    if total.squared_weights is None:
        raise ValueError(
            "total.squared_weights must be the sum of the clients' squared weights, "
            "got None; use clipped_sum."
        )
    root = jnp.sqrt(jnp.asarray(total.squared_weights))
    stddevs = noise_stddevs(total.clip_norms, noise_multipliers)
    stddevs = jax.tree.map(lambda stddev: stddev * root, stddevs)
    return _noisy_sum(key, total, stddevs)


def clip_and_noise_per_client(key, rows, clip_norms, noise_multipliers, *, groups=None):
    """Clips each client's update and adds independent noise to it.

    In this local model every row is released. Noise is independent over clients, leaves
    and entries. The multiplier refers to a client that participates or sends zeros. To
    hide which of two updates a client sent, account with half the multiplier.

    Args:
      key: typed PRNG key. On a mesh, use a different key on each shard of clients, for
        example ``jax.random.fold_in(key, jax.lax.axis_index("clients"))``. Otherwise
        clients on different shards share their noise.
      rows, clip_norms, groups: see ``clip_rows``; rows are clients.
      noise_multipliers: one number z >= 0 for the whole row, or a tree like
        ``clip_norms`` with one z_m per group.

    Returns:
      The tree of ``rows`` with the same dtypes. Noise is drawn and added in at least
      float32, then rounded to half precision. Padding rows get noise too; exclude them
      by their weight.

    Raises:
      TypeError: if ``key`` is not a typed key; also the conditions of ``clip_rows``.
      ValueError: same conditions as ``clip_rows`` and ``add_noise_to_sum``.

    Example:
      >>> rows = jnp.array([[3.0, 4.0], [0.0, 2.0]])
      >>> clip_and_noise_per_client(jax.random.key(0), rows, 2.5, 0.0)
      Array([[1.5, 2. ],
             [0. , 2. ]], dtype=float32)
    """
    rows = grouping.checked_rows(rows)
    bounds = jax.tree.leaves(grouping.numbers("clip_norms", clip_norms))
    group_of = grouping.group_of_leaves(rows, clip_norms, groups)
    scales = factors.scales(jax.tree.leaves(rows), group_of, bounds)
    stddevs = noise_stddevs(clip_norms, noise_multipliers)
    return _noisy(key, rows, stddevs, group_of, scales)


def _bounded(total):
    if not isinstance(total, BoundedSum):
        raise TypeError(
            "total must be a BoundedSum, which carries its sensitivity, got "
            f"{type(total).__name__}; use clipped_sum, or the first result of "
            "clipped_gradient_sum."
        )


def _noisy_sum(key, total, stddevs):
    widen = lambda leaf: jnp.asarray(leaf, wide(jnp.result_type(leaf)))
    value = jax.tree.map(widen, total.value)
    group_of = total.groups
    if group_of is None:
        group_of = grouping.group_of_leaves(value, total.clip_norms)
    scales = [None] * len(jax.tree.leaves(stddevs))
    return _noisy(key, value, stddevs, group_of, scales)


def _noisy(key, tree, stddevs, group_of, scales):
    """Adds independent noise to every entry, with one key per leaf."""
    typed_key(key)
    leaves, treedef = jax.tree.flatten(tree)
    stddevs = jax.tree.leaves(stddevs)
    keys = jax.random.split(key, len(leaves))
    noise_of_leaf = [
        (stddevs[group].astype(wide(leaf.dtype)), scales[group])
        for leaf, group in zip(leaves, group_of, strict=True)
    ]
    return treedef.unflatten(
        factors.noisy_leaves(keys, leaves, *zip(*noise_of_leaf, strict=True))
    )
