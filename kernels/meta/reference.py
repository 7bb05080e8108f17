"""Reference implementation of Blinder's algorithm 1, lines 5-24, in plain loops."""

import functools

import jax
import jax.numpy as jnp


def meta_gradient(phases, objectives, params, support, query, weights, second_order):
    """Computes ``jaxanon.kernels.meta_gradient`` client by client."""
    num_clients = len(weights)
    total_weight = sum(weights)
    total_weight = jnp.where(total_weight > 0, total_weight, 1)
    results = []
    for i in range(num_clients):
        one = lambda tree, i=i: jax.tree.map(lambda leaf: leaf[i], tree)
        result = client(
            phases, objectives, params, one(support), one(query), second_order
        )
        fraction = weights[i] / total_weight
        results.append(jax.tree.map(lambda leaf, f=fraction: f * leaf, result))
    return functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), results)


def client(phases, objectives, params, support, query, second_order):
    """Computes one client's gradients and losses (lines 14-24)."""
    grads, infos = {}, []
    for objective in objectives:

        def meta_loss(moving, objective=objective):
            # Groups outside this objective keep the server's values.
            local = {**params, **moving}
            local = adapted(phases, local, support, second_order)
            return objective.loss_fn(local, query)

        moving = {name: params[name] for name in objective.groups}
        value, grad = jax.value_and_grad(meta_loss, has_aux=True)(moving)
        grads.update(grad)
        infos.append(value)
    return {name: grads[name] for name in params}, tuple(infos)


def adapted(phases, params, support, second_order):
    """Adapts the groups of each phase by gradient descent (lines 16-21)."""
    params = dict(params)
    for phase in phases:
        inputs = support
        if phase.inputs_fn is not None:
            inputs = jax.lax.stop_gradient(phase.inputs_fn(params, support))
        for _ in range(phase.num_steps):
            others = {k: v for k, v in params.items() if k not in phase.groups}
            others = jax.lax.stop_gradient(others)  # "with θ fixed", "with η fixed"

            def loss(moving, others=others, phase=phase, inputs=inputs):
                return phase.loss_fn({**others, **moving}, inputs)

            grads = jax.grad(loss)({name: params[name] for name in phase.groups})
            if not second_order:
                grads = jax.lax.stop_gradient(grads)
            for name in phase.groups:
                params[name] = jax.tree.map(
                    lambda p, g, phase=phase: p - phase.learning_rate * g,
                    params[name],
                    grads[name],
                )
    return params
