"""Private adaptation of clip norms to a quantile of the rows' norms."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import known, typed_key
from jaxanon.kernels.clipping import factors
from jaxanon.kernels.clipping import layer_groups as grouping
from jaxanon.kernels.clipping.api import unit_weights


def adapt_clip_norms(
    key,
    rows,
    clip_norms,
    *,
    count_stddev,
    quantile=0.5,
    learning_rate=0.2,
    expected_rows=None,
    weights=None,
    groups=None,
    axis_name=None,
):
    """Moves each clip norm towards a quantile of the rows' norms.

    The update is ``C <- C exp(-learning_rate (b - quantile))``, where b estimates the
    fraction of rows within C from a noisy count: ``b = 1/2 + (sum_i w_i (b_i - 1/2) +
    noise) / expected_rows``. Each group has its own count, which one row changes by
    1/2. The counts use part of the privacy budget: see
    ``noise_multiplier_with_counts``.

    Args:
      key: typed PRNG key, different from the key of the sum's noise. On a mesh it is
        the same on every shard.
      rows, clip_norms, groups: see ``clip_rows``; rows before clipping.
      count_stddev: sigma_b >= 0, in rows. The paper uses ``expected_rows / 20``.
      quantile: target fraction of rows within the norm, in [0, 1].
      learning_rate: eta >= 0. Without noise, a step changes the norm by a factor of at
        most ``exp(learning_rate)``.
      expected_rows: public number of rows > 0, independent of actual participation.
        None is N. It is required with ``weights`` or ``axis_name``.
      weights, axis_name: see ``clipped_sum``.

    Returns:
      The tree of ``clip_norms`` as ``float[]``. A non-finite row counts as larger than
      any norm. Without rows, b is 1/2 plus noise.

    Raises:
      TypeError: under the conditions of ``clip_rows``, or if ``key`` is not a typed
        key.
      ValueError: under the conditions of ``clipped_sum``, if a Python number is out of
        range, or if ``expected_rows`` is missing.

    Example:
      >>> rows = jnp.array([[3.0, 4.0], [0.0, 8.0], [9.0, 0.0], [7.0, 0.0]])
      >>> norm = adapt_clip_norms(  # A quarter of the rows is within 6; target 1/2.
      ...     jax.random.key(0), rows, 6.0, count_stddev=0.0,
      ...     learning_rate=4 * jnp.log(2.0))
      >>> round(float(norm), 4)
      12.0

    References:
      Andrew et al., Differentially private learning with adaptive clipping, NeurIPS
      2021 (arXiv 1905.03871), section 2.1.
    """
    typed_key(key)
    rows = grouping.checked_rows(rows)
    clip_norms = grouping.numbers("clip_norms", clip_norms)
    group_of = grouping.group_of_leaves(rows, clip_norms, groups)
    stddev = grouping.numbers("count_stddev", count_stddev, zero=True)
    learning_rate = grouping.numbers("learning_rate", learning_rate, zero=True)
    quantile = grouping.numbers("quantile", quantile, zero=True, at_most=1)
    bounds, treedef = jax.tree.flatten(clip_norms)
    leaves = jax.tree.leaves(rows)
    if expected_rows is None:
        if weights is not None or axis_name is not None:
            raise ValueError(
                "expected_rows must be given with weights or axis_name, got None; pass "
                "a public number, because the number of participating rows is private."
            )
        expected_rows = max(len(leaves[0]), 1)
    expected_rows = grouping.numbers("expected_rows", expected_rows)
    weights = unit_weights(weights, len(leaves[0]))
    norms = jnp.sqrt(jnp.stack(factors.squared_norms(leaves, group_of, len(bounds))))
    bounds = jnp.stack(bounds)
    centred = jnp.where(norms <= bounds[:, None], 0.5, -0.5) * weights[None]
    counts = jnp.sum(centred, axis=1)
    if axis_name is not None:
        counts = jax.lax.psum(counts, axis_name)
    counts = counts + stddev * jax.random.normal(key, counts.shape, counts.dtype)
    fraction = 0.5 + counts / expected_rows
    return treedef.unflatten(bounds * jnp.exp(-learning_rate * (fraction - quantile)))


def noise_multiplier_with_counts(noise_multiplier, count_stddev, num_counts=1):
    """Returns the sum's noise multiplier so that sum and counts together have z.

    It is ``z_delta = (z^-2 - M (2 sigma_b)^-2)^(-1/2)``. A sum with multiplier z_delta
    and M counts with noise sigma_b, each changed by 1/2 by one row, are together a
    Gaussian mechanism with noise multiplier z. Account with z and add noise with
    z_delta. With sampling this is one sampled mechanism, because the sum and the
    counts use the same rows.

    Args:
      noise_multiplier: z > 0, joint noise multiplier of the sum and the counts.
      count_stddev: sigma_b > 0, in rows, as in ``adapt_clip_norms``.
      num_counts: M, number of groups with an adapted norm.

    Returns:
      ``float[]`` above z; infinite if the counts alone exceed the budget of z.

    Raises:
      ValueError: if a Python number is <= 0, or the Python numbers leave no budget.

    Example:
      >>> round(float(noise_multiplier_with_counts(1.2, 1.0)), 4)
      1.5

    References:
      Andrew et al., NeurIPS 2021 (arXiv 1905.03871), theorem 1, for one count.
      For M counts the squares of ``1 / (2 sigma_b)`` add.
    """
    args = noise_multiplier, count_stddev, num_counts
    z, stddev, num = (
        grouping.numbers(*pair)
        for pair in zip(
            ("noise_multiplier", "count_stddev", "num_counts"), args, strict=True
        )
    )
    if all(known(arg) is not None for arg in args):
        least = noise_multiplier * num_counts**0.5 / 2
        if not count_stddev > least:
            raise ValueError(
                f"count_stddev must be > {least!r} for noise_multiplier "
                f"{noise_multiplier!r} and {num_counts} counts, got {count_stddev!r}; "
                "the counts alone would exceed the budget."
            )
    left = 1 / jnp.square(z) - num / jnp.square(2 * stddev)
    return jnp.where(left > 0, 1 / jnp.sqrt(jnp.where(left > 0, left, 1)), jnp.inf)
