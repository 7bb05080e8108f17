"""LDP-FL: clients send one of two values for each weight."""

import math
from typing import Unpack

import jax
import jax.numpy as jnp

from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.local import scaled_step
from jaxanon.federated.engine.personal import replace_params, shared, train
from jaxanon.federated.private.dp_sgd import alike
from jaxanon.kernels.checks import positive


def two_points(key, weights, radius, epsilon):
    """Replaces each weight by one of two values, unbiased and ε-private per weight.

    A weight w, clipped to ``[-r, r]``, becomes ``± r (e^ε + 1) / (e^ε - 1)``. The
    positive value has probability ``(w (e^ε - 1) + r (e^ε + 1)) / (2 r (e^ε + 1))``.
    ε applies to each weight: k weights of a client cost k ε. Draws have 32 bits.
    Probabilities are rounded so that odds differ by at most e^ε for ε >= 1e-9, and by
    less than e^14.6 for any ε.

    Args:
      key: typed PRNG key.
      weights: ``float[...]``; NaN becomes 0.
      radius: r > 0, public, may be traced.
      epsilon: ε > 0, may be traced. Values are large for ε far below 1.

    Returns:
      ``float[...]`` in the shape and dtype of ``weights``.

    Raises:
      ValueError: for a radius or an ε on the host that is not above 0.

    Example:
      >>> weights = jnp.array([0.1, -3.0])
      >>> jnp.round(two_points(jax.random.key(0), weights, 1.0, jnp.log(3.0)), 4)
      Array([-2., -2.], dtype=float32)

    References:
      Sun, Qian and Chen, LDP-FL, arXiv 2007.15789, algorithm 2, around 0; Duchi, Jordan
      and Wainwright, JASA 2018.
    """
    positive(radius=radius, epsilon=epsilon)
    places = jnp.clip(weights.astype(jnp.float32) / radius, -1, 1)
    chances, slope = _chances(jnp.nan_to_num(places), epsilon)
    up = jax.random.bits(key, weights.shape, jnp.uint32) < chances
    return (jnp.where(up, radius, -radius) / slope).astype(weights.dtype)


def _chances(places, epsilon):
    """Returns the number of 2^32 draws that give the positive value, and the slope."""
    half = 2.0**31
    # (e^ε - 1) / (e^ε + 1) without overflow, reduced to compensate for rounding.
    slope = jnp.tanh(jnp.asarray(epsilon, jnp.float32) / 2) * (1 - 2**-20)
    most = jnp.maximum(jnp.floor(slope * half), 1)
    more = (most * places).astype(jnp.int32)
    return more.astype(jnp.uint32) + jnp.uint32(1 << 31), most / half


@built_once
def ldp_fl(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    radii,
    num_clients: int,
    cut_mean: bool = True,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds LDP-FL: SGD within the layers' ranges, and messages from ``two_points``.

    ``init(key, learning_rate=0.1, weight_epsilon=1.0)``. The published ε refers to one
    weight. A client's message costs ε times the number of weights, and rounds add (see
    ``jaxanon.privacy.responses_spent``). A useful network therefore needs an ε per
    client in the thousands. The paper's splitting and shuffling of weights does not
    change this. It hides the sender if the channel is trusted, but the paper does not
    analyse the joint ε of the shuffle. ``info`` has
    ``"loss"``; ``"bytes_up"``, one bit per weight, because both values are public; and
    ``"bytes_down"``.

    Args:
      init_fn: ``key -> params``, a dict of layers.
      loss_fn: ``(params, batch, key) -> float[B]``.
      steps: ``Steps`` of a client in a round.
      radii: public radius r > 0 of each layer's range around 0; a dict like ``params``,
        or one number for all layers.
      num_clients: number of clients in the population.
      cut_mean: whether the server clips the mean to the layer's range. This
        post-processing never increases the error. The paper uses the unclipped mean,
        which is far outside the range for small ε.
      **options: see ``RoundOptions``. Clients are weighted equally, because numbers
        of rows are private.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState`` without personal state.

    Raises:
      ValueError: for a radius that is not finite and > 0; also the conditions of
        ``Steps`` and ``personal``. From ``update``, for radii of other layers.

    Example:
      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["w"] - x) ** 2
      >>> algorithm = ldp_fl(
      ...     lambda key: {"w": jnp.zeros(())}, loss,
      ...     steps=Steps(num_steps=1), radii=2.0,
      ...     num_clients=1)
      >>> state = algorithm.init(
      ...     jax.random.key(0), learning_rate=0.5, weight_epsilon=50.0)
      >>> state, _ = algorithm.update(
      ...     jax.random.key(1), state, stack([jnp.array([9.0])]))
      >>> state.params["w"]
      Array(2., dtype=float32)

    References:
      Sun, Qian and Chen, LDP-FL: practical private aggregation in federated learning
      with local differential privacy, arXiv 2007.15789.
    """
    for radius in jax.tree.leaves(radii):
        if not 0 < radius < math.inf:
            raise ValueError(f"radii must be finite numbers > 0, got {radius!r}.")

    def of_layers(params):
        own = radii if isinstance(radii, dict) else dict.fromkeys(params, radii)
        if set(own) != set(params):
            raise ValueError(
                f"radii must have the layers {sorted(params)}, got {sorted(own)}."
            )
        return own

    def cut(params):
        own = of_layers(params)
        return {
            name: jax.tree.map(lambda w, r=own[name]: jnp.clip(w, -r, r), layer)
            for name, layer in params.items()
        }

    def train_fn(client):
        step_key, send_key = jax.random.split(client.key)
        own = of_layers(client.params)
        length = client.hyper["learning_rate"]

        def direction(params, grads):
            """Returns the direction of a step that is clipped to the range."""
            after = cut(scaled_step(params, length, grads))
            way = jnp.where(length > 0, length, 1)
            return jax.tree.map(lambda w, v: (w - v) / way, params, after)

        trained, losses = train(
            client,
            loss_fn,
            cut(client.params),
            steps,
            key=step_key,
            direction_fn=direction,
        )
        sent = {}
        for number, name in enumerate(sorted(trained)):
            leaves, treedef = jax.tree.flatten(trained[name])
            keys = jax.random.split(jax.random.fold_in(send_key, number), len(leaves))
            epsilon = client.hyper["weight_epsilon"]
            sent[name] = treedef.unflatten(
                two_points(key, leaf, own[name], epsilon)
                for key, leaf in zip(keys, leaves, strict=True)
            )
        return sent, losses

    def server(state, mean, share):
        return replace_params(state, cut(mean) if cut_mean else mean, share)

    return shared(
        init_fn,
        train_fn,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1, "weight_epsilon": 1.0},
        rounds=alike(options).reject("ldp_fl", "client_optimizer"),
        server_fn=server,
        traffic_fn=_traffic,
    )


def _traffic(params):
    """Returns the bytes sent (one bit per weight) and received (weights)."""
    size = sum(leaf.size for leaf in jax.tree.leaves(params))
    down = float(layouts.num_bytes(params))
    return {"bytes_up": jnp.asarray(size / 8), "bytes_down": jnp.asarray(down)}
