"""Argument checks of meta-gradients."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import whole


def all_groups(phases, objectives, params) -> None:
    """Raises unless every group is known and in exactly one objective."""
    moving_groups(phases, params)
    graded = sorted(
        group for each in objectives for group in _names("an objective", each)
    )
    if graded != sorted(params):
        raise ValueError(
            "objectives must cover each group of params exactly once, "
            f"{sorted(params)}, got {graded}."
        )


def moving_groups(phases, params) -> None:
    """Raises unless every group of a phase is known and every count is an integer."""
    for phase in phases:
        whole("num_steps", phase.num_steps, least=0)
        for group in _names("a phase", phase):
            if group not in params:
                raise ValueError(
                    f"groups of a phase must be in params, {sorted(params)}, got "
                    f"{group!r}."
                )


def _names(owner, holder):
    if isinstance(holder.groups, str):
        raise TypeError(
            f"groups of {owner} must be a tuple of names, got {holder.groups!r}; "
            f"write ({holder.groups!r},)."
        )
    return holder.groups


def clients(weights, support, query) -> None:
    """Raises unless weights and batches have one entry per client."""
    if jnp.ndim(weights) != 1:
        raise ValueError(
            f"weights must be float[clients], got shape {jnp.shape(weights)}."
        )
    for name, batch in (("support", support), ("query", query)):
        for leaf in jax.tree.leaves(batch):
            if jnp.shape(leaf)[:1] != jnp.shape(weights):
                raise ValueError(
                    f"every array of {name} must be [clients, ...] with "
                    f"{len(weights)} clients as in weights, got shape "
                    f"{jnp.shape(leaf)}."
                )
