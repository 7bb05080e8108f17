"""Checks and helpers for trees whose leaves have a leading clients axis."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import floating
from jaxanon.kernels.precision import widened
from jaxanon.kernels.row_sums import along


def check(updates, vector, name):
    """Raises unless every leaf holds floats for as many clients as ``vector``."""
    if vector.ndim != 1:
        raise ValueError(f"{name} must be [clients], got shape {vector.shape}.")
    for leaf in jax.tree.leaves(updates):
        if leaf.ndim < 1 or len(leaf) != len(vector):
            raise ValueError(
                f"every leaf of updates must be [clients, ...] with {len(vector)} "
                f"clients as in {name}, got shape {leaf.shape}."
            )
        floating(updates=leaf)


def present(updates, mask):
    """Returns ``mask``, by default all True, checked against the leaves."""
    leaves = jax.tree.leaves(updates)
    if not leaves:
        raise ValueError("updates must have at least one leaf, got none.")
    if mask is None:
        if leaves[0].ndim < 1:
            raise ValueError("leaves of updates must be [clients, ...], got a scalar.")
        mask = jnp.ones(len(leaves[0]), bool)
    mask = jnp.asarray(mask, bool)
    check(updates, mask, "mask")
    return mask


def per_leaf(sent, updates, like):
    """Broadcasts a tree prefix to ``bool[clients]`` per leaf; None is all True."""
    if sent is None:
        sent = jnp.ones(len(like), bool)
    spread = lambda one, part: jax.tree.map(lambda leaf: jnp.asarray(one, bool), part)
    spread_out = jax.tree.map(spread, sent, updates)
    for one in jax.tree.leaves(spread_out):
        if one.shape != like.shape:
            raise ValueError(
                f"sent must hold bool[{len(like)}], one per client, got shape "
                f"{one.shape}."
            )
    return spread_out


def absent_infinite(leaf, mask):
    """Replaces values of absent clients and NaN by infinity, in at least float32.

    Infinity sorts after all other values, so it is not counted or can be trimmed.
    """
    values = widened(leaf)
    counted = along(mask, leaf) & ~jnp.isnan(values)
    return jnp.where(counted, values, jnp.inf)
