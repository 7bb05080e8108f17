"""Per-example gradients, as factors where a rule applies."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels import varying
from jaxanon.kernels.checks import is_key
from jaxanon.kernels.factored import program
from jaxanon.kernels.factored.api import is_factored_cheaper, materialize_gradient
from jaxanon.kernels.factored.kernel import Factors
from jaxanon.kernels.factored.products import Use, View, joined


class Plan(NamedTuple):
    """Traced loss of one example, and the products of each leaf."""

    jaxpr: Any  # closed
    uses: tuple[tuple[Use, ...], ...]  # products per leaf; empty without a rule


class Gradient(NamedTuple):
    """Gradients of one leaf for all examples."""

    value: Factors | jax.Array  # float[B, ...]; for the matrix view or for the leaf
    view: View | None


def plan(loss_fn, leaves, treedef, batch) -> Plan:
    """Traces the loss of one example and finds the uses of each leaf."""

    def one(leaves, example):
        losses = loss_fn(treedef.unflatten(leaves), example)
        if jnp.shape(losses) != (1,):
            raise ValueError(
                "loss_fn must return float[B], one loss per example, got shape "
                f"{jnp.shape(losses)} for a batch of one; do not average examples."
            )
        return losses[0]

    zero = varying.zero(leaves, batch)

    def alone(x):
        shape = 1, *x.shape[1:]
        if is_key(x):
            return jax.ShapeDtypeStruct(shape, x.dtype)
        return jnp.broadcast_to(zero.astype(x.dtype), shape)

    jaxpr = jax.make_jaxpr(one)(leaves, jax.tree.map(alone, batch))
    found = program.find(jaxpr.jaxpr, leaves)
    return Plan(jaxpr, tuple(_known(found, number) for number in range(len(leaves))))


def _known(found, number) -> tuple[Use, ...]:
    """Returns the uses of a leaf; empty if one has no rule or another view."""
    uses = tuple(
        use for use in found.uses if use.alias.leaf == number and not use.alias.fixed
    )
    views = {frozenset(use.view) for use in uses}
    return uses if len(views) == 1 and number not in found.others else ()


def losses_and_gradients(plan: Plan, leaves, batch) -> tuple[jax.Array, list[Gradient]]:
    """Returns losses ``float[B]`` and the ``Gradient`` of each leaf in one pass."""
    uses = {use.path: use for mine in plan.uses for use in mine}
    zero = varying.zero(leaves, batch)
    dense = {
        number: leaf for number, leaf in enumerate(leaves) if not plan.uses[number]
    }

    def one(example):
        rows = [x[None] for x in jax.tree.leaves(example)]

        def loss(taps, dense):
            known = [dense.get(number, leaf) for number, leaf in enumerate(leaves)]
            jaxpr, consts = plan.jaxpr.jaxpr, plan.jaxpr.consts
            return program.run(jaxpr, consts, [*known, *rows], uses, taps)[0]

        taps = {path: use.tap(zero) for path, use in uses.items()}
        value, (caught, dense_grads) = jax.value_and_grad(loss, (0, 1))(taps, dense)
        grads = [
            joined(mine, caught) if mine else dense_grads[number]
            for number, mine in enumerate(plan.uses)
        ]
        return value, grads

    losses, values = jax.vmap(one)(batch)
    views = [mine[0].view if mine else None for mine in plan.uses]
    return losses, [
        Gradient(_settled(value), view)
        for value, view in zip(values, views, strict=True)
    ]


def _settled(value):
    """Multiplies gradients out if that makes them smaller."""
    if not isinstance(value, Factors):
        return value
    rows, d_in = value.inputs.shape[1:]
    if is_factored_cheaper(rows, d_in, value.cotangents.shape[-1]):
        return value
    return materialize_gradient(value)
