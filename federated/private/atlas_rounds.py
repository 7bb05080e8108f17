"""A client's round of Atlas."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.federated.engine import importance
from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine.algorithm import Steps
from jaxanon.federated.engine.local import scaled_step
from jaxanon.federated.engine.personal import Client, Reply
from jaxanon.federated.private import atlas_noise
from jaxanon.federated.private.atlas_noise import (
    CLIPPINGS,
    READINGS,
    layer_norms,
    noisy,
    plain,
    release_layers,
    share_kept,
)
from jaxanon.kernels.bounds import check, setting
from jaxanon.privacy.poisson_sampling import PoissonSampling

SCORES = ("privatised", "released", "public", "hidden", "published")

GUARANTEES = ("example", "client")


class AtlasClientState(NamedTuple):
    """Personal state of a client; masks and logits are relative to their start.

    ``logits`` belong to released scores, else None. ``least`` is the smallest fraction
    of z* of its noise with reading "C", else None.
    """

    params: Any  # dict of layers
    masks: Any  # dict of layers
    shared: Any  # dict of bool[], layers taken from the server
    logits: Any = None  # dict of float[]
    least: Any = None  # float[]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of ``atlas``.

    Raises:
      ValueError: for an unknown choice or incompatible settings.
    """

    loss_fn: Callable
    steps: Steps
    lots: PoissonSampling | None
    privacy_unit: str = setting(choices=GUARANTEES)
    noise_interpretation: str = setting(choices=READINGS)
    clipping: str = setting(choices=CLIPPINGS)
    scores: str = setting(choices=SCORES)
    public_scores: dict | None
    send_every_layer: bool
    max_layers: int | None = setting(at_least=1)
    send_slots: int | None = setting(at_least=1)

    def __post_init__(self):
        check(self)
        check_public_scores(self.scores, self.public_scores)
        if self.privacy_unit == "client" and self.lots is not None:
            raise ValueError(
                "lots must be None with privacy_unit='client', which protects "
                "a client's "
                f"whole update, got {self.lots!r}."
            )
        if self.privacy_unit == "example" and self.scores == "hidden":
            raise ValueError(
                "privacy_unit must be 'client' with scores='hidden', got 'example'; "
                "gradients of examples would reveal the masks."
            )
        if (
            self.privacy_unit == "example"
            and self.scores == "released"
            and not self.lots
        ):
            raise ValueError(
                "lots must be given with scores='released', got None; or use "
                "privacy_unit='client'."
            )


def begun(client: Client):
    """Returns the client's weights (shared and personal layers), masks and logits."""
    take = lambda old, new, flag: jnp.where(flag, new, old)
    flags = importance.per_layer(client.own.shared, client.params)
    params = jax.tree.map(take, client.own.params, client.params, flags)
    first = _first(client)
    since = lambda tree: jax.tree.map(lambda x: x + first.astype(x.dtype), tree)
    return params, since(client.own.masks), since(client.own.logits)


def of_examples(settings: Settings, client: Client) -> Reply:
    """Runs a round whose steps protect examples; without lots it has no noise."""
    params, masks, logits = begun(client)
    if settings.lots is None:
        gradient_of = plain(settings.loss_fn, client, settings.steps)
    else:
        gradient_of = noisy(
            *(settings.loss_fn, client, settings.lots),
            *(settings.noise_interpretation, settings.clipping),
        )
    if settings.scores == "released":
        number = settings.steps.num_steps  # Not used by the steps.
        logits = atlas_noise.by_a_lot(
            settings.loss_fn, client, settings.lots, number, params, masks, logits
        )
    scores_of = lambda masks: _scores(settings, masks, logits)
    params, masks, (losses, shares) = _descended(
        settings, client.hyper, gradient_of, params, masks, scores_of
    )
    share = _selected(settings, client, scores_of(masks))
    kept = _kept(client, params, masks, share, logits, shares)
    return _reply(settings, params, kept, losses)


def of_client(settings: Settings, client: Client) -> Reply:
    """Runs a round of exact steps and sends the clipped and noised change.

    The change is relative to the server's broadcast, also for personal layers. No other
    private value leaves the client or determines which layers do.
    """
    hyper, kind = client.hyper, settings.scores
    step_key, score_key, noise_key = jax.random.split(client.key, 3)
    params, before, logits = begun(client)
    params, masks, (losses, _) = _descended(
        settings,
        hyper,
        plain(settings.loss_fn, client._replace(key=step_key), settings.steps),
        *(params, before, lambda masks: None),
    )
    if kind == "released":
        wanted = importance.scores(masks)
        logits = atlas_noise.by_a_client(score_key, wanted, logits, hyper)
    scores = _scores(settings, masks, logits)
    seen = scores  # Determines noise and clip norms.
    if kind == "hidden":
        seen = {name: jnp.ones_like(x) for name, x in scores.items()}
    norms = layer_norms(hyper["clip_norm"], seen, settings.clipping)
    way = lambda after, sent: (after - sent)[None]
    total = kernels.clipped_sum(jax.tree.map(way, params, client.params), norms)
    z = hyper["noise_multiplier"]
    released = release_layers(noise_key, total, seen, z, settings.noise_interpretation)
    if kind == "privatised":
        masks = _masks_after(hyper, client.params, before, released)
        scores = importance.scores(masks)
    share = _selected(settings, client, scores)
    sent = jax.tree.map(lambda w, t: w + t.astype(w.dtype), client.params, released)
    kept = _kept(client, params, masks, share, logits, share_kept(seen))
    return _reply(settings, sent, kept, losses)


