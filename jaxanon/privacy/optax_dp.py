"""Clipped gradients and noise for training loops of Optax."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon import kernels
from jaxanon.kernels.checks import typed_key, whole


def clipped_grad(
    loss_fn,
    clip_norms,
    *,
    has_aux: bool = False,
    argnums: int | tuple[int, ...] = 0,
    groups=None,
    microbatch_size: int | None = None,
    axis_name=None,
):
    """Returns a function like ``jax.grad`` that sums clipped per-example gradients.

    ``clipped_grad(loss_fn, clip_norms)(params, batch)`` is the sum over the batch, for
    ``dp_aggregate``. Per-example gradients are mostly not computed; see
    ``kernels.clipped_gradient_sum`` for the layers and for the losses that it supports.

    Args:
      loss_fn: ``(params, batch) -> float[B]``, one loss per example, which depends on
        that example only. It may have further positional arguments before ``batch``.
      clip_norms: one number, a tree prefix of the parameters, or a dict by group.
      has_aux: whether ``loss_fn`` returns ``(losses, aux)``. It costs another forward
        pass over the whole batch. ``aux`` has no guarantee.
      argnums: positions of the arguments to differentiate. For a tuple, the sum has a
        tuple of trees, and one clip norm bounds all of them together.
      groups: see ``kernels.clipped_gradient_sum``.
      microbatch_size: examples per part, an int >= 1. Parts run in sequence, which
        bounds the memory. None is one part.
      axis_name: mesh axes over which sums are added, in ``shard_map`` or ``vmap``.

    Returns:
      ``(*args) -> BoundedSum``, or ``(BoundedSum, aux)``, where the last of ``args`` is
      the batch, a tree of arrays ``[B, ...]``.

    Raises:
      ValueError: for a ``microbatch_size`` below 1. From the function, under the
        conditions of ``kernels.clipped_gradient_sum``.

    Example:
      >>> loss_fn = lambda w, x: x @ w  # The gradient of each example is x.
      >>> x = jnp.array([[3.0, 4.0], [0.0, 2.0]])
      >>> clipped_grad(loss_fn, 2.5)(jnp.ones(2), x).value
      Array([1.5, 4. ], dtype=float32)

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1.
    """
    if microbatch_size is not None:
        microbatch_size = whole("microbatch_size", microbatch_size, least=1)
    several = isinstance(argnums, tuple)
    places = argnums if several else (argnums,)

    def of_batch(*args):
        *others, batch = args
        chosen = tuple(others[place] for place in places)
        params = chosen if several else chosen[0]

        def losses_of(params, batch):
            given = list(others)
            for place, tree in zip(
                places, params if several else (params,), strict=True
            ):
                given[place] = tree
            losses = loss_fn(*given, batch)
            return losses[0] if has_aux else losses

        def sum_of(batch, mask):
            return kernels.clipped_gradient_sum(
                losses_of, params, batch, clip_norms, groups=groups, mask=mask
            )[0]

        total = _in_parts(sum_of, batch, microbatch_size)
        if axis_name is not None:
            value, count = jax.lax.psum((total.value, total.squared_weights), axis_name)
            total = kernels.BoundedSum(value, total.clip_norms, count, total.groups)
        return (total, loss_fn(*args)[1]) if has_aux else total

    return of_batch


def _in_parts(sum_of, batch, size):
    """Adds the sums over parts of a batch, the last one padded by its last row."""
    num = len(jax.tree.leaves(batch)[0])
    if size is None or size >= num:
        return sum_of(batch, None)
    rows = jnp.arange(-(-num // size) * size).reshape(-1, size)
    split = lambda leaf: jnp.asarray(leaf)[jnp.minimum(rows, num - 1)]
    inputs = jax.tree.map(split, batch), rows < num
    first = sum_of(*jax.tree.map(lambda leaf: leaf[0], inputs))

    def add(carry, part):
        found = sum_of(*part)
        new = found.value, found.squared_weights
        return jax.tree.map(jnp.add, carry, new), None

    start = first.value, first.squared_weights
    rest = jax.tree.map(lambda leaf: leaf[1:], inputs)
    (value, count), _ = jax.lax.scan(add, start, rest)
    return kernels.BoundedSum(value, first.clip_norms, count, first.groups)


class DPAggregateState(NamedTuple):
    """State of ``dp_aggregate``."""

    count: jax.Array  # int32[]; completed steps


def dp_aggregate(
    key, noise_multipliers, batch_size: float
) -> optax.GradientTransformation:
    """Returns an Optax transformation that makes a clipped sum private.

    It replaces ``optax.contrib.differentially_private_aggregate``, and takes the result
    of ``clipped_grad`` instead of per-example gradients. Chain it before an optimizer:
    ``optax.chain(dp_aggregate(key, 1.0, 64), optax.adam(1e-3))``.

    Args:
      key: typed PRNG key of the whole training; a step uses ``fold_in(key, step)``. The
        state does not hold it. A run that resumes must get the same key and the state.
      noise_multipliers: z >= 0, see ``kernels.add_noise_to_sum``; 0 adds no noise and
        gives no guarantee. ``SampledGaussian`` accounts for it if batches are Poisson
        samples; account for shuffled batches of fixed size with a sampling rate of 1.
      batch_size: public divisor > 0 of the sum, the expected batch size.

    Returns:
      ``optax.GradientTransformation`` from a ``BoundedSum`` to a noisy mean gradient.

    Raises:
      TypeError: for a key that is not typed. From ``update``, for a gradient that is
        not a ``BoundedSum``.
      ValueError: for a ``batch_size`` that is not > 0.

    Example:
      >>> total = clipped_grad(lambda w, x: x @ w, 2.5)(jnp.ones(2), 4 * jnp.eye(2))
      >>> private = dp_aggregate(jax.random.key(0), 0.0, batch_size=2)
      >>> private.update(total, private.init(jnp.ones(2)))[0]
      Array([1.25, 1.25], dtype=float32)

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1.
    """
    typed_key(key)
    if not batch_size > 0:
        raise ValueError(
            f"batch_size must be > 0, got {batch_size!r}; pass the expected number of "
            "examples in a batch."
        )

    def init(params) -> DPAggregateState:
        del params
        return DPAggregateState(jnp.zeros((), jnp.int32))

    def update(updates, state, params=None) -> tuple[Any, DPAggregateState]:
        del params
        step_key = jax.random.fold_in(key, state.count)
        noisy = kernels.add_noise_to_sum(step_key, updates, noise_multipliers)
        mean = jax.tree.map(lambda g: g / batch_size, noisy)
        return mean, DPAggregateState(state.count + 1)

    return optax.GradientTransformation(init, update)
