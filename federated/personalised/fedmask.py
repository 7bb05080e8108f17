"""FedMask: clients learn binary masks over fixed weights."""

from typing import Any, NamedTuple, Unpack

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
from jaxanon.federated.engine.personal import (
    PersonalState,
    Reply,
    personal,
    split_layers,
    train,
)

HALF = 0.5  # Threshold of a mask's sigmoid for using the weight.


class FedMaskClientState(NamedTuple):
    """Personal state of a client."""

    masks: Any  # real numbers, relative to their initial value
    retained: Any  # bool, False for pruned weights
    last: jax.Array  # int32[], last round of participation; -1 before


class Overlap(NamedTuple):
    """The server's aggregate of the masks of the last round."""

    means: Any  # in [0, 1], over clients that retain the weight
    shared: Any  # bool, whether at least two clients retain the weight
    round: jax.Array  # int32[], next round


@built_once
def fedmask(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    masked_layers: tuple[str, ...],
    num_clients: int,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds FedMask: personal sub-networks of one fixed network.

    A client has a real mask value for every weight of some layers and uses the weights
    whose sigmoid is at least 1/2. It trains these values with the straight-through
    estimator (``importance.binarise``). Weights below the threshold after the client's
    first round are pruned permanently. The client then sends one bit per weight, and
    the server averages the bits over clients that retain the weight.

    The mean m of the bits is used if at least two clients retain a weight. If a
    client's bit disagrees with the rounded mean (1/2 counts as use), its mask restarts
    at a sigmoid that interpolates from 1 - m to m by ``certainty``. If they agree, the
    mask continues from its value, so that training within a round is not lost. Other
    masks remain personal.

    This is our interpretation of the paper. Its masks are structured to speed up
    inference; ours are not. The server sees a client's bits, and therefore its pruned
    weights.

    ``init(key, learning_rate=1.0, certainty=0.6)``, with ``certainty`` in (1/2, 1),
    which is also the initial sigmoid of masks. ``info`` has ``"loss"``; ``"used"``, the
    fraction of masked weights in use; ``"bytes_up"``, one bit per weight; and
    ``"bytes_down"``, one float32 per weight.

    Args:
      init_fn: ``key -> params``, a dict of layers, random or pretrained.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of a client's masks in a round.
      masked_layers: names of the layers with masks; the paper uses the last layers.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``; clients are weighted equally by default.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``: ``params`` is constant, ``own``
      is ``FedMaskClientState`` and ``server`` is ``Overlap``. A client that never
      participated predicts with the shared masks.

    Raises:
      ValueError: for empty ``masked_layers``; also the conditions of ``Steps``,
        ``RoundConfig`` and ``personal``. From ``init``, for an unknown layer.

    Example:
      The client at 0 prunes the weight of 2 in its first round.

      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["w"].sum() - x) ** 2
      >>> algorithm = fedmask(
      ...     lambda key: {"w": jnp.array([2.0, 1.0])}, loss, steps=Steps(num_steps=1),
      ...     masked_layers=("w",), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.4)
      >>> clients = stack([jnp.array([3.0]), jnp.array([0.0])])
      >>> state, info = algorithm.update(jax.random.key(1), state, clients)
      >>> state.own.retained["w"].tolist(), info["used"]
      ([[True, True], [False, True]], Array(0.75, dtype=float32))
      >>> state.server.shared["w"].tolist(), state.server.means["w"].tolist()
      ([False, True], [1.0, 1.0])

    References:
      Li et al., FedMask: joint computation and communication-efficient personalized
      federated learning via heterogeneous masking, SenSys 2021.
    """
    if not masked_layers:
        raise ValueError("masked_layers must have at least one layer, got none.")
    rounds = RoundConfig(**{"weighting": "clients"} | options)
    rounds.reject("fedmask", "server_optimizer")

    def init(key):
        params = init_fn(key)
        _, of_masks = split_layers(params, tuple(masked_layers))
        zeros = lambda: jax.tree.map(jnp.zeros_like, of_masks)
        flags = lambda value: jax.tree.map(
            lambda w: jnp.full(w.shape, value, bool), of_masks
        )
        server = Overlap(zeros(), flags(False), jnp.zeros((), jnp.int32))
        return params, FedMaskClientState(zeros(), flags(True), jnp.int32(-1)), server

    def begun(client):
        """Returns masks at the start of a round, from shared and personal masks."""
        certain, (means, shared, _) = client.hyper["certainty"], client.server
        logit = jax.scipy.special.logit

        def one(own, retained, mean, shared):
            merged = logit(0.5 + (certain - 0.5) * (2 * mean - 1))
            kept = own + logit(certain).astype(own.dtype)
            other = (merged >= 0) != (kept >= 0)
            return jnp.where(shared & retained & other, merged.astype(own.dtype), kept)

        own = client.own
        return jax.tree.map(one, own.masks, own.retained, means, shared)

    def weights(client, masks):
        """Returns a client's network with given masks."""
        frozen, layers = split_layers(client.params, tuple(masked_layers))
        used = importance.apply_masks(layers, masks, HALF)
        keep = lambda w, retained: jnp.where(retained, w, 0)
        return frozen | jax.tree.map(keep, used, client.own.retained)

    def client_fn(client):
        masks, losses = train(
            client,
            lambda masks, batch, key: loss_fn(weights(client, masks), batch, key),
            begun(client),
            steps,
        )
        bits = jax.tree.map(lambda e: importance.binarise(e, HALF), masks)
        first = client.own.last < 0
        prune = lambda retained, bit: jnp.where(first, bit > 0, retained)
        retained = jax.tree.map(prune, client.own.retained, bits)
        kept = jax.tree.map(lambda flag: flag.astype(jnp.result_type(float)), retained)
        used = jax.tree.map(jnp.multiply, bits, kept)
        size = sum(leaf.size for leaf in jax.tree.leaves(used))
        fraction = sum(jnp.sum(leaf) for leaf in jax.tree.leaves(used)) / size
        info = {"loss": jnp.mean(losses), "used": jnp.asarray(fraction)}
        info |= {
            "bytes_up": jnp.asarray(size / 8),
            "bytes_down": jnp.asarray(4.0 * size),
        }
        start = jax.scipy.special.logit(client.hyper["certainty"])
        masks = jax.tree.map(lambda e: e - start.astype(e.dtype), masks)
        return Reply(
            (used, kept), FedMaskClientState(masks, retained, client.server.round), info
        )

    def server(state: PersonalState, mean, share):
        del share
        used, kept = mean
        means = jax.tree.map(lambda u, k: u / jnp.where(k > 0, k, 1), used, kept)
        joined = state.own.last == state.server.round

        def twice(retained):
            flags = retained & joined.reshape(-1, *[1] * (retained.ndim - 1))
            return jnp.sum(flags, axis=0) > 1

        shared = jax.tree.map(twice, state.own.retained)
        means = jax.tree.map(lambda m, w: m.astype(w.dtype), means, state.server.means)
        return state._replace(server=Overlap(means, shared, state.server.round + 1))

    return personal(
        init,
        client_fn,
        server,
        lambda client: weights(client, begun(client)),
        num_clients=num_clients,
        hyper={"learning_rate": 1.0, "certainty": 0.6},
        rounds=RoundConfig(**{"weighting": "clients"} | options).reject(
            "fedmask", "server_optimizer"
        ),
    )
