"""The public function: what it takes, what it promises, what it refuses."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.ghost import clip, examples


class ExampleInfo(NamedTuple):
    """What the clipped sum saw of every example; private, as the examples are."""

    losses: jax.Array  # float[B], 0 where masked
    norms: object  # tree of ``max_norms`` with float[B], before clipping


def clipped_gradient_sum(loss_fn, params, batch, max_norms, *, mask=None):
    """TODO."""
    leaves, treedef = jax.tree.flatten(params)
    bounds, bound_tree = jax.tree.flatten(max_norms)
    groups = jax.tree.leaves(jax.tree.broadcast(bound_tree.unflatten(range(len(bounds))), params))
    batch = jax.tree.map(jnp.asarray, batch)
    size = jax.tree.leaves(batch)[0].shape[0]
    plan = examples.plan(loss_fn, leaves, treedef, batch)
    losses, grads = examples.losses_and_gradients(plan, leaves, batch)
    squares = [clip.squared_norms(g) for g in grads]
    norms = [jnp.sqrt(sum(s for s, g in zip(squares, groups) if g == k)) for k in range(len(bounds))]
    real = jnp.ones(size, bool) if mask is None else mask
    weights = [jnp.where(real & jnp.isfinite(n), jnp.where(n > c, c / n, 1.), 0.) for n, c in zip(norms, bounds)]
    total = [clip.clipped_sum(g, weights[k], l.shape) for g, k, l in zip(grads, groups, leaves)]
    return treedef.unflatten(total), ExampleInfo(losses, bound_tree.unflatten(norms))
