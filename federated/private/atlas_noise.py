"""Noise of Atlas: on gradients, and on the scores that are released beside them."""

import dataclasses
import math

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.federated.engine import importance, local
from jaxanon.federated.private.dp_sgd import clipped_lot, step_keys

READINGS = ("rescaled", "A", "B", "C")

CLIPPINGS = ("even", "scores")

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


def share_kept(scores: dict):
    """What noise of reading "C" leaves of z*: its true multiplier over that claimed.

    Args:
      scores: see ``layer_multipliers``.

    Returns:
      ``float[]`` in [0.05, 1]: (Σ E^-2 / M)^(-1/2).

    Example:
      >>> found = share_kept(dict(zip("abcd", map(jnp.float32, (0.9, 0.5, 0.7, 0.3)))))
      >>> round(float(found), 4)
      0.4664
    """
    found = [jnp.maximum(x, LEAST_SCORE) for x in scores.values()]
    return (sum(x**-2 for x in found) / len(found)) ** -0.5


def layer_norms(max_norm, scores: dict, clipping: str) -> dict:
    """The clip norm C_m of each layer; their squares add up to that of ``max_norm``.

    They are in proportion to scores, or all the same. z* is that of the multipliers
    either way, as long as nothing private but what was released is in the scores.

    Args:
      max_norm: C > 0, may be traced.
      scores: E_m of each layer; below 0.05 it counts as that.
      clipping: one of ``CLIPPINGS``.

    Returns:
      Dict of ``float[]``.

    Example:
      >>> scores = {"a": jnp.float32(0.3), "b": jnp.float32(0.4)}
      >>> found = layer_norms(2.0, scores, "scores")
      >>> round(float(found["a"]), 4), round(float(found["b"]), 4)
      (1.2, 1.6)
    """
    if clipping == "even":
        return dict.fromkeys(scores, max_norm / math.sqrt(len(scores)))
    found = {name: jnp.maximum(x, LEAST_SCORE) for name, x in scores.items()}
    root = jnp.sqrt(sum(x**2 for x in found.values()))
    return {name: max_norm * x / root for name, x in found.items()}


def release_layers(key, total, scores, noise_multiplier, reading):
    """A clipped sum behind its noise, by a reading.

    Args:
      key: typed PRNG key.
      total: ``BoundedSum``, its bounds those of ``layer_norms``.
      scores, noise_multiplier, reading: see ``layer_multipliers``.

    Returns:
      The tree of ``total.value``.
    """
    multipliers = layer_multipliers(noise_multiplier, scores, reading)
    by_score = importance.per_layer(scores, total.value)
    scale = lambda tree: jax.tree.map(jnp.multiply, tree, by_score)
    if reading == "B":  # The bound stays: noise is as if scores were not there.
        total = dataclasses.replace(total, value=scale(total.value))
    told = kernels.add_noise_to_sum(key, total, multipliers)
    return scale(told) if reading == "A" else told


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


def noisy(loss_fn, client, lots, reading, clipping="even"):
    """``(step, weights, scores) -> (noisy, exact, loss)`` of a client's lots.

    Both are sums of clipped examples over ``lots.size``; the exact one may not leave.

    Args:
      loss_fn: ``(params, batch, key) -> float[B]``, each loss of its own row.
      client: ``Client`` with ``max_norm`` and ``noise_multiplier`` in its ``hyper``.
      lots: ``Lots``.
      reading: one of ``READINGS``.
      clipping: one of ``CLIPPINGS``.
    """
    hyper = client.hyper

    def gradient_of(number, weights, scores):
        lot_key, noise_key = step_keys(client.key, number)
        norms = layer_norms(hyper["max_norm"], scores, clipping)
        total, loss = clipped_lot(
            loss_fn, lot_key, weights, client.rows, client.mask, lots, norms
        )
        told = release_layers(
            noise_key, total, scores, hyper["noise_multiplier"], reading
        )
        mean = lambda tree: jax.tree.map(lambda leaf: leaf / lots.size, tree)
        return mean(told), mean(total.value), loss

    return gradient_of


