"""Gradients of Atlas's steps, plain or noisy, by a reading of its equations."""

import math

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.federated import importance, local
from jaxanon.federated.private import clipped_lot, step_keys

READINGS = ("rescaled", "A", "B", "C")
LEAST_SCORE = 0.05  # Else the noise of the other layers has no bound.


def layer_multipliers(noise_multiplier, scores: dict, reading: str) -> dict:
    """The noise multiplier z_m of each layer's sum, by a reading of Atlas.

    Args:
      noise_multiplier: z* >= 0, may be traced.
      scores: E_m of each layer; below 0.05 it counts as that.
      reading: one of ``READINGS``.

    Returns:
      Dict of ``float[]``; where scores multiply sums ("B"), of what is moved by C_m
      before they do.

    Example:
      >>> found = layer_multipliers(1.0, {"a": 0.5, "b": 1.0}, "rescaled")
      >>> round(float(found["a"]), 4), round(float(found["b"]), 4)
      (1.118, 2.2361)
    """
    found = {name: jnp.maximum(x, LEAST_SCORE) for name, x in scores.items()}
    even = noise_multiplier * math.sqrt(len(found))
    if reading in ("A", "B"):
        return {name: even * jnp.ones_like(x) for name, x in found.items()}
    if reading == "C":
        return {name: even * x for name, x in found.items()}
    scale = noise_multiplier * jnp.sqrt(sum(x**-2 for x in found.values()))
    return {name: scale * x for name, x in found.items()}


def plain(loss_fn, client, steps):
    """``(step, weights, scores) -> (gradient, gradient, loss)`` of a client's batches.

    Args:
      loss_fn: ``(params, batch, key) -> float[B]``.
      client: ``Client``.
      steps: ``Steps``.
    """
    order_key, loss_key = jax.random.split(client.key)
    batch_of = local.batches(
        order_key, client.rows, client.mask, steps.batch_size, steps.shuffle
    )

    def gradient_of(number, weights, scores):
        del scores
        key = jax.random.fold_in(loss_key, number)
        loss, grads = local.gradient(loss_fn, key, weights, *batch_of(number))
        return grads, grads, loss

    return gradient_of


def noisy(loss_fn, client, lots, reading):
    """``(step, weights, scores) -> (noisy, exact, loss)`` of a client's lots.

    Both are sums of clipped examples over ``lots.size``; the exact one may not leave.

    Args:
      loss_fn: ``(params, batch, key) -> float[B]``, each loss of its own row.
      client: ``Client`` with ``max_norm`` and ``noise_multiplier`` in its ``hyper``.
      lots: ``Lots``.
      reading: one of ``READINGS``.
    """
    hyper = client.hyper

    def gradient_of(number, weights, scores):
        lot_key, noise_key = step_keys(client.key, number)
        norms = dict.fromkeys(weights, hyper["max_norm"] / math.sqrt(len(weights)))
        total, loss = clipped_lot(
            loss_fn, lot_key, weights, client.rows, client.mask, lots, norms
        )
        multipliers = layer_multipliers(hyper["noise_multiplier"], scores, reading)
        by_score = importance.per_layer(scores, weights)
        scale = lambda tree: jax.tree.map(jnp.multiply, tree, by_score)
        exact = total.value
        if reading == "B":  # The bound stays: noise is as if scores were not there.
            total = kernels.BoundedSum(scale(exact), norms, total.squared_weights)
        told = kernels.add_noise_to_sum(noise_key, total, multipliers)
        if reading == "A":
            told = scale(told)
        mean = lambda tree: jax.tree.map(lambda leaf: leaf / lots.size, tree)
        return mean(told), mean(exact), loss

    return gradient_of
