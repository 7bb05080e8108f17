"""Gaussian noise for clipped rows: for their sum, and for each of them.

All of it is drawn in floating point, float32 at least, whose low bits an attacker with
exact outputs could use (Mironov, CCS 2012).
"""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import typed_key
from jaxanon.kernels.clipping import factors
from jaxanon.kernels.clipping import groups as grouping
from jaxanon.kernels.clipping.bounded import BoundedSum, noise_stddevs
from jaxanon.kernels.precision import wide


def add_noise_to_sum(key, total: BoundedSum, noise_multipliers):
    """Adds the Gaussian noise that a sum needs to be released, once for the sum.

    The central model: whoever sums is trusted, and nothing but the noisy sum is
    released. Each entry gets noise of its own with the standard deviation that
    ``noise_stddevs`` gives its group, however many rows there are.

    Args:
      key: a typed PRNG key. After a sum over a mesh, the same one on every shard.
      total: of ``clipped_sum``.
      noise_multipliers: one number z >= 0 for the whole, or a tree like
        ``total.clip_norms`` with one z_m for each group.

    Returns:
      The tree of ``total.value``, same dtypes (half precision widened to float32).

    Raises:
      TypeError: if ``key`` is not a typed key, or ``total`` no ``BoundedSum``.
      ValueError: as ``noise_stddevs``.

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
    """Adds to a sum the noises of all its clients, drawn as one.

    For simulations of the local model (every client adds its own noise before it
    sends) that use nothing but the sum: a sum of independent Gaussians is a Gaussian,
    here with the standard deviation of one client times the root of the sum of
    squared weights. It is distributed as the weighted sum of what
    ``clip_and_noise_per_client`` returns, and N times fewer numbers are drawn. Not to
    be used where anyone looks at a single client's update.

    Args:
      key: a typed PRNG key. After a sum over a mesh, the same one on every shard.
      total: of ``clipped_sum`` over clients.
      noise_multipliers: those of one client, as in ``clip_and_noise_per_client``.

    Returns:
      The tree of ``total.value``, same dtypes (half precision widened to float32).

    Raises:
      TypeError: if ``key`` is not a typed key, or ``total`` no ``BoundedSum``.
      ValueError: as ``noise_stddevs``.

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
            "got None; clipped_sum fills it in."
        )
    root = jnp.sqrt(jnp.asarray(total.squared_weights))
    stddevs = noise_stddevs(total.clip_norms, noise_multipliers)
    stddevs = jax.tree.map(lambda stddev: stddev * root, stddevs)
    return _noisy_sum(key, total, stddevs)


def clip_and_noise_per_client(key, rows, clip_norms, noise_multipliers, *, groups=None):
    """Clips each client's update and adds noise of its own, as the client would.

    The local model: every row is released. Noise is independent over clients, leaves
    and entries. The bound is for a client that takes part or sends zeros; to hide
    which of two updates a client has sent, count on half the multiplier.

    Args:
      key: a typed PRNG key. On a mesh one for each shard of clients, as by
        ``jax.random.fold_in(key, jax.lax.axis_index("clients"))``: with the same key
        clients on two shards would share their noise.
      rows, clip_norms, groups: as in ``clip_rows``; rows are clients.
      noise_multipliers: one number z >= 0 for the whole, or a tree like ``clip_norms``
        with one z_m for each group.

    Returns:
      The tree of ``rows``, same dtypes. Noise is drawn and added in float32 (float64
      for float64) and rounded to half precision afterwards. Padding rows get noise
      too; leave them out by their weight.

    Raises:
      TypeError: if ``key`` is not a typed key, or as ``clip_rows``.
      ValueError: as ``clip_rows`` and ``add_noise_to_sum``.

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
            "total must be a BoundedSum, which knows its sensitivity, got "
            f"{type(total).__name__}; clipped_sum returns one, clipped_gradient_sum "
            "one beside its info."
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
    """Adds independent noise to every entry, each leaf by a key of its own."""
    typed_key(key)
    leaves, treedef = jax.tree.flatten(tree)
    stddevs = jax.tree.leaves(stddevs)
    keys = jax.random.split(key, len(leaves))
    of_each = [
        (stddevs[group].astype(wide(leaf.dtype)), scales[group])
        for leaf, group in zip(leaves, group_of, strict=True)
    ]
    return treedef.unflatten(
        factors.noisy_leaves(keys, leaves, *zip(*of_each, strict=True))
    )
