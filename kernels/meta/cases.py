"""A small adversarial problem with two groups, shared by tests and examples."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.factored.kernel import matmul
from jaxanon.kernels.meta.api import Objective, Phase


class Problem(NamedTuple):
    """Arguments of ``meta_gradient``; ``joint`` evaluates all groups in one pass."""

    phases: tuple
    objectives: tuple
    joint: tuple
    params: dict
    support: dict
    query: dict
    weights: jax.Array


def adversarial(
    key, *, clients=4, support=1, query=3, width=12, num_steps=2, local_steps=1
) -> Problem:
    """Returns an autoencoder that hides a label from a discriminator.

    The inner learning rate of 0.1 makes second-order terms clearly visible.
    """
    keys = jax.random.split(key, 9)
    normal = lambda i, *shape: jax.random.normal(keys[i], shape)
    params = {
        "encoder": {"in": 0.3 * normal(0, 6, width), "bias": 0.1 * normal(1, width)},
        "decoder": {"out": 0.3 * normal(2, width, 6)},
        "adversary": {"in": normal(3, width, 5), "out": normal(4, 5, 2)},
    }

    def batch(i, rows):
        return {
            "x": normal(i, clients, rows, 6),
            "y": normal(i + 1, clients, rows, 2),
            "mask": jnp.ones((clients, rows)),
        }

    def encode(params, batch):
        encoder = params["encoder"]
        return jnp.tanh(matmul(batch["x"], encoder["in"]) + encoder["bias"][None])

    def guess(params, z):
        adversary = params["adversary"]
        return matmul(jnp.tanh(matmul(z, adversary["in"])), adversary["out"])

    def miss(params, z, batch):
        errors = jnp.square(guess(params, z) - batch["y"]).mean(-1)
        return (errors * batch["mask"]).sum() / batch["mask"].sum()

    def rebuild(params, batch):
        z = encode(params, batch)
        errors = jnp.square(matmul(z, params["decoder"]["out"]) - batch["x"]).mean(-1)
        error = (errors * batch["mask"]).sum() / batch["mask"].sum()
        return error - 0.5 * miss(params, z, batch), {"error": error}

    def attack(params, batch):
        z = jax.lax.stop_gradient(encode(params, batch))
        loss = miss(params, z, batch)
        return loss, {"miss": loss}

    def both(params, batch):
        frozen = params | {"adversary": jax.lax.stop_gradient(params["adversary"])}
        (total, info), (loss, more) = rebuild(frozen, batch), attack(params, batch)
        return total + loss, info | more

    vae, rest = ("encoder", "decoder"), ("adversary",)
    phases = (
        Phase(
            rest,
            lambda params, inputs: miss(params, *inputs),
            0.1,
            num_steps,
            lambda params, batch: (encode(params, batch), batch),
        ),
        Phase(vae, lambda params, batch: rebuild(params, batch)[0], 0.1),
    ) * local_steps
    return Problem(
        phases,
        (Objective(vae, rebuild), Objective(rest, attack)),
        (Objective((*vae, *rest), both),),
        params,
        batch(5, support),
        batch(7, query),
        jnp.ones(clients),
    )
