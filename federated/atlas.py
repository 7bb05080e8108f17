"""Atlas: important layers are everybody's, and noise follows their importance."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.federated import importance
from jaxanon.federated.algorithm import FederatedAlgorithm
from jaxanon.federated.atlas_gradients import READINGS, noisy, plain
from jaxanon.federated.personal import (
    PersonalState,
    Reply,
    Rounds,
    Steps,
    personal,
    scaled_step,
    train,
)
from jaxanon.federated.private import Lots, alike, lot_bytes

SCORES = ("privatised", "public", "published")


class Kept(NamedTuple):
    """What a client keeps from round to round."""

    params: Any  # dict of layers
    masks: Any  # dict of layers
    shared: Any  # dict of bool[], layers that it takes from the server


def atlas(
    init_fn,
    loss_fn,
    steps: Steps,
    *,
    num_clients: int,
    lots: Lots | None = None,
    reading: str = "rescaled",
    scores: str = "privatised",
    public_scores: dict | None = None,
    send_every_layer: bool = False,
    most_layers: int | None = None,
    own_steps: Steps | None = None,
    rounds: Rounds | None = None,
) -> FederatedAlgorithm:
    """Personal models of global and local layers, as masks learned beside them say.

    A client trains its weights and their masks (``importance``); layers whose score
    reaches the threshold are sent and averaged over those who sent them, the others
    stay. With ``lots`` every step is a Gaussian mechanism: each layer of an example's
    gradient is clipped to ``max_norm / √M``, and layer m of the sum gets noise that
    its score E_m has a part in. The gradient is that of the masked weights; those of
    weights and masks follow from it and from nothing else that is private. So do the
    scores, what is sent and how much noise comes next, and all of it costs what the
    noisy gradients do. That a client has a row at all is no secret.

    ``init(key, step_size=0.1, mask_step_size=0.1, threshold=0.5, first_score=0.6,
    max_norm=1.0, noise_multiplier=1.0, own_step_size=0.1)``, the last that of
    ``own_steps``, whose gradients nobody clips. ``noise_multiplier`` is z*, of all
    layers together. What holds is told by ``jaxanon.privacy`` for each reading of the
    paper's equations 3.5 to 3.9:

    - "rescaled", noise of E_m C_m times what makes z* hold for all layers together;
    - "A", noise of √M z* C_m, and scores as a step size: z* holds;
    - "B", the same noise on sums multiplied by scores: more private than z*;
    - "C", noise of E_m √M z* C_m, as the text has it: **z* does not hold**, account
      for ``effective_noise_multiplier(..., scores, reading="C")`` with scores of every
      step, or have no guarantee.

    Nor does it with ``scores="published"``, where masks follow the gradients before the
    noise; ``"public"`` takes scores that are given, and learns no masks.

    ``info`` has ``"loss"`` (of clients' rows, not covered), ``"layers"``, how many were
    sent on average, and ``"bytes_up"`` and ``"bytes_down"`` of a client: layers that it
    shares, both ways, and one score for each layer.

    Args:
      init_fn: ``key -> params``, a dict of M layers.
      loss_fn: ``(params, batch, key) -> float[B]``, with ``lots`` each of its own row.
      steps: ``Steps`` of a client in a round; with ``lots`` only how many.
      num_clients: clients of the population.
      lots: ``Lots`` of noisy steps; None takes plain ones and guarantees nothing.
      reading: one of ``READINGS``.
      scores: one of ``SCORES``.
      public_scores: score in (0, 1] of each layer, for ``"public"``.
      send_every_layer: clients send all layers, so that nobody sees which they share;
        what each takes back stays its own affair.
      most_layers: so many layers are shared at most, those of the largest scores.
      own_steps: ``Steps`` by which a client fits its model to its rows before it
        predicts, without noise; nothing of that is ever sent or trained on.
      rounds: ``Rounds``; None weighs clients alike, for numbers of rows are private.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` is ``Kept``.

    Raises:
      ValueError: for an unknown reading or kind of scores, ``public_scores`` of other
        layers or without their kind, and as ``Steps``, ``Lots`` and ``personal``.

    Example:
      Two clients whose layers ``w`` and ``v`` add up; all is shared, and half of the
      way to 4 in one step of each: (2 + 0) / 2.

      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["w"] + p["v"] - x) ** 2
      >>> zeros = lambda key: {"w": jnp.zeros(()), "v": jnp.zeros(())}
      >>> algorithm = atlas(zeros, loss, Steps(num_steps=1), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
      >>> clients = stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, info = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params["w"], info["layers"]
      (Array(1., dtype=float32), Array(2., dtype=float32))

    References:
      Atlas, chapter 3, equations 3.1 to 3.10; McMahan et al., arXiv 1812.06210, for
      noise of each layer's own; Dwork and Roth, 2014, proposition 2.1, for what follows
      from released gradients.
    """
    _check(reading, scores, public_scores)

    def init(key):
        params = init_fn(key)
        if public_scores is not None and set(public_scores) != set(params):
            raise ValueError(
                f"public_scores must be of the layers {sorted(params)}, got "
                f"{sorted(public_scores)}."
            )
        zeros = jax.tree.map(jnp.zeros_like, params)
        everything = {name: jnp.array(True) for name in params}
        return params, Kept(params, zeros, everything), None

    def scores_of(masks):
        if public_scores is not None:
            return {name: jnp.float32(x) for name, x in public_scores.items()}
        return importance.scores(masks)

    def begun(client):
        """Weights, of the server's layers and its own, and masks."""
        take = lambda old, new, flag: jnp.where(flag, new, old)
        flags = importance.per_layer(client.own.shared, client.params)
        params = jax.tree.map(take, client.own.params, client.params, flags)
        masks = jax.tree.map(
            lambda e: e + first(client).astype(e.dtype), client.own.masks
        )
        return params, masks

    def first(client):
        """Where masks begin; they are kept less that, for ``init`` sets no score."""
        return jax.scipy.special.logit(client.hyper["first_score"])

    def client_fn(client):
        hyper = client.hyper
        params, masks = begun(client)
        if lots is None:
            gradient_of = plain(loss_fn, client, steps)
        else:
            gradient_of = noisy(loss_fn, client, lots, reading)
        threshold = hyper["threshold"]

        def step(learned, number):
            params, masks = learned
            weights = importance.masked(params, masks, threshold)
            told, exact, loss = gradient_of(number, weights, scores_of(masks))
            down, along = importance.gradients(told, params, masks, threshold)
            if scores == "published":
                _, along = importance.gradients(exact, params, masks, threshold)
            after = scaled_step(params, hyper["step_size"], down)
            if public_scores is None:
                masks = scaled_step(masks, hyper["mask_step_size"], along)
            return (after, masks), loss

        (params, masks), losses = jax.lax.scan(
            step, (params, masks), jnp.arange(steps.num_steps)
        )
        share = importance.selected(scores_of(masks), threshold, most_layers)
        send = {name: jnp.array(True) for name in share} if send_every_layer else share
        flags = importance.per_layer(send, params)
        sent = jax.tree.map(lambda w, flag: jnp.where(flag, w, 0), params, flags)
        info = {"loss": jnp.mean(losses)} | _traffic(params, send, share)
        masks = jax.tree.map(lambda e: e - first(client).astype(e.dtype), masks)
        senders = {name: jnp.asarray(flag, float) for name, flag in send.items()}
        return Reply((sent, senders), Kept(params, masks, share), info)

    def server(state: PersonalState, mean, share):
        del share
        total, senders = mean
        counts = importance.per_layer(senders, state.params)

        def merge(old, summed, count):
            new = summed / jnp.where(count > 0, count, 1)
            return jnp.where(count > 0, new, old).astype(old.dtype)

        return state._replace(params=jax.tree.map(merge, state.params, total, counts))

    def model(client):
        weights = importance.masked(*begun(client), client.hyper["threshold"])
        if own_steps is None:
            return weights
        hyper = client.hyper | {"step_size": client.hyper["own_step_size"]}
        return train(client._replace(hyper=hyper), loss_fn, weights, own_steps)[0]

    return personal(
        init,
        client_fn,
        server,
        model,
        num_clients=num_clients,
        hyper={
            **{"step_size": 0.1, "mask_step_size": 0.1, "threshold": 0.5},
            **{"first_score": 0.6, "max_norm": 1.0, "noise_multiplier": 1.0},
            "own_step_size": 0.1,
        },
        rounds=alike(rounds) if lots else rounds or Rounds(weighting="clients"),
        example_bytes_fn=lots and functools.partial(lot_bytes, loss_fn, lots=lots),
    )


def _traffic(params, send, share):
    """Bytes that a client sends and gets back: layers, and a score for each."""
    sizes = {
        name: sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(layer))
        for name, layer in params.items()
    }
    of = lambda flags: sum(sizes[name] * flags[name] for name in sizes)
    return {
        "layers": jnp.sum(jnp.stack([*share.values()]).astype(float)),
        "bytes_up": jnp.asarray(of(send) + 4 * len(sizes), float),
        "bytes_down": jnp.asarray(of(send), float),
    }


def _check(reading, scores, public_scores):
    for name, value, known in (
        ("reading", reading, READINGS),
        ("scores", scores, SCORES),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {known}, got {value!r}.")
    if (scores == "public") != (public_scores is not None):
        raise ValueError(
            "public_scores are for scores='public' and needed there, got "
            f"{public_scores!r} for {scores!r}."
        )
    for layer, score in (public_scores or {}).items():
        if not 0 < score <= 1:
            raise ValueError(
                f"public_scores must be in (0, 1], got {score!r} for {layer!r}."
            )
