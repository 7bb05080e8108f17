"""Sums that know how far one row can move them."""

import dataclasses
import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp

from jaxanon.kernels.clipping import groups as grouping


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["value", "clip_norms", "squared_weights"],
    meta_fields=["groups"],
)
@dataclasses.dataclass(frozen=True)
class BoundedSum:
    """A sum over rows, each of which moves it by no more than it says.

    A pytree, so that bounds may be traced and mapped over like any other array. Which
    also means that ``jax.tree.map`` reaches the bounds: to add the sums of
    microbatches, or of shards, add their ``value`` and ``squared_weights`` and keep the
    bounds of one; to make a mean, add the noise first and divide its result.

    Attributes:
      value: tree of ``float[...]``, the sum.
      clip_norms: tree of ``float[]``. One row moves the leaves of group m by at most
        ``clip_norms[m]`` in L2 norm, when it is added or removed; a row replaced by
        another moves them by twice that.
      squared_weights: ``float[]``, the sum of the squared weights of the rows: for
        an unweighted sum their number. Read by ``add_clients_noise_drawn_once`` alone,
        which refuses None.
      groups: for each leaf of ``value`` the place of its bound among the leaves of
        ``clip_norms``; None where ``clip_norms`` is a tree prefix of ``value``.

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
        """``float[]``: how far one row moves all leaves together, in L2 norm."""
        return _sensitivity(self.clip_norms)


def noise_stddevs(clip_norms, noise_multipliers):
    """The standard deviations of Gaussian noise that multipliers stand for.

    One number z is the multiplier of the whole: every group gets z times the joint
    sensitivity, ``z sqrt(sum C_m^2)``. A tree of numbers is read group by group:
    group m gets ``z_m C_m``, and the multiplier of the whole is less than each z_m
    (see ``joint_noise_multiplier``).

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
    """The one noise multiplier that groups with bounds and noises of their own equal.

    ``z* = (sum_m (C_m / sigma_m)^2)^(-1/2)``: to an accountant, the joint release is a
    Gaussian mechanism of sensitivity 1 and standard deviation z*. C_m is the most by
    which one row moves group m as it is released, before the noise; whatever scales
    the sum alone scales C_m, and whatever scales the noise scales sigma_m. Both must
    be chosen without a look at the private data.

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
        # Nothing is released of a group whose bound is 0, with noise or without.
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