def alone(settings: Settings, client: Client) -> Reply:
    """Runs a round without communication: no noise and exact masks.

    Args:
      settings: ``Settings``.
      client: ``Client``.
    """
    kind = "public" if settings.scores == "public" else "privatised"
    bare = dataclasses.replace(settings, lots=None, privacy_unit="example", scores=kind)
    return of_examples(bare, client)


def _descended(settings, hyper, gradient_of, params, masks, scores_of):
    """Returns weights and masks after the steps, their losses and fractions of z*."""
    threshold, kind = hyper["threshold"], settings.scores
    whole = settings.privacy_unit == "client"
    # With client-level protection, steps may train masks that stay hidden or are
    # released separately. Other masks follow the sent update.
    learns = kind in ("released", "hidden", "published") if whole else kind != "public"

    def step(learned, number):
        params, masks = learned
        weights = importance.apply_masks(params, masks, threshold)
        scores = scores_of(masks)
        kept = 1.0 if settings.lots is None else share_kept(scores)
        noisy_grads, exact, loss = gradient_of(number, weights, scores)
        down, along = importance.gradients(noisy_grads, params, masks, threshold)
        if kind == "published":
            _, along = importance.gradients(exact, params, masks, threshold)
        after = scaled_step(params, hyper["learning_rate"], down)
        if learns:
            masks = scaled_step(masks, hyper["mask_learning_rate"], along)
        return (after, masks), (loss, kept)

    numbers = jnp.arange(settings.steps.num_steps)
    unroll = 1
    if settings.lots is None:
        unroll = layouts.default_layout(params, 1, num_steps=len(numbers)).unroll
    (params, masks), outs = jax.lax.scan(step, (params, masks), numbers, unroll=unroll)
    return params, masks, outs


def _masks_after(hyper, params, masks, released):
    """Updates masks from the released change, as if it were the sum of gradients."""
    length = hyper["learning_rate"]
    ratio = jnp.where(length > 0, hyper["mask_learning_rate"] / length, 0)
    uphill = jax.tree.map(lambda t, w: -t.astype(w.dtype), released, params)
    _, along = importance.gradients(uphill, params, masks, hyper["threshold"])
    return scaled_step(masks, ratio, along)


def _scores(settings, masks, logits):
    if settings.scores == "public":
        return {name: jnp.float32(x) for name, x in settings.public_scores.items()}
    if settings.scores == "released":
        return atlas_noise.of_logits(logits)
    return importance.scores(masks)


def _selected(settings, client, scores):
    threshold = client.hyper["threshold"]
    return importance.select_layers(scores, threshold, settings.max_layers)


def _kept(client, params, masks, share, logits, shares):
    first, least = _first(client), client.own.least
    less = lambda tree: jax.tree.map(lambda x: x - first.astype(x.dtype), tree)
    if least is not None:
        least = jnp.minimum(least, jnp.min(shares)).astype(least.dtype)
    return AtlasClientState(params, less(masks), share, less(logits), least)


def _first(client):
    """Returns the initial mask value; stored masks are relative to it."""
    return jax.scipy.special.logit(client.hyper["first_score"])


def _reply(settings, params, kept, losses):
    """Builds a client's message: the sent layers of ``params`` and their flags."""
    share, send = kept.shared, kept.shared
    if settings.send_every_layer or settings.scores == "hidden":
        send = {name: jnp.array(True) for name in share}
    flags = importance.per_layer(send, params)
    sent = jax.tree.map(lambda w, flag: jnp.where(flag, w, 0), params, flags)
    counted = send if settings.scores == "hidden" else share
    scored = settings.scores not in ("hidden", "public")
    more = 4 * len(send) * scored
    if settings.send_slots is not None:
        sent_layers = sum(jnp.asarray(flag, float) for flag in send.values())
        more = layouts.HEADER_BYTES * sent_layers
    traffic = _traffic(params, send, more)
    layers = jnp.sum(jnp.stack([*counted.values()]).astype(float))
    info = {"loss": jnp.mean(losses), "layers": layers} | traffic
    senders = {name: jnp.asarray(flag, float) for name, flag in send.items()}
    return Reply((sent, senders), kept, info)


def _traffic(params, send, more):
    """Returns the bytes that a client sends (layers and ``more``) and receives."""
    sizes = {name: layouts.num_bytes(layer) for name, layer in params.items()}
    of = lambda flags: sum(sizes[name] * flags[name] for name in sizes)
    down = jnp.asarray(of(send), float)
    return {"bytes_up": down + more, "bytes_down": down}


def check_public_scores(scores: str, public_scores: dict | None) -> None:
    """Raises ValueError for public scores out of (0, 1] or without scores="public".

    Args:
      scores: one of ``SCORES``.
      public_scores: dict from layer to score, or None.

    Example:
      >>> check_public_scores("public", {"a": 0.5})
    """
    if (scores == "public") != (public_scores is not None):
        raise ValueError(
            "public_scores must be given if and only if scores='public', got "
            f"{public_scores!r} for {scores!r}."
        )
    for layer, score in (public_scores or {}).items():
        if not 0 < score <= 1:
            raise ValueError(
                f"public_scores must be in (0, 1], got {score!r} for {layer!r}."
            )
