"""Atlas: important layers are everybody's, and noise follows their importance."""

import functools

import jax
import jax.numpy as jnp

from jaxanon.federated.engine import importance
from jaxanon.federated.engine.algorithm import CohortConfig, FederatedAlgorithm, Steps
from jaxanon.federated.engine.personal import PersonalState, personal, train
from jaxanon.federated.private import atlas_rounds
from jaxanon.federated.private.atlas_rounds import AtlasClientState, Settings, begun
from jaxanon.federated.private.dp_sgd import alike, lot_bytes
from jaxanon.privacy.poisson_sampling import PoissonSampling

HYPER = {
    **{"step_size": 0.1, "mask_step_size": 0.1, "threshold": 0.5},
    **{"first_score": 0.6, "max_norm": 1.0, "noise_multiplier": 1.0},
    **{"score_norm": 1.0, "score_multiplier": 1.0, "own_step_size": 0.1},
}


def atlas(
    init_fn,
    loss_fn,
    steps: Steps,
    *,
    num_clients: int,
    lots: PoissonSampling | None = None,
    guarantee: str = "example",
    reading: str = "rescaled",
    clipping: str = "even",
    scores: str = "privatised",
    public_scores: dict | None = None,
    send_every_layer: bool = False,
    most_layers: int | None = None,
    send_slots: int | None = None,
    own_steps: Steps | None = None,
    rounds: CohortConfig | None = None,
) -> FederatedAlgorithm:
    """Personal models of global and local layers, as masks learned beside them say.

    A client trains its weights and their masks (``importance``); layers whose score
    reaches the threshold are sent and averaged over those who sent them, the others
    stay. That a client has a row at all is no secret.

    With ``lots`` every step hides an example: each layer of its gradient is clipped,
    and layer m of the lot's sum gets noise that its score E_m has a part in. Gradients
    are those of the masked weights; those of weights and masks follow from them and
    from nothing else that is private. Account for ``sampled_gaussian(lots,
    noise_multiplier, rounds * steps)``. With ``guarantee="client"`` steps are as they
    come, and a round hides a client's data: the way of each layer from what the server
    sent is clipped and gets noise, not divided by any lot. Account for a
    ``SampledGaussian`` of each round that a client may be asked, without sampling: the
    server knows who takes part. It is local, whatever the data, at half the multiplier,
    for two updates may be apart by twice the clip norm.

    ``init(key, step_size=0.1, mask_step_size=0.1, threshold=0.5, first_score=0.6,
    max_norm=1.0, noise_multiplier=1.0, score_norm=1.0, score_multiplier=1.0,
    own_step_size=0.1)``, the last that of ``own_steps``, whose gradients nobody clips.
    ``noise_multiplier`` is z*, of all layers together. The squares of their clip norms
    C_m add up to that of ``max_norm``; they are all the same, or with
    ``clipping="scores"`` as E_m, and z* does not depend on it. For each reading of the
    paper's equations 3.5 to 3.9:

    - "rescaled", noise of E_m C_m times what makes z* hold for all layers together;
    - "A", noise of √M z* C_m, and scores as a step size: z* holds;
    - "B", the same noise, on sums multiplied by scores: (Σ E²/M)^(-1/2) z*, which is
      more private;
    - "C", noise of E_m √M z* C_m, as the text has it: (Σ E^-2/M)^(-1/2) z*, so **z*
      does not hold**; account for ``effective_noise_multiplier(..., scores,
      reading="C")`` with scores of every step, or have no guarantee. ``own.least`` is
      the least share of z* that a client's steps had.

    Scores, what is sent and how much noise comes next are

    - "privatised", made of noisy gradients or updates alone, and cost nothing more;
    - "released", once a round, as M numbers that are clipped to ``score_norm`` and get
      ``score_multiplier`` times that as noise (``atlas_scores``): one more Gaussian
      mechanism, over a lot or of a client; masks inside layers are as private as with
      the others of that guarantee;
    - "public", given, and no masks are learned;
    - "hidden", a client's alone: it sends every layer, noise is even, and which layers
      it takes back nobody sees; for ``guarantee="client"`` only;
    - "published", of masks that follow gradients before the noise: **no guarantee**.

    ``info`` has ``"loss"`` (of clients' rows, not covered), ``"layers"``, how many were
    shared on average, and ``"bytes_up"`` and ``"bytes_down"`` of a client: layers that
    it shares, both ways, and one score for each layer.

    Args:
      init_fn: ``key -> params``, a dict of M layers.
      loss_fn: ``(params, batch, key) -> float[B]``, with ``lots`` each of its own row.
      steps: ``Steps`` of a client in a round; with ``lots`` only how many.
      num_clients: clients of the population.
      lots: ``PoissonSampling`` of noisy steps; None takes plain ones, which guarantee
        nothing unless ``guarantee`` is "client".
      guarantee: whom noise hides, an "example" or a "client".
      reading: one of ``READINGS``.
      clipping: one of ``CLIPPINGS``.
      scores: one of ``SCORES``.
      public_scores: score in (0, 1] of each layer, for ``"public"``.
      send_every_layer: clients send all layers, so that nobody sees which they share;
        what each takes back stays its own affair.
      most_layers: so many layers are shared at most, those of the largest scores.
      send_slots: each layer is sent by itself, at a random one of so many times, with
        no name on it but the layer's (``shuffle_messages``): the mean is the same, a layer is 4
        bytes longer, and ε no less; see ``observed_shuffled`` for what the server has.
        None: a client's layers and all its scores are one message.
      own_steps: ``Steps`` by which a client fits its model to its rows before it
        predicts, without noise; nothing of that is ever sent or trained on.
      rounds: ``CohortConfig``; None weighs clients alike, for numbers of rows are
        private.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` is ``AtlasClientState``.

    Raises:
      ValueError: for an unknown word, ``public_scores`` of other layers or without
        their kind, settings that do not go together, and as ``Steps``,
        ``PoissonSampling`` and ``personal``; from ``init``, for a hyper-parameter out
        of its range.

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
    settings = Settings(
        loss_fn=loss_fn,
        steps=steps,
        lots=lots,
        guarantee=guarantee,
        reading=reading,
        clipping=clipping,
        scores=scores,
        public_scores=public_scores,
        send_every_layer=send_every_layer,
        most_layers=most_layers,
        send_slots=send_slots,
    )
    private = lots is not None or guarantee == "client"
    of_round = {
        "example": atlas_rounds.of_examples,
        "client": atlas_rounds.of_client,
    }[guarantee]

    def init(key):
        params = init_fn(key)
        if public_scores is not None and set(public_scores) != set(params):
            raise ValueError(
                f"public_scores must be of the layers {sorted(params)}, got "
                f"{sorted(public_scores)}."
            )
        zeros = jax.tree.map(jnp.zeros_like, params)
        everything = {name: jnp.array(True) for name in params}
        dtype = jnp.result_type(float)
        logits = {name: jnp.zeros((), dtype) for name in params}
        logits = logits if scores == "released" else None
        least = jnp.ones((), dtype) if private and reading == "C" else None
        return params, AtlasClientState(params, zeros, everything, logits, least), None

    def model(client):
        params, masks, _ = begun(client)
        weights = importance.apply_masks(params, masks, client.hyper["threshold"])
        if own_steps is None:
            return weights
        hyper = client.hyper | {"step_size": client.hyper["own_step_size"]}
        return train(client._replace(hyper=hyper), loss_fn, weights, own_steps)[0]

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
        rounds=alike(rounds)
        if private
        else rounds or CohortConfig(weighting="clients"),
        alone_fn=functools.partial(atlas_rounds.alone, settings),
        example_bytes_fn=example_bytes_fn,
        direction_fn=_way,
        is_valid_fn=_legal,
    )


def _way(state: PersonalState, sent):
    """How far the layers moved that a client sent."""
    layers, senders = sent
    flags = importance.per_layer(senders, state.params)
    way = lambda new, old, flag: new - flag * old  # Layers not sent are 0.
    return jax.tree.map(way, layers, state.params, flags)


def _legal(sent):
    """Whether all layers are sent or not, and those that are not are 0."""
    layers, senders = sent
    flags = importance.per_layer(senders, layers)
    one = lambda flag: jnp.abs(flag - 1) <= 1e-5  # Of n of n rows, up to rounding.
    fine = lambda layer, flag: jnp.all(one(flag) | ((flag == 0) & (layer == 0)))
    return jnp.all(jnp.stack(jax.tree.leaves(jax.tree.map(fine, layers, flags))))


def _averaged(state: PersonalState, mean, share):
    """Layers averaged over those who sent them; one that nobody sent stays."""
    del share
    total, senders = mean
    counts = importance.per_layer(senders, state.params)

    def merge(old, summed, count):
        new = summed / jnp.where(count > 0, count, 1)
        return jnp.where(count > 0, new, old).astype(old.dtype)

    return state._replace(params=jax.tree.map(merge, state.params, total, counts))
