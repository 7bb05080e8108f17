"""The meta-gradient of a cohort, with nobody's weights copied where that pays."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels import factored, varying
from jaxanon.kernels.checks import is_key, not_traced, one_of, whole
from jaxanon.kernels.meta import checks


class Phase(NamedTuple):
    """One part of a client's inner loop: which groups move, and on which loss.

    The other groups are constants meanwhile, for the outer derivative too.

    ``inputs_fn(params, batch) -> inputs`` is computed once, from the parameters as the
    phase finds them, and is not differentiated (shadow samples and detached latents are
    made here); without it the loss sees the support batch itself.
    """

    groups: tuple[str, ...]  # top-level names of ``params``
    loss_fn: Callable  # (params, inputs) -> float[]
    learning_rate: Any  # float or float[]; 0 is allowed
    num_steps: int = 1  # a Python int >= 0
    inputs_fn: Callable | None = None


class Objective(NamedTuple):
    """What the groups are graded by on the query set, once adapted.

    Their gradient is the total derivative of ``loss_fn`` through every phase, with all
    other groups held fixed from the start.
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
    """The weighted mean over clients of the gradient of their adapted losses.

    Each client starts from ``params``, runs the phases in order on its support batch,
    and is graded on its query batch. The three implementations compute the same number:
    ``"factored"`` keeps every client's change of a dense layer as thin factors,
    ``"materialised"`` gives each client a private copy of the weights, ``"reference"``
    does so in plain loops over clients and steps.

    Args:
      phases: sequence of ``Phase``.
      objectives: sequence of ``Objective`` whose groups together are the keys of
        ``params``, each once.
      params: dict of group name to tree of arrays.
      support: tree of arrays ``[clients, ...]``, one batch per client.
      query: the same, for grading. Rows are masked by the losses, which see them.
      weights: ``float[clients]``, not negative; 0 for a padded client, whatever its
        rows hold, NaN included. They are divided by their sum; if that is 0 the result
        is 0.
      second_order: differentiate the inner steps too; ``False`` is first-order MAML.
      implementation: ``"factored"``, ``"materialised"`` or ``"reference"``; ``None`` is
        ``"factored"``.
      chunk: clients computed side by side; the rest wait their turn, so memory does
        not grow with the cohort. ``None``: all at once. Changes no result beyond
        rounding. Not used by the reference.

    Returns:
      ``(grads, infos)``: the tree of ``params``, and for each objective its weighted
      mean ``(loss, info)``. In ``shard_map`` those of the shard's own clients: weigh
      them by its sum of weights, and add.

    Raises:
      TypeError: if groups are a string and no tuple of strings, or ``num_steps`` or
        ``chunk`` is no Python int, or what is static is traced.
      ValueError: if an objective or a phase names an unknown group, if the objectives
        do not cover each group exactly once, if a batch has not one entry for each
        weight, for an unknown implementation, or for a chunk below 1.

    Example:
      One client, loss ``w²/2`` inside and outside, step 0.5: adapted ``w/2``, and the
      total derivative is ``w/4``.

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
    """Batches in which whoever has weight 0 shows the rows of a client that counts.

    What their own rows give may be NaN, and 0 times NaN is NaN. Keys stay their own.
    """

    def one(leaf, other):
        if other is None:
            return leaf
        counts = (weights > 0).reshape(-1, *[1] * (leaf.ndim - 1))
        return jnp.where(counts, leaf, other[None])

    leaves, treedef = jax.tree.flatten((support, query))
    return treedef.unflatten(map(one, leaves, first))


def adapt(phases, params, support, *, second_order=True, factor=True):
    """One client's inner loop: the parameters after all phases on ``support``.

    Args:
      phases: sequence of ``Phase``.
      params: dict of group name to tree of arrays.
      support: one client's batch.
      second_order: keep the steps differentiable; else their gradients are constants.
      factor: keep changes of dense layers as factors (``jaxanon.kernels.materialize``
        multiplies them out).

    Returns:
      The dict of adapted parameters.

    Raises:
      TypeError: if the groups of a phase are a string, or ``num_steps`` is no Python
        int.
      ValueError: if a phase names a group that ``params`` lacks.

    Example:
      >>> params = {"net": {"w": jnp.array([1.0])}}
      >>> loss = lambda params, batch: jnp.sum(params["net"]["w"] * batch)
      >>> phases = [Phase(("net",), loss, 0.5, num_steps=2)]
      >>> adapt(phases, params, jnp.array([3.0]))["net"]["w"]
      Array([-2.], dtype=float32)
    """
    checks.moving_groups(phases, params)
    not_traced("second_order", second_order)
    value_and_grad = factored.value_and_grad if factor else jax.value_and_grad
    params = dict(params)
    for phase in phases:
        inputs = support
        if phase.inputs_fn is not None:
            inputs = jax.lax.stop_gradient(phase.inputs_fn(params, support))
        for _ in range(phase.num_steps):
            moving, resting = split(params, phase.groups)
            resting = jax.lax.stop_gradient(resting)
            loss = lambda moving, p=phase, r=resting, i=inputs: p.loss_fn(r | moving, i)
            _, grads = value_and_grad(loss)(moving)
            if not second_order:
                grads = jax.lax.stop_gradient(grads)
            params |= factored.sgd_step(moving, grads, phase.learning_rate)
    return params


def split(params, groups):
    """``params`` as ``(those in groups, the others)``."""
    moving = {name: params[name] for name in groups}
    return moving, {name: tree for name, tree in params.items() if name not in groups}


def _shared(phases, objectives, params, support, query, weights, second_order):
    """Differentiates the mean, so all clients share each product with a matrix."""
    grads, infos = {}, []
    for objective in objectives:
        moving, resting = split(params, objective.groups)

        def mean_loss(moving, objective=objective, resting=resting):
            def one(support, query):
                adapted = adapt(
                    phases, resting | moving, support, second_order=second_order
                )
                loss, info = objective.loss_fn(adapted, query)
                return loss, info

            losses, infos = jax.vmap(one)(support, query)
            mean = lambda leaf: jnp.tensordot(weights, leaf, axes=1)
            return mean(losses), jax.tree.map(mean, infos)

        value, grad = jax.value_and_grad(mean_loss, has_aux=True)(moving)
        grads |= grad
        infos.append(value)
    return {name: grads[name] for name in params}, tuple(infos)


def _private(phases, objectives, params, support, query, weights, second_order):
    """Gives every client its own weights and its own gradient, and averages those."""

    def one(support, query):
        return client_gradient(phases, objectives, params, support, query, second_order)

    mean = lambda leaf: jnp.tensordot(weights, leaf, axes=1)
    return jax.tree.map(mean, jax.vmap(one)(support, query))


def client_gradient(phases, objectives, params, support, query, second_order):
    """One client's gradients and infos, on weights of its own."""
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
    """``fn`` summed over chunks of clients; padded clients have weight 0."""
    num = jax.tree.leaves(clients)[0].shape[0]
    if chunk is None or chunk >= num:
        return fn(*clients)
    steps = -(-num // chunk)

    def stack(leaf):
        short = steps * chunk - num
        # The last client is repeated, not zeros: any finite row will do at weight 0.
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
