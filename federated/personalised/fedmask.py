"""FedMask: weights stay as they are, and clients learn which of them to use."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.federated.engine import importance
from jaxanon.federated.engine.algorithm import CohortConfig, FederatedAlgorithm, Steps
from jaxanon.federated.engine.personal import (
    PersonalState,
    Reply,
    personal,
    split_layers,
    train,
)

HALF = 0.5  # Of a mask's sigmoid, from which on its weight is used.


class FedMaskClientState(NamedTuple):
    """What a client keeps from round to round."""

    masks: Any  # real numbers, less what they begin at
    retained: Any  # bool, weights that it did not prune
    last: jax.Array  # int32[], the round it took part in last; -1 before


class Overlap(NamedTuple):
    """What the server made of the masks of the last round."""

    means: Any  # in [0, 1], over clients that retain the weight
    shared: Any  # bool, whether two of them do
    round: jax.Array  # int32[], the round that comes


def fedmask(
    init_fn,
    loss_fn,
    steps: Steps,
    *,
    masked_layers: tuple[str, ...],
    num_clients: int,
    rounds: CohortConfig | None = None,
) -> FederatedAlgorithm:
    """Personal sub-networks of one network that nobody trains.

    A client has a real number for every weight of some layers, and uses the weights
    whose sigmoid reaches a half; it descends on those numbers by the straight-through
    estimator (``importance.binarise``). In its first round what falls below is pruned
    for good. From then on it sends one bit for each weight, and the server averages
    the bits over clients that retain the weight. Where two of them do, and a client's
    own bit is not that of the mean m (a half is enough to use the weight), its mask
    begins the next round at a sigmoid ``certainty`` of the way from 1 - m to m. Where
    they agree it goes on from where it was, or all that a round learns would be lost
    unless a bit turned. All other masks stay its own.

    This is our reading of what the paper says of itself; its masks are structured, so
    that what is left runs faster, and ours are not. What the server sees of a client
    are its bits, and so which weights it prunes.

    ``init(key, step_size=1.0, certainty=0.6)``, ``certainty`` in (1/2, 1), where masks
    begin, too. ``info`` has ``"loss"``, ``"used"``, the share of the masked weights in
    use, and ``"bytes_up"``, a bit for each weight, and ``"bytes_down"``, a float32.

    Args:
      init_fn: ``key -> params``, a dict of layers, random or trained elsewhere.
      loss_fn: see ``fedprox``.
      steps: ``Steps`` of a client's masks in a round.
      masked_layers: names of the layers that have masks; the paper takes the last ones.
      num_clients: clients of the population.
      rounds: ``CohortConfig``; None weighs clients alike.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``: ``params`` never change, ``own``
      is ``FedMaskClientState`` and ``server`` ``Overlap``. A client that never took
      part predicts with what the others share.

    Raises:
      ValueError: for no masked layers, and as ``Steps``, ``CohortConfig`` and
        ``personal``; from ``init``, for a name of no layer.

    Example:
      The client at 0 drops the weight of 2 in its first round.

      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["w"].sum() - x) ** 2
      >>> algorithm = fedmask(
      ...     lambda key: {"w": jnp.array([2.0, 1.0])}, loss, Steps(num_steps=1),
      ...     masked_layers=("w",), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), step_size=0.4)
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
        raise ValueError("masked_layers must name a layer at least, got none.")

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
        """Masks as a round begins: the others' where they are shared, else its own."""
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
        """The network that a client has with these masks."""
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
        share = sum(jnp.sum(leaf) for leaf in jax.tree.leaves(used)) / size
        info = {"loss": jnp.mean(losses), "used": jnp.asarray(share)}
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
        hyper={"step_size": 1.0, "certainty": 0.6},
        rounds=rounds or CohortConfig(weighting="clients"),
    )
