"""The players of an anonymizing autoencoder: it, and those that read its windows."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from jaxanon.methods.central import Player
from jaxanon.models import confusion as losses
from jaxanon.models.anonymizing import Networks

MODEL = ("encoder", "decoder")
ADAM = optax.scale_by_adam(eps=1e-7)


def rebuilder(nets: Networks, when_fn) -> Player:
    """The autoencoder by itself, which learns to leave windows as they are."""

    def loss_fn(key, params, hyper, batch, given):
        del key, given
        _, safe, averages = nets.rewrite(params, batch.windows, train=True)
        change = jnp.mean((safe - batch.windows) ** 2)
        decay = losses.kernel_squares([params[group] for group in MODEL])
        kept = {"averages": params["averages"] | averages}
        return change + hyper["decay"] * decay, ({"rebuilding": change}, kept)

    return Player(MODEL, loss_fn, when_fn=when_fn, optimizer=ADAM)


def anonymizing(
    nets: Networks, spec, when_fn, *, form: str = "chance", source_fn=None
) -> Player:
    """The autoencoder as its readers grade it.

    It pays for three terms, each with the weight of that name: the mean squared change
    (``distortion``); for every reader of a private attribute, of windows or latents,
    how far that is from guessing (``confusion``); and the public reader's cross-entropy
    (``utility``). Readers rest; their dropout does not, as in Keras.

    Args:
      nets: ``Networks``.
      spec: ``jaxanon.datasets.Spec``.
      when_fn: as of ``Player``.
      form: of ``models.confusion.confusion``.
      source_fn: ``(params, windows) -> windows`` that it is given; None: as drawn.
    """
    source_fn = source_fn or (lambda params, windows: windows)

    def loss_fn(key, params, hyper, batch, given):
        del given
        source = source_fn(params, batch.windows)
        latents, safe, averages = nets.rewrite(params, source, train=True)
        change = jnp.mean((safe - source) ** 2)
        utility, confused, info = jnp.zeros(()), jnp.zeros(()), {"change": change}
        for name, logits in nets.read(params, latents, safe, key):
            if name == spec.public:
                real = jnp.float32(batch.weights[name] > 0)
                loss = losses.weighted_cross_entropy(logits, batch.labels[name], real)
                utility, info[f"{name} loss"] = utility + loss, loss
            else:
                loss = losses.confusion(logits, batch.labels[name], form)
                confused = confused + loss
                told = f"{name} confusion"
                info[told] = info.get(told, 0.0) + loss
        decay = losses.kernel_squares([params[group] for group in MODEL])
        total = hyper["distortion"] * change + hyper["confusion"] * confused
        total = total + hyper["utility"] * utility
        info["anonymizer"] = total
        kept = {"averages": params["averages"] | averages}
        return total + hyper["decay"] * decay, (info, kept)

    return Player(MODEL, loss_fn, when_fn=when_fn, optimizer=ADAM)


def reading(
    nets: Networks, when_fn: Callable, *, raw: bool = False, source_fn=None
) -> Player:
    """The readers, by cross-entropy in which every class counts the same.

    Args:
      nets: ``Networks``.
      when_fn: as of ``Player``.
      raw: whether they are shown windows before the autoencoder, not behind it.
      source_fn: as in ``anonymizing``.
    """
    source_fn = source_fn or (lambda params, windows: windows)

    def loss_fn(key, params, hyper, batch, given):
        del given
        safe, latents = source_fn(params, batch.windows), None
        if not raw:
            latents, safe, _ = nets.rewrite(params, safe)
            latents, safe = jax.lax.stop_gradient((latents, safe))
        total = jnp.zeros(())
        for name, logits in nets.read(params, latents, safe, key):
            total = total + losses.weighted_cross_entropy(
                logits, batch.labels[name], batch.weights[name]
            )
        decay = losses.kernel_squares(params["readers"])
        told = "readers, raw windows" if raw else "readers"
        return total + hyper["decay"] * decay, ({told: total}, {})

    return Player(
        ("readers",),
        loss_fn,
        when_fn=when_fn,
        step_size="reader_step_size",
        optimizer=ADAM,
    )


def anonymize_fn(nets: Networks) -> Callable:
    """``(key, params, windows) -> windows``; nothing is random about them."""
    return lambda key, params, windows: nets.rewrite(params, windows)[1]
