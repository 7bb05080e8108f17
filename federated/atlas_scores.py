"""Scores of Atlas's layers, released by themselves behind noise of their own."""

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.federated import importance
from jaxanon.federated.private import clipped_lot, step_keys

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
    weights = importance.masked(params, masks, hyper["threshold"])
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
