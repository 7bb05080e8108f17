"""Meta-gradients of a cohort, with shared weights and factored client changes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels import factored, varying
from jaxanon.kernels.checks import is_key, not_traced, one_of, whole
from jaxanon.kernels.meta import checks


class Phase(NamedTuple):
    """One phase of a client's inner loop: the groups to train and their loss.

    The other groups are constants in this phase, also for the outer derivative.

    ``inputs_fn(params, batch) -> inputs`` is computed once at the start of the phase
    and is not differentiated, for example for shadow samples or detached latents.
    Without it the loss receives the support batch.
    """

    groups: tuple[str, ...]  # top-level names of ``params``
    loss_fn: Callable  # (params, inputs) -> float[]
    learning_rate: Any  # float or float[]; 0 is allowed
    num_steps: int = 1  # a Python int >= 0
    inputs_fn: Callable | None = None


class Objective(NamedTuple):
    """Query loss of some groups after adaptation.

    Their gradient is the total derivative of ``loss_fn`` through every phase, with the
    initial values of all other groups held constant.
    """

    groups: tuple[str, ...]  # top-level names of ``params``
    loss_fn: Callable  # (params, batch) -> (float[], info)


IMPLEMENTATIONS = ("factored", "materialised", "reference")


def meta_gradient(
    phases,
    objectives,
    params,
    support,
    query,
    weights,
    *,
    second_order: bool = True,
    implementation: str | None = None,
    chunk: int | None = None,
):
    """Computes the weighted mean over clients of their meta-gradients.

    Each client starts from ``params``, runs the phases in order on its support batch
    and is evaluated on its query batch. The implementations compute the same result.
    ``"factored"`` stores each client's change of a dense layer as thin factors.
    ``"materialised"`` gives each client a private copy of the weights. ``"reference"``
    uses plain loops over clients and steps.

    Args:
      phases: sequence of ``Phase``.
      objectives: sequence of ``Objective`` whose groups cover the keys of ``params``
        exactly once.
      params: dict of group name to tree of arrays.
      support: tree of arrays ``[clients, ...]``, one batch per client.
      query: tree of arrays ``[clients, ...]`` for evaluation. The losses must mask
        padded rows.
      weights: ``float[clients]``, >= 0, normalised by their sum. Use 0 for padded
        clients, which may contain NaN. If the sum is 0, the result is 0.
      second_order: whether to differentiate through the inner steps. False is
        first-order MAML.
      implementation: ``"factored"``, ``"materialised"`` or ``"reference"``. None is
        ``"factored"``.
      chunk: number of clients computed at a time, which bounds memory. None computes
        all at once. The result is the same up to rounding. The reference ignores it.

    Returns:
      ``(grads, infos)``: gradients with the tree of ``params``, and the weighted mean
      ``(loss, info)`` per objective. In ``shard_map`` they cover the shard's clients:
      weight them by the shard's sum of weights and add.

    Raises:
      TypeError: if groups are a string instead of a tuple, ``num_steps`` or ``chunk``
        is not a Python int, or a static argument is traced.
      ValueError: if a group is unknown, the objectives do not cover each group exactly
        once, a batch does not have one entry per weight, the implementation is unknown,
        or ``chunk`` is below 1.

    Example:
      One client with loss ``w²/2`` in both loops and learning rate 0.5: it adapts to
      ``w/2``, and the total derivative is ``w/4``.

      >>> loss = lambda params, batch: params["net"]["w"] ** 2 / 2
      >>> graded = lambda params, batch: (loss(params, batch), {})
      >>> grads, _ = meta_gradient(
      ...     [Phase(("net",), loss, 0.5)], [Objective(("net",), graded)],
      ...     {"net": {"w": jnp.array(8.0)}}, jnp.zeros(1), jnp.zeros(1), jnp.ones(1))
      >>> grads["net"]["w"]
      Array(2., dtype=float32)

    References:
      Finn et al., Model-Agnostic Meta-Learning, ICML 2017; Yang and Ardakanian,
      Blinder, ACM TOSN 2023, Algorithm 1, lines 14-24.
    """
    checks.all_groups(phases, objectives, params)
    weights = jnp.asarray(weights)
    checks.clients(weights, support, query)
    not_traced("second_order", second_order)
    implementation = "factored" if implementation is None else implementation
    one_of("implementation", implementation, IMPLEMENTATIONS)
    if chunk is not None:
        chunk = whole("chunk", chunk, least=1)
    params = varying.spread(params, support, query, weights)
    total = jnp.sum(weights)
    weights = weights / jnp.where(total > 0, total, 1)
    first = jnp.argmax(weights > 0)
    pick = lambda leaf: None if is_key(leaf) else leaf[first]
    first = [pick(leaf) for leaf in jax.tree.leaves((support, query))]

    def one_chunk(support, query, weights):
        support, query = _stand_in(support, query, weights, first)
        gradient = _shared if implementation == "factored" else _private
        if implementation == "reference":
            from jaxanon.kernels.meta import reference

            gradient = reference.meta_gradient
        return gradient(
            phases, objectives, params, support, query, weights, second_order
        )

    chunk = None if implementation == "reference" else chunk
    result = _in_chunks(one_chunk, (support, query, weights), chunk)
    return jax.tree.map(lambda leaf: jnp.where(total > 0, leaf, 0), result)


def _stand_in(support, query, weights, first):
    """Replaces the rows of clients with weight 0 by those of a client that counts.

    Their own rows may give NaN, and 0 times NaN is NaN. Keys are not replaced.
    """

    def one(leaf, other):
        if other is None:
            return leaf
        counts = (weights > 0).reshape(-1, *[1] * (leaf.ndim - 1))
        return jnp.where(counts, leaf, other[None])

    leaves, treedef = jax.tree.flatten((support, query))
    return treedef.unflatten(map(one, leaves, first))


def adapt(phases, params, support, *, second_order=True, factor=True):
    """Runs one client's inner loop on ``support``.

    Args:
      phases: sequence of ``Phase``.
      params: dict of group name to tree of arrays.
      support: one client's batch.
      second_order: whether gradients of the steps are differentiable or constants.
      factor: whether to keep changes of dense layers as factors. Multiply them out
        with ``jaxanon.kernels.materialize``.

    Returns:
      The dict of adapted parameters.

    Raises:
      TypeError: if the groups of a phase are a string, or ``num_steps`` is not a Python
        int.
      ValueError: if a phase has a group that is not in ``params``.

    Example:
      >>> params = {"net": {"w": jnp.array([1.0])}}
      >>> loss = lambda params, batch: jnp.sum(params["net"]["w"] * batch)
      >>> phases = [Phase(("net",), loss, 0.5, num_steps=2)]
      >>> adapt(phases, params, jnp.array([3.0]))["net"]["w"]
      Array([-2.], dtype=float32)
    """
    checks.moving_groups(phases, params)
    not_traced("second_order", second_order)
    params = dict(params)
    for phase in phases:
        inputs = support
        if phase.inputs_fn is not None:
            inputs = factored.apply_factored(phase.inputs_fn, params, support)
            inputs = jax.lax.stop_gradient(inputs)
        loss = lambda moving, resting, p=phase, i=inputs: p.loss_fn(resting | moving, i)
        moving, resting = split(params, phase.groups)
        params |= factored.sgd_steps(
            loss,
            moving,
            jax.lax.stop_gradient(resting),
            learning_rate=phase.learning_rate,
            num_steps=phase.num_steps,
            second_order=second_order,
            factor=factor,
        )
    return params


def split(params, groups):
    """Splits ``params`` into those in ``groups`` and the others."""
    moving = {name: params[name] for name in groups}
    return moving, {name: tree for name, tree in params.items() if name not in groups}


def _shared(phases, objectives, params, support, query, weights, second_order):
    """Differentiates the mean, so that clients share each matrix product."""
    grads, infos = {}, []
    for objective in objectives:
        moving, resting = split(params, objective.groups)

        def mean_loss(moving, objective=objective, resting=resting):
            def one(support, query):
                adapted = adapt(
                    phases, resting | moving, support, second_order=second_order
                )
                return factored.apply_factored(objective.loss_fn, adapted, query)

            losses, infos = jax.vmap(one)(support, query)
            mean = lambda leaf: jnp.tensordot(weights, leaf, axes=1)
            return mean(losses), jax.tree.map(mean, infos)

        value, grad = jax.value_and_grad(mean_loss, has_aux=True)(moving)
        grads |= grad
        infos.append(value)
    return {name: grads[name] for name in params}, tuple(infos)


def _private(phases, objectives, params, support, query, weights, second_order):
    """Averages the gradients of clients with private weights."""

    def one(support, query):
        return client_gradient(phases, objectives, params, support, query, second_order)

    mean = lambda leaf: jnp.tensordot(weights, leaf, axes=1)
    return jax.tree.map(mean, jax.vmap(one)(support, query))


def client_gradient(phases, objectives, params, support, query, second_order):
    """Computes one client's gradients and infos on private weights."""
    grads, infos = {}, []
    for objective in objectives:
        moving, resting = split(params, objective.groups)

        def loss(moving, objective=objective, resting=resting):
            adapted = adapt(
                phases,
                resting | moving,
                support,
                second_order=second_order,
                factor=False,
            )
            return objective.loss_fn(adapted, query)

        value, grad = jax.value_and_grad(loss, has_aux=True)(moving)
        grads |= grad
        infos.append(value)
    return {name: grads[name] for name in params}, tuple(infos)


def _in_chunks(fn, clients, chunk):
    """Sums ``fn`` over chunks of clients; padded clients have weight 0."""
    num = jax.tree.leaves(clients)[0].shape[0]
    if chunk is None or chunk >= num:
        return fn(*clients)
    steps = -(-num // chunk)

    def stack(leaf):
        short = steps * chunk - num
        # Pads with the last client instead of zeros, to keep values finite.
        repeated = jnp.repeat(leaf[-1:], short, axis=0)
        return jnp.concatenate([leaf, repeated]).reshape(steps, chunk, *leaf.shape[1:])

    *batches, weights = jax.tree.map(stack, clients)
    padded = (jnp.arange(steps * chunk) >= num).reshape(steps, chunk)
    batches = (*batches, jnp.where(padded, 0, weights))
    first = jax.tree.map(lambda leaf: leaf[0], batches)
    like, zero = jax.eval_shape(fn, *first), varying.zero(batches)
    zero = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype) + zero.astype(leaf.dtype), like
    )
    add = lambda total, batch: (jax.tree.map(jnp.add, total, fn(*batch)), None)
    return jax.lax.scan(add, zero, batches)[0]
