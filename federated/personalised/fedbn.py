"""FedBN: FedAvg whose clients keep their normalisation layers."""

import re
from typing import Unpack

from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundOptions,
    Steps,
    built_once,
)
from jaxanon.federated.engine.personal import Layers
from jaxanon.federated.personalised.fedper import fedper


def is_normalization(name: str) -> bool:
    """Returns whether a layer's name is that of a normalisation layer.

    Example:
      >>> [is_normalization(name) for name in ("BatchNorm_0", "bn1", "norm")]
      [True, True, True]
      >>> is_normalization("Dense_0"), is_normalization("normal_head")
      (False, False)
    """
    name = name.lower()
    norm = re.search("norm(?!al(?!i[sz]))", name)  # Not as in "normal".
    return norm is not None or name.strip("_0123456789") == "bn"


@built_once
def fedbn(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    num_clients,
    personal_layers: Layers = is_normalization,
    **options: Unpack[RoundOptions],
) -> FederatedAlgorithm:
    """Builds FedBN: FedPer whose personal layers are the normalisation layers.

    Clients with different feature scales then share all other layers.
    ``init(key, learning_rate=0.1)``.

    Args:
      init_fn: ``key -> params``; see ``fedper``.
      loss_fn: see ``fedprox``. It normalises with the batch's statistics, and padding
        is part of a batch of fewer rows; choose ``batch_size`` at most as large as the
        smallest client. Running statistics are not parameters, so clients without a
        batch must normalise otherwise.
      steps: ``Steps`` of a client in a round.
      num_clients: number of clients in the population.
      personal_layers: names of the normalisation layers, or ``name -> bool``.
      **options: see ``RoundOptions``.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``own`` holds the normalisation
      layers.

    Raises:
      ValueError: under the conditions of ``fedper``. From ``init``, for a model without
        such a layer.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from jaxanon.federated import stack
      >>> loss = lambda p, x, key: 0.5 * (p["dense"] * p["norm"] - x) ** 2
      >>> ones = lambda key: {"dense": jnp.ones(()), "norm": jnp.ones(())}
      >>> algorithm = fedbn(ones, loss, steps=Steps(num_steps=1), num_clients=2)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> clients = stack([jnp.array([3.0]), jnp.array([1.0])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params["dense"], state.own["norm"]
      (Array(1.5, dtype=float32), Array([2., 1.], dtype=float32))

    References:
      Li et al., FedBN: federated learning on non-IID features via local batch
      normalization, ICLR 2021, algorithm 1.
    """
    return fedper(
        init_fn,
        loss_fn,
        steps=steps,
        personal_layers=personal_layers,
        num_clients=num_clients,
        **options,
    )
