"""Noise of Atlas on gradients and on released scores."""

import dataclasses
import math

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.federated.engine import importance, local
from jaxanon.federated.private.dp_sgd import clipped_lot, step_keys

READINGS = ("rescaled", "A", "B", "C")

CLIPPINGS = ("even", "scores")

LEAST_SCORE = 0.05  # Bounds the noise of the other layers.


def layer_multipliers(noise_multiplier, scores: dict, reading: str) -> dict:
    """Returns the noise multiplier z_m of each layer's sum for a reading of Atlas.

    Args:
      noise_multiplier: z* >= 0, may be traced.
      scores: E_m of each layer, at least 0.05 (smaller scores are raised).
      reading: one of ``READINGS``.

    Returns:
      Dict of ``float[]``. For "B" they refer to sums before multiplication by scores.

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
    """Returns the true noise multiplier of reading "C" as a fraction of z*.

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


def layer_norms(clip_norm, scores: dict, clipping: str) -> dict:
    """Returns the clip norm C_m of each layer; squares sum to that of ``clip_norm``.

    Clip norms are equal or proportional to scores. z* is the same in both cases, if the
    scores depend only on released values.

    Args:
      clip_norm: C > 0, may be traced.
      scores: E_m of each layer, at least 0.05 (smaller scores are raised).
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
        return dict.fromkeys(scores, clip_norm / math.sqrt(len(scores)))
    found = {name: jnp.maximum(x, LEAST_SCORE) for name, x in scores.items()}
    root = jnp.sqrt(sum(x**2 for x in found.values()))
    return {name: clip_norm * x / root for name, x in found.items()}


def release_layers(key, total, scores, noise_multiplier, reading):
    """Adds noise to a clipped sum for a reading of Atlas.

    Args:
      key: typed PRNG key.
      total: ``BoundedSum`` with the clip norms of ``layer_norms``.
      scores, noise_multiplier, reading: see ``layer_multipliers``.

    Returns:
      The tree of ``total.value``.
    """
    multipliers = layer_multipliers(noise_multiplier, scores, reading)
    by_score = importance.per_layer(scores, total.value)
    scale = lambda tree: jax.tree.map(jnp.multiply, tree, by_score)
    if reading == "B":  # The bound is kept: scores do not change the noise.
        total = dataclasses.replace(total, value=scale(total.value))
    noisy = kernels.add_noise_to_sum(key, total, multipliers)
    return scale(noisy) if reading == "A" else noisy


def plain(loss_fn, client, steps):
    """Returns ``(step, weights, scores) -> (gradient, gradient, loss)`` for batches.

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
    """Returns ``(step, weights, scores) -> (noisy, exact, loss)`` for sampled batches.

    Both gradients are sums of clipped per-example gradients over
    ``lots.expected_batch_size``. The exact one must not leave the client.

    Args:
      loss_fn: ``(params, batch, key) -> float[B]``; each loss depends on its row only.
      client: ``Client`` with ``clip_norm`` and ``noise_multiplier`` in its ``hyper``.
      lots: ``PoissonSampling``.
      reading: one of ``READINGS``.
      clipping: one of ``CLIPPINGS``.
    """
    hyper = client.hyper

    def gradient_of(number, weights, scores):
        lot_key, noise_key = step_keys(client.key, number)
        norms = layer_norms(hyper["clip_norm"], scores, clipping)
        total, loss = clipped_lot(
            loss_fn, lot_key, weights, client.rows, client.mask, lots, norms
        )
        released = release_layers(
            noise_key, total, scores, hyper["noise_multiplier"], reading
        )
        mean = lambda tree: jax.tree.map(
            lambda leaf: leaf / lots.expected_batch_size, tree
        )
        return mean(released), mean(total.value), loss

    return gradient_of


MAX_LOGIT = 3.0  # Keeps scores between 0.05 and 0.95 for any noise.


def of_logits(logits: dict) -> dict:
    """Converts the layers' logits to scores in (0, 1)."""
    return {name: jax.nn.sigmoid(x) for name, x in logits.items()}


def by_a_lot(loss_fn, client, lots, number, params, masks, logits) -> dict:
    """Takes one noisy gradient step on the layers' logits.

    Each example of a batch has a derivative of its loss by each layer's logit (see
    ``importance.along_layers``). These M numbers are clipped together to
    ``score_norm``, and their sum over the batch gets noise of ``score_multiplier``
    times that norm. This is a Gaussian mechanism over a Poisson sample with that
    multiplier. Layers that only scale their input, such as ReLU layers without biases,
    have equal derivatives and differ only by the weights that their masks omit.

    Args:
      loss_fn: ``(params, batch, key) -> float[B]``; each loss depends on its row only.
      client: ``Client`` with ``threshold``, ``mask_learning_rate``, ``score_norm`` and
        ``score_multiplier`` in its ``hyper``.
      lots: ``PoissonSampling``.
      number: step number, different from all others in the round.
      params, masks, logits: values of the client that depend only on released values.

    Returns:
      Dict of ``float[]``, the new logits.
    """
    hyper = client.hyper
    lot_key, noise_key = step_keys(client.key, number)
    weights = importance.apply_masks(params, masks, hyper["threshold"])
    along = importance.along_layers(params, masks)

    def loss_at(shift, lot, key):
        by = importance.per_layer(shift, weights)
        shifted = jax.tree.map(lambda w, d, x: w + x * d, weights, along, by)
        return loss_fn(shifted, lot, key)

    zeros = {name: jnp.zeros_like(x) for name, x in logits.items()}
    total, _ = clipped_lot(
        loss_at, lot_key, zeros, client.rows, client.mask, lots, hyper["score_norm"]
    )
    noisy = kernels.add_noise_to_sum(noise_key, total, hyper["score_multiplier"])
    rate = hyper["mask_learning_rate"] / lots.expected_batch_size
    return _within({name: x - rate * noisy[name] for name, x in logits.items()})


def by_a_client(key, wanted: dict, logits: dict, hyper) -> dict:
    """Moves the released logits towards a client's private scores, with noise.

    The change since the last release, M numbers together, is clipped to ``score_norm``
    and gets noise of ``score_multiplier`` times that norm.

    Args:
      key: typed PRNG key.
      wanted: private scores in (0, 1) of each layer.
      logits: logits released before.
      hyper: dict with ``score_norm`` and ``score_multiplier``.

    Returns:
      Dict of ``float[]``, the new logits.

    Example:
      The change from logits of 0 to 2.4 and -1.8 has norm 3.

      >>> wanted = of_logits({"a": jnp.float32(2.4), "b": jnp.float32(-1.8)})
      >>> zeros = {"a": jnp.zeros(()), "b": jnp.zeros(())}
      >>> hyper = {"score_norm": 1.0, "score_multiplier": 0.0}
      >>> noisy = by_a_client(jax.random.key(0), wanted, zeros, hyper)
      >>> round(float(noisy["a"]), 3), round(float(noisy["b"]), 3)
      (0.8, -0.6)
    """
    there = _within({name: jax.scipy.special.logit(x) for name, x in wanted.items()})
    way = {name: (there[name] - x)[None] for name, x in logits.items()}
    total = kernels.clipped_sum(way, hyper["score_norm"])
    noisy = kernels.add_noise_to_sum(key, total, hyper["score_multiplier"])
    return _within({name: x + noisy[name] for name, x in logits.items()})


def _within(logits):
    return {name: jnp.clip(x, -MAX_LOGIT, MAX_LOGIT) for name, x in logits.items()}
