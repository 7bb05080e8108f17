"""Per-layer clipping: groups of leaves that share a clip norm, and checks of them."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import known, not_negative, positive, tree_numeric


def checked_rows(rows):
    """Returns the tree as arrays, checked to be ``float[N, ...]`` with one N."""
    tree_numeric(rows=rows)
    rows = jax.tree.map(jnp.asarray, rows)
    leaves = jax.tree.leaves(rows)
    if not leaves:
        raise ValueError("rows must have at least one leaf, got an empty tree.")
    for leaf in leaves:
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            raise TypeError(
                f"rows must be real floating point, got a leaf of dtype {leaf.dtype}; "
                "convert it with astype."
            )
    if any(leaf.ndim == 0 for leaf in leaves) or len({len(x) for x in leaves}) > 1:
        shapes = [leaf.shape for leaf in leaves]
        raise ValueError(
            f"rows must have leaves float[N, ...] with one N, got shapes {shapes}; "
            "stack the examples or clients along a leading axis."
        )
    return rows


def numbers(name, tree, *, zero=False, at_most=float("inf")):
    """Returns the tree with ``float[]`` leaves; numbers on the host are checked."""

    def number(value):
        if isinstance(value, str):  # NumPy would convert it.
            raise TypeError(f"{name} must be a number, got {value!r}.")
        (not_negative if zero else positive)(**{name: value})
        on_host = known(value)
        if on_host is not None and on_host > at_most:
            raise ValueError(f"{name} must be <= {at_most}, got {value!r}.")
        if jnp.shape(value) != ():
            raise ValueError(
                f"{name} must be one number per group, got shape {jnp.shape(value)}; "
                "use jax.vmap to map over several."
            )
        return jnp.asarray(value, jnp.result_type(float))

    if not jax.tree.leaves(tree):
        raise ValueError(f"{name} must hold at least one number, got {tree!r}.")
    return jax.tree.map(number, tree)


def group_of_leaves(tree, clip_norms, groups=None) -> tuple[int, ...]:
    """Returns for each leaf of ``tree`` the index of its bound in ``clip_norms``."""
    if groups is None:
        bounds, treedef = jax.tree.flatten(clip_norms)
        labels = treedef.unflatten(range(len(bounds)))
        return _spread("clip_norms", labels, tree)
    if not isinstance(clip_norms, dict):
        raise TypeError(
            "clip_norms must be a dict from label to number if groups is given, got "
            f"{clip_norms!r}."
        )
    labels = _spread("groups", groups, tree)
    if set(labels) != set(clip_norms):
        raise ValueError(
            "clip_norms must have one number for each label in groups, got labels "
            f"{sorted(set(labels))} and numbers for {sorted(clip_norms)}."
        )
    order = sorted(clip_norms)  # JAX's order of the leaves of a dict.
    return tuple(order.index(label) for label in labels)


def _spread(name, prefix, tree):
    """Returns the leaf of ``prefix`` above each leaf of ``tree``, in leaf order."""
    try:
        above = jax.tree.map(
            lambda value, below: [value] * len(jax.tree.leaves(below)), prefix, tree
        )
    except ValueError as error:
        got, wanted = jax.tree.structure(prefix), jax.tree.structure(tree)
        raise ValueError(
            f"{name} must be a tree prefix of the rows, got {got} for {wanted}."
        ) from error
    return tuple(jax.tree.leaves(above))
