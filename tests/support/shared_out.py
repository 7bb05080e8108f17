"""Algorithms whose rounds are divided among devices or chunks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon import federated, kernels


def square(w, x, key):
    return 0.5 * (w[:1] - x) ** 2 + w[:1] * jax.random.normal(key)


def averaging(size):
    return federated.fedavg(
        *(lambda key: jnp.zeros(2), square),
        steps=federated.Steps(num_steps=2, batch_size=2),
        cohort_size=size,
    )


def keeping(size):
    # Each client's head must return to its position.
    return federated.fedper(
        lambda key: {"base": jnp.zeros(2), "head": jnp.zeros(2)},
        lambda p, x, key: square(p["base"] + p["head"], x, key),
        steps=federated.Steps(num_steps=2, batch_size=2),
        personal_layers=("head",),
        num_clients=7,
        cohort_size=size,
    )


def meta(size):
    # In two more stages of a round, only an adversary trains.
    loss = lambda params, batch: 0.5 * jnp.mean((params["w"] - batch) ** 2)
    graded = lambda params, batch: (loss(params, batch), {"loss": loss(params, batch)})
    of = lambda name: lambda params, batch: graded(params[name], batch)

    inner = lambda params, batch: loss(params["model"], batch)

    def draw_fn(key, client, data):
        row = data.rows[client] + jax.random.normal(key)
        return row, row, jnp.sum(data.mask[client]).astype(float)

    return federated.fed_maml(
        lambda key: {"model": {"w": jnp.zeros(7)}, "adversary": {"w": jnp.zeros(7)}},
        draw_fn,
        lambda hyper: [kernels.Phase(("model",), inner, 0.5)],
        lambda hyper: [kernels.Objective((n,), of(n)) for n in ("model", "adversary")],
        hyper={"server_learning_rate": 0.1},
        server_optimizer=optax.adam(1.0),
        cohort_size_fn=lambda num_clients: size or num_clients,
        ema_decay=0.5,
        alone_fn=lambda hyper: kernels.Objective(("adversary",), of("adversary")),
        alone_rounds=2,
    )


def seven():
    """Returns clients with one to seven rows."""
    return federated.stack([np.arange(n + 1.0) for n in range(7)])


@functools.cache
def in_memory(make, size):
    """Returns ``(state, info)`` of three rounds in one program, as the reference."""
    algorithm = make(size)
    state = algorithm.init(jax.random.key(0))
    done = federated.simulate(algorithm, jax.random.key(1), state, seven(), 3)
    return jax.tree.map(np.asarray, done)
