"""Checks and helpers for trees whose leaves have a leading clients axis."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import as_array, floating, tree_numeric
from jaxanon.kernels.precision import widened
from jaxanon.kernels.row_sums import along


def check(updates, vector, name):
    """Raises unless every leaf holds floats for as many clients as ``vector``."""
    tree_numeric(updates=updates)
    if vector.ndim != 1:
        raise ValueError(f"{name} must be [clients], got shape {vector.shape}.")
    for leaf in jax.tree.leaves(updates):
        if jnp.ndim(leaf) < 1 or len(leaf) != len(vector):
            raise ValueError(
                f"every leaf of updates must be [clients, ...] with {len(vector)} "
                f"clients as in {name}, got shape {jnp.shape(leaf)}."
            )
        floating(updates=leaf)


def present(updates, mask):
    """Returns ``mask``, by default all True, checked against the leaves."""
    leaves = jax.tree.leaves(updates)
    if not leaves:
        raise ValueError("updates must have at least one leaf, got none.")
    tree_numeric(updates=updates)
    if jnp.ndim(leaves[0]) < 1 or not len(leaves[0]):
        raise ValueError(
            "leaves of updates must be [clients, ...] with clients >= 1, got shape "
            f"{jnp.shape(leaves[0])}."
        )
    if mask is None:
        mask = jnp.ones(len(leaves[0]), bool)
    mask = as_array("mask", mask).astype(bool)
    check(updates, mask, "mask")
    return mask


def per_leaf(sent, updates, like):
    """Broadcasts a tree prefix to ``bool[clients]`` per leaf; None is all True."""
    if sent is None:
        sent = jnp.ones(len(like), bool)
    tree_numeric(sent=sent)
    spread = lambda one, part: jax.tree.map(lambda leaf: jnp.asarray(one, bool), part)
    try:
        spread_out = jax.tree.map(spread, sent, updates)
    except ValueError as error:
        got, wanted = jax.tree.structure(sent), jax.tree.structure(updates)
        raise ValueError(
            f"sent must be a tree prefix of updates, got {got} for {wanted}."
        ) from error
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
