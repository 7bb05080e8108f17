"""FedSGD-LDP: local DP-SGD on clients and averaging on the server."""

import functools
from typing import Unpack

from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.personal import shared
from jaxanon.federated.private.dp_sgd import alike, local_dp_sgd, lot_bytes
from jaxanon.privacy.poisson_sampling import PoissonSampling


@built_once
def fedsgd_ldp(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    lots: PoissonSampling,
    num_clients: int,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds FedSGD-LDP: DP-SGD with flat clipping on every client.

    ``init(key, learning_rate=0.1, clip_norm=1.0, noise_multiplier=1.0)``. The guarantee
    protects one example of a client from everyone who sees its messages, including the
    server. Account for ``sampled_gaussian(lots, noise_multiplier, rounds *
    num_steps)``. Whether a client has any rows is not protected, and the guarantee does
    not cover ``info["loss"]``.

    Args:
      init_fn: ``key -> params``.
      loss_fn: ``(params, batch, key) -> float[B]``; each loss must depend on its row
        only.
      lots: ``PoissonSampling``. It is the same for all clients.
      steps: ``Steps`` of a client in a round; only ``num_steps`` is used.
      num_clients: number of clients in the population.
      **options: see ``RoundOptions``. Clients are weighted equally, because numbers
        of rows are private.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState`` without personal state.

    Raises:
      ValueError: for ``steps`` without ``num_steps``; also the conditions of ``Steps``,
        ``PoissonSampling`` and ``personal``.

    Example:
      >>> import jax
      >>> import jax.numpy as jnp
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fedsgd_ldp(
      ...     lambda key: jnp.zeros(()), square,
      ...     steps=Steps(num_steps=1), num_clients=2,
      ...     lots=PoissonSampling(
      ...         sampling_probability=1.0, expected_batch_size=1.0, max_examples=1))
      >>> state = algorithm.init(
      ...     jax.random.key(0), learning_rate=0.5, clip_norm=2.0, noise_multiplier=0.0)
      >>> clients = stack([jnp.array([4.0]), jnp.array([1.0])])
      >>> algorithm.update(jax.random.key(1), state, clients)[0].params
      Array(0.75, dtype=float32)

    References:
      Truex et al., LDP-Fed, EdgeSys 2020, with the Gaussian mechanism per example of
      Atlas's baseline; Abadi et al., CCS 2016.
    """
    num_steps = steps.exact("fedsgd_ldp")

    def train_fn(client):
        return local_dp_sgd(
            loss_fn,
            client.key,
            client.params,
            client.rows,
            client.mask,
            lots=lots,
            optimizer=client.optimizer,
            num_steps=num_steps,
            clip_norms=client.hyper["clip_norm"],
            noise_multipliers=client.hyper["noise_multiplier"],
        )

    return shared(
        init_fn,
        train_fn,
        num_clients=num_clients,
        hyper={"learning_rate": 0.1, "clip_norm": 1.0, "noise_multiplier": 1.0},
        rounds=alike(options),
        example_bytes_fn=functools.partial(lot_bytes, loss_fn, lots=lots),
    )
