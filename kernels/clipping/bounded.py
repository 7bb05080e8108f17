"""Sums that carry their sensitivity."""

import dataclasses
import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp

from jaxanon.kernels.clipping import layer_groups as grouping


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["value", "clip_norms", "squared_weights"],
    meta_fields=["groups"],
)
@dataclasses.dataclass(frozen=True)
class BoundedSum:
    """Sum over rows with a bound on the contribution of each row.

    It is a pytree, so bounds can be traced and mapped over. ``jax.tree.map`` therefore
    also applies to the bounds. To add the sums of microbatches or shards, add ``value``
    and ``squared_weights`` and keep one set of bounds. To compute a mean, add the noise
    first and then divide.

    Attributes:
      value: tree of ``float[...]``, the sum.
      clip_norms: tree of ``float[]``. Adding or removing one row moves the leaves of
        group m by at most ``clip_norms[m]`` in L2 norm. Replacing a row moves them by
        at most twice that.
      squared_weights: ``float[]``, the sum of squared row weights, which is the number
        of rows in an unweighted sum. Required by ``add_aggregate_client_noise``.
      groups: index of the bound among the leaves of ``clip_norms``, for each leaf of
        ``value``. None if ``clip_norms`` is a tree prefix of ``value``.

    Example:
      >>> total = BoundedSum({"a": jnp.zeros(2), "b": jnp.zeros(3)}, {"a": 3., "b": 4.})
      >>> total.sensitivity
      Array(5., dtype=float32)
    """

    value: Any
    clip_norms: Any
    squared_weights: Any = None
    groups: tuple[int, ...] | None = None

    @property
    def sensitivity(self) -> jax.Array:
        """``float[]``, maximum L2 change of all leaves together by one row."""
        return _sensitivity(self.clip_norms)


def noise_stddevs(clip_norms, noise_multipliers):
    """Returns the standard deviations of Gaussian noise for noise multipliers.

    One number z applies to the whole sum: every group gets ``z sqrt(sum C_m^2)``. A
    tree of numbers applies per group: group m gets ``z_m C_m``. The joint multiplier is
    then less than each z_m (see ``joint_noise_multiplier``).

    Args:
      clip_norms: number or tree of numbers, C_m.
      noise_multipliers: one number, or a tree like ``clip_norms``; >= 0.

    Returns:
      Tree like ``clip_norms`` of ``float[]``.

    Raises:
      ValueError: if a Python number is out of range or the trees differ.

    Example:
      >>> noise_stddevs({"a": 3.0, "b": 4.0}, 2.0)
      {'a': Array(10., dtype=float32), 'b': Array(10., dtype=float32)}
      >>> noise_stddevs({"a": 3.0, "b": 4.0}, {"a": 2.0, "b": 0.5})
      {'a': Array(6., dtype=float32), 'b': Array(2., dtype=float32)}
    """
    clip_norms = grouping.numbers("clip_norms", clip_norms)
    multipliers = grouping.numbers("noise_multipliers", noise_multipliers, zero=True)
    if jax.tree.structure(multipliers) == jax.tree.structure(0):
        stddev = multipliers * _sensitivity(clip_norms)
        return jax.tree.map(lambda _: stddev, clip_norms)
    _same_tree("noise_multipliers", multipliers, clip_norms)
    return jax.tree.map(jnp.multiply, clip_norms, multipliers)


def joint_noise_multiplier(clip_norms, stddevs) -> jax.Array:
    """Returns the joint noise multiplier of groups with different bounds and noise.

    It is ``z* = (sum_m (C_m / sigma_m)^2)^(-1/2)``: for accounting, the joint release
    is a Gaussian mechanism with sensitivity 1 and standard deviation z*. C_m is the
    maximum change of the released group m by one row, before noise. Scaling the sum
    scales C_m; scaling the noise scales sigma_m. Both must be chosen independently of
    the private data.

    Args:
      clip_norms: number or tree of numbers, C_m >= 0.
      stddevs: tree like ``clip_norms``, sigma_m >= 0, in the units of C_m.

    Returns:
      ``float[]``; 0 if a group is released without noise, infinite if nothing is
      released (every C_m is 0).

    Raises:
      ValueError: if a Python number is negative or the trees differ.

    Example:
      >>> joint_noise_multiplier(1.0, 1.5)
      Array(1.5, dtype=float32)
      >>> joint_noise_multiplier([1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0])
      Array(1., dtype=float32)

    References:
      McMahan et al., A general approach to adding differential privacy to iterative
      training procedures, arXiv 1812.06210.
    """
    clip_norms = grouping.numbers("clip_norms", clip_norms, zero=True)
    stddevs = grouping.numbers("stddevs", stddevs, zero=True)
    _same_tree("stddevs", stddevs, clip_norms)

    def squared_ratio(clip_norm, stddev):
        # A group with bound 0 releases nothing, with or without noise.
        ratio = clip_norm / jnp.where(clip_norm == 0, 1, stddev)
        return jnp.square(ratio)

    ratios = jax.tree.map(squared_ratio, clip_norms, stddevs)
    return 1 / jnp.sqrt(_total(ratios))


def _sensitivity(clip_norms):
    squares = jax.tree.map(lambda c: jnp.square(jnp.asarray(c, float)), clip_norms)
    return jnp.sqrt(_total(squares))


def _total(tree):
    return functools.reduce(operator.add, jax.tree.leaves(tree))


def _same_tree(name, tree, clip_norms):
    got, wanted = jax.tree.structure(tree), jax.tree.structure(clip_norms)
    if got != wanted:
        raise ValueError(
            f"{name} must be one number or a tree like clip_norms, got {got} for "
            f"{wanted}."
        )
