"""Atlas: personal models with shared layers and noise chosen by layer importance."""

import functools
from typing import Unpack

import jax
import jax.numpy as jnp

from jaxanon.federated.engine import importance
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.personal import PersonalState, personal, train
from jaxanon.federated.private import atlas_rounds
from jaxanon.federated.private.atlas_rounds import AtlasClientState, Settings, begun
from jaxanon.federated.private.dp_sgd import alike, lot_bytes
from jaxanon.privacy.poisson_sampling import PoissonSampling

HYPER = {
    **{"learning_rate": 0.1, "mask_learning_rate": 0.1, "threshold": 0.5},
    **{"first_score": 0.6, "clip_norm": 1.0, "noise_multiplier": 1.0},
    **{"score_norm": 1.0, "score_multiplier": 1.0, "finetune_learning_rate": 0.1},
}


@built_once
def atlas(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    num_clients: int,
    lots: PoissonSampling | None = None,
    privacy_unit: str = "example",
    noise_interpretation: str = "rescaled",
    clipping: str = "even",
    scores: str = "privatised",
    public_scores: dict | None = None,
    send_every_layer: bool = False,
    max_layers: int | None = None,
    send_slots: int | None = None,
    finetune_steps: Steps | None = None,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds Atlas: personal models of shared and personal layers, chosen by masks.

    A client trains weights and masks (see ``importance``). Layers whose score reaches
    the threshold are sent and averaged over the clients that sent them; other layers
    are personal. Whether a client has any rows is not protected.

    With ``lots``, every step protects examples. Each layer of a per-example gradient is
    clipped, and layer m of the batch sum gets noise that depends on its score E_m.
    Gradients of weights and masks are post-processing of this noisy gradient of the
    masked weights. Account for ``sampled_gaussian(lots, noise_multiplier, rounds *
    steps)``. With ``privacy_unit="client"``, steps are exact and each round protects a
    client's data: the change of each layer since the server's broadcast is clipped and
    gets noise. Account for a ``SampledGaussian`` of every round in which a client may
    be asked, without sampling, because the server knows the participants. The same
    noise gives local privacy with half the multiplier, since two updates may differ by
    twice the clip norm.

    ``init(key, learning_rate=0.1, mask_learning_rate=0.1, threshold=0.5,
    first_score=0.6, clip_norm=1.0, noise_multiplier=1.0, score_norm=1.0,
    score_multiplier=1.0, finetune_learning_rate=0.1)``. ``finetune_learning_rate``
    applies to ``finetune_steps``, whose gradients are not clipped. ``noise_multiplier``
    is z* of all layers together. The squared clip norms C_m sum to the square of
    ``clip_norm``. They are equal, or proportional to E_m with ``clipping="scores"``,
    and z* does not depend on this choice. The readings of the paper's equations 3.5 to
    3.9 are:

    - "rescaled": noise proportional to E_m C_m, scaled so that z* holds jointly.
    - "A": noise of √M z* C_m, with scores as learning rates; z* holds.
    - "B": the same noise on sums multiplied by scores, which is more private:
      (Σ E²/M)^(-1/2) z*.
    - "C": noise of E_m √M z* C_m, as in the paper's text: (Σ E^-2/M)^(-1/2) z*, so **z*
      does not hold**. Account with ``noise_multiplier_of_layers(..., scores,
      noise_interpretation="C")`` and the scores of every step; otherwise it gives no
      guarantee. ``own.least`` is the smallest fraction of z* over a client's steps.

    Scores determine which layers are sent and the noise of the next step:

    - "privatised": from noisy gradients or updates only, at no further cost.
    - "released": once per round as M numbers, clipped to ``score_norm`` with noise of
      ``score_multiplier`` times that norm. This is one more Gaussian mechanism, over a
      batch or a client. Masks within layers are as private as with "privatised"
      (examples) or "hidden" (clients).
    - "public": given scores, without learnt masks.
    - "hidden": known only to the client. It sends every layer, noise is even, and the
      layers that it takes back are not visible. Only for ``privacy_unit="client"``.
    - "published": from masks that follow gradients before the noise: **no guarantee**.

    ``info`` has ``"loss"`` of clients' rows, which the guarantee does not cover, and
    ``"layers"``, the mean number of shared layers. ``"bytes_up"`` and ``"bytes_down"``
    count a client's shared layers in both directions, and one score per layer.

    Args:
      init_fn: ``key -> params``, a dict of M layers.
      loss_fn: ``(params, batch, key) -> float[B]``; with ``lots``, each loss must
        depend only on its row.
      steps: ``Steps`` of a client in a round. With ``lots`` only ``num_steps`` is used.
      num_clients: number of clients in the population.
      lots: ``PoissonSampling`` of noisy steps. None uses plain steps. These have a
        guarantee only if ``privacy_unit`` is "client".
      privacy_unit: privacy unit, "example" or "client".
      noise_interpretation: one of ``READINGS``. See above.
      clipping: one of ``CLIPPINGS``. See above.
      scores: one of ``SCORES``. See above.
      public_scores: score in (0, 1] of each layer. Required for ``"public"``.
      send_every_layer: whether clients send all layers, which hides the layers that
        they share.
      max_layers: maximum number of shared layers, by largest scores.
      send_slots: number of time slots in which layers are sent separately and
        anonymously (see ``shuffle_messages``). The mean and ε are the same, and a layer
        is 4 bytes longer. For the server's view see ``simulate_observed_shuffled``.
        None sends a client's layers and scores as one message.
      finetune_steps: ``Steps`` of local fine-tuning before prediction, without noise.
        The result is never sent or used in training.
      **options: see ``RoundOptions``. Clients are weighted equally, because numbers
        of rows are private.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` is ``AtlasClientState``.

    Raises:
      ValueError: for an unknown choice, ``public_scores`` for other layers or without
        ``scores="public"``, or incompatible settings. Also the conditions of ``Steps``,
        ``PoissonSampling`` and ``personal``. From ``init``, for a hyper-parameter out
        of range.

    Example:
      Two clients whose model is the sum of ``w`` and ``v``. Both layers are shared, and
      one step of each client moves ``w`` to 2 and 0, with mean 1.

      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["w"] + p["v"] - x) ** 2
      >>> zeros = lambda key: {"w": jnp.zeros(()), "v": jnp.zeros(())}
      >>> algorithm = atlas(zeros, loss, steps=Steps(num_steps=1), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, info = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params["w"], info["layers"]
      (Array(1., dtype=float32), Array(2., dtype=float32))

    References:
      Atlas, chapter 3, equations 3.1 to 3.10; McMahan et al., arXiv 1812.06210, for
      noise per layer; Dwork and Roth, 2014, proposition 2.1, for post-processing.
    """
    settings = Settings(
        loss_fn=loss_fn,
        steps=steps,
        lots=lots,
        privacy_unit=privacy_unit,
        noise_interpretation=noise_interpretation,
        clipping=clipping,
        scores=scores,
        public_scores=public_scores,
        send_every_layer=send_every_layer,
        max_layers=max_layers,
        send_slots=send_slots,
    )
    steps.exact("atlas")
    private = lots is not None or privacy_unit == "client"
    rounds = RoundConfig(**{"weighting": "clients"} | options)
    if private:
        rounds = alike(options)
    of_round = {
        "example": atlas_rounds.of_examples,
        "client": atlas_rounds.of_client,
    }[privacy_unit]

    def init(key):
        params = init_fn(key)
        if public_scores is not None and set(public_scores) != set(params):
            raise ValueError(
                f"public_scores must have the layers {sorted(params)}, got "
                f"{sorted(public_scores)}."
            )
        zeros = jax.tree.map(jnp.zeros_like, params)
        everything = {name: jnp.array(True) for name in params}
        dtype = jnp.result_type(float)
        logits = {name: jnp.zeros((), dtype) for name in params}
        logits = logits if scores == "released" else None
        least = jnp.ones((), dtype) if private and noise_interpretation == "C" else None
        return params, AtlasClientState(params, zeros, everything, logits, least), None

    def model(client):
        params, masks, _ = begun(client)
        weights = importance.apply_masks(params, masks, client.hyper["threshold"])
        if finetune_steps is None:
            return weights
        hyper = client.hyper | {"learning_rate": client.hyper["finetune_learning_rate"]}
        return train(client._replace(hyper=hyper), loss_fn, weights, finetune_steps)[0]

    example_bytes_fn = None
    if lots is not None:
        example_bytes_fn = functools.partial(lot_bytes, loss_fn, lots=lots)
    return personal(
        init,
        functools.partial(of_round, settings),
        _averaged,
        model,
        num_clients=num_clients,
        hyper=HYPER,
        rounds=rounds.reject("atlas", "client_optimizer"),
        alone_fn=functools.partial(atlas_rounds.alone, settings),
        example_bytes_fn=example_bytes_fn,
        direction_fn=_direction,
        is_valid_fn=_is_valid,
    )


def _direction(state: PersonalState, sent):
    """Returns the change of the layers that a client sent."""
    layers, senders = sent
    flags = importance.per_layer(senders, state.params)
    way = lambda new, old, flag: new - flag * old  # Layers not sent are 0.
    return jax.tree.map(way, layers, state.params, flags)


def _is_valid(sent):
    """Returns whether every layer is either sent (flag 1) or 0 with flag 0."""
    layers, senders = sent
    flags = importance.per_layer(senders, layers)
    one = lambda flag: jnp.abs(flag - 1) <= 1e-5  # 1 up to rounding.
    fine = lambda layer, flag: jnp.all(one(flag) | ((flag == 0) & (layer == 0)))
    return jnp.all(jnp.stack(jax.tree.leaves(jax.tree.map(fine, layers, flags))))


def _averaged(state: PersonalState, mean, share):
    """Averages layers over the clients that sent them; others are unchanged."""
    del share
    total, senders = mean
    counts = importance.per_layer(senders, state.params)

    def merge(old, summed, count):
        new = summed / jnp.where(count > 0, count, 1)
        return jnp.where(count > 0, new, old).astype(old.dtype)

    return state._replace(params=jax.tree.map(merge, state.params, total, counts))