MOST = 3.0  # Of logits: scores stay between 0.05 and 0.95, whatever the noise.


def of_logits(logits: dict) -> dict:
    """Scores in (0, 1) of layers that have a logit each."""
    return {name: jax.nn.sigmoid(x) for name, x in logits.items()}


def by_a_lot(loss_fn, client, lots, number, params, masks, logits) -> dict:
    """Where one step of descent takes the layers' logits, behind noise.

    Every example of a lot has a slope of its loss by each layer's logit
    (``importance.along_layers``). These M numbers are clipped together to
    ``score_norm``; their sum over the lot gets ``score_multiplier`` times that as
    noise, each of them. It is a Gaussian mechanism over a Poisson sample, of that
    multiplier. Layers that only scale what goes through them, as with ReLU and without
    biases, all have the same slope: what tells them apart then is the weights that
    their masks leave out.

    Args:
      loss_fn: ``(params, batch, key) -> float[B]``, each loss of its own row.
      client: ``Client`` with ``threshold``, ``mask_step_size``, ``score_norm`` and
        ``score_multiplier`` in its ``hyper``.
      lots: ``Lots``.
      number: of the step, another than any of the round's.
      params, masks, logits: of the client, and of nothing private but what was
        released.

    Returns:
      Dict of ``float[]``, the new logits.
    """
    hyper = client.hyper
    lot_key, noise_key = step_keys(client.key, number)
    weights = importance.apply_masks(params, masks, hyper["threshold"])
    along = importance.along_layers(params, masks)

    def loss_at(shift, lot, key):
        by = importance.per_layer(shift, weights)
        moved = jax.tree.map(lambda w, d, x: w + x * d, weights, along, by)
        return loss_fn(moved, lot, key)

    zeros = {name: jnp.zeros_like(x) for name, x in logits.items()}
    total, _ = clipped_lot(
        loss_at, lot_key, zeros, client.rows, client.mask, lots, hyper["score_norm"]
    )
    told = kernels.add_noise_to_sum(noise_key, total, hyper["score_multiplier"])
    length = hyper["mask_step_size"] / lots.size
    return _within({name: x - length * told[name] for name, x in logits.items()})


def by_a_client(key, wanted: dict, logits: dict, hyper) -> dict:
    """Where a client wants the layers' logits, behind noise.

    The way from where they were told to be, M numbers together, is clipped to
    ``score_norm`` and gets ``score_multiplier`` times that as noise, each of them.

    Args:
      key: typed PRNG key.
      wanted: scores in (0, 1) of each layer, private.
      logits: that were told before.
      hyper: with ``score_norm`` and ``score_multiplier``.

    Returns:
      Dict of ``float[]``, the new logits.

    Example:
      From logits of 0 to those of 2.4 and -1.8 it is 3 long.

      >>> wanted = of_logits({"a": jnp.float32(2.4), "b": jnp.float32(-1.8)})
      >>> zeros = {"a": jnp.zeros(()), "b": jnp.zeros(())}
      >>> hyper = {"score_norm": 1.0, "score_multiplier": 0.0}
      >>> told = by_a_client(jax.random.key(0), wanted, zeros, hyper)
      >>> round(float(told["a"]), 3), round(float(told["b"]), 3)
      (0.8, -0.6)
    """
    there = _within({name: jax.scipy.special.logit(x) for name, x in wanted.items()})
    way = {name: (there[name] - x)[None] for name, x in logits.items()}
    total = kernels.clipped_sum(way, hyper["score_norm"])
    told = kernels.add_noise_to_sum(key, total, hyper["score_multiplier"])
    return _within({name: x + told[name] for name, x in logits.items()})


def _within(logits):
    return {name: jnp.clip(x, -MOST, MOST) for name, x in logits.items()}
