"""DP-FedAvg: noisy sums of client changes, clipped at an adaptive norm."""

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    Steps,
    arrays_of,
    built_once,
    hyper_arrays,
    hyper_of,
    server_step,
)
from jaxanon.federated.engine.hyper import in_range
from jaxanon.federated.engine.local import scaled_step
from jaxanon.federated.engine.personal import Client, PersonalState, train
from jaxanon.federated.private.dp_sgd import poisson_sample
from jaxanon.privacy.poisson_sampling import PoissonSampling


@built_once
def dp_fedavg(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    cohorts: PoissonSampling,
    count_stddev: float,
    client_optimizer=None,
    server_optimizer=None,
    layout: layouts.Layout | None = None,
) -> FederatedAlgorithm:
    """Builds DP-FedAvg: central differential privacy of clients with a trusted server.

    Clients join each cohort independently (Poisson sampling). Their changes are clipped
    and the sum gets noise. The clip norm follows a quantile of the norms of changes,
    estimated from a noisy count. ``init(key, learning_rate=0.1,
    server_learning_rate=1.0, noise_multiplier=1.0, clip_norm=1.0, quantile=0.5,
    norm_learning_rate=0.2)``; ``clip_norm`` is the initial clip norm, and
    ``noise_multiplier`` applies to sum and count together. Account for
    ``sampled_gaussian(cohorts, noise_multiplier, rounds)``. ``info`` has ``"loss"`` of
    the cohort, without guarantee, and ``"clip_norm"``, which the guarantee covers.

    Args:
      init_fn: ``key -> params``.
      loss_fn: ``(params, batch, key) -> float[B]``.
      steps: ``Steps`` of a client in a round.
      cohorts: ``PoissonSampling`` of clients.
      count_stddev: standard deviation > 0 of the count's noise, in clients. The paper
        uses ``cohorts.expected_batch_size / 20``.
      client_optimizer: see ``RoundConfig``. Changes are clipped after it.
      server_optimizer: Optax transformation of the noisy mean change, such as
        ``optax.adam(1e-2)``; ``server_learning_rate`` is then not used. None is SGD.
      layout: ``Layout``; None is ``default_layout``. It affects only speed.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState``; ``server`` is the clip norm.

    Raises:
      TypeError: under the conditions of ``PoissonSampling`` and ``Steps``. From
        ``init``, for a hyper-parameter that is not a number.
      ValueError: under the conditions of ``PoissonSampling`` and ``Steps``, or for a
        ``count_stddev`` that is not > 0. From ``init``, if the counts alone exceed the
        budget of a noise multiplier on the host. With a traced multiplier, parameters
        become infinite in this case.

    Example:
      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = dp_fedavg(
      ...     lambda key: jnp.zeros(()), square,
      ...     steps=Steps(num_steps=1), count_stddev=1e-3,
      ...     cohorts=PoissonSampling(
      ...         sampling_probability=1.0, expected_batch_size=2.0, max_examples=2))
      >>> state = algorithm.init(
      ...     jax.random.key(0), learning_rate=0.5, noise_multiplier=1e-3,
      ...     clip_norm=1.0)
      >>> clients = stack([jnp.array([4.0]), jnp.array([1.0])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> round(float(state.params), 2)  # Changes 2 (clipped to 1) and 0.5.
      0.75

    References:
      McMahan et al., Learning differentially private recurrent language models, ICLR
      2018, algorithm 1; Andrew et al., Differentially private learning with adaptive
      clipping, NeurIPS 2021, algorithm 1.
    """
    if not count_stddev > 0:
        raise ValueError(f"count_stddev must be > 0, got {count_stddev!r}.")
    defaults = {
        **{"learning_rate": 0.1, "server_learning_rate": 1.0, "noise_multiplier": 1.0},
        **{"clip_norm": 1.0, "quantile": 0.5, "norm_learning_rate": 0.2},
    }
    defaults = hyper_of(defaults, client_optimizer)

    def init(key, **values):
        in_range(values)
        given = defaults | values
        # Raises an error if the counts exceed the budget.
        kernels.noise_multiplier_with_counts(given["noise_multiplier"], count_stddev)
        arrays = hyper_arrays(defaults, values)
        params, norm = arrays_of(init_fn(key)), jnp.copy(arrays["clip_norm"])
        opt_state = server_optimizer and server_optimizer.init(params)
        return PersonalState(
            *(jnp.zeros((), jnp.int32), params, None, norm, arrays),
            opt_state=opt_state,
        )

    def update(key, state, clients):
        hyper, max_norm = state.hyper, state.server
        round_key = jax.random.fold_in(key, state.round)
        cohort_key, client_key, noise_key, count_key = jax.random.split(round_key, 4)
        ids, joined = poisson_sample(cohort_key, jnp.any(clients.mask, axis=1), cohorts)

        def one(client):
            rows = jax.tree.map(lambda leaf: leaf[client], clients.rows)
            own_key = jax.random.fold_in(client_key, client)
            seen = (own_key, state.params, None, None, rows, clients.mask[client])
            seen = Client(*seen, hyper, client_optimizer)
            trained, losses = train(seen, loss_fn, state.params, steps)
            move = jax.tree.map(jnp.subtract, state.params, trained)
            row = jax.tree.map(lambda leaf: leaf[None], move)
            clipped = kernels.clipped_sum(row, max_norm).value
            wide = lambda leaf: leaf.astype(jnp.promote_types(leaf.dtype, jnp.float32))
            squares = jax.tree.map(lambda leaf: jnp.sum(wide(leaf) ** 2), move)
            norm = jnp.sqrt(sum(jax.tree.leaves(squares)))
            return (clipped, {"loss": jnp.mean(losses)}), norm

        chosen = layout
        if chosen is None:
            chosen = layouts.default_layout(state.params, len(ids))
        weights = joined.astype(jnp.result_type(float))
        (total, info), norms = layouts.sum_and_keep(one, ids, weights, chosen)
        multiplier = kernels.noise_multiplier_with_counts(
            hyper["noise_multiplier"], count_stddev
        )
        bounded = kernels.BoundedSum(total, max_norm, jnp.sum(weights))
        noisy = kernels.add_noise_to_sum(noise_key, bounded, multiplier)
        next_norm = kernels.adapt_clip_norms(
            count_key,
            norms[:, None],
            max_norm,
            count_stddev=count_stddev,
            quantile=hyper["quantile"],
            learning_rate=hyper["norm_learning_rate"],
            expected_rows=cohorts.expected_batch_size,
            weights=weights,
        )
        expected, opt_state = cohorts.expected_batch_size, state.opt_state
        if server_optimizer is None:
            rate = hyper["server_learning_rate"] / expected
            params = scaled_step(state.params, rate, noisy)
        else:
            mean = jax.tree.map(lambda g: g / expected, noisy)
            params, opt_state = server_step(
                server_optimizer, mean, opt_state, state.params
            )
        info = layouts.divide(info, jnp.sum(weights)) | {"clip_norm": max_norm}
        after = state._replace(
            round=state.round + 1, params=params, server=next_norm, opt_state=opt_state
        )
        return after, info

    return FederatedAlgorithm(init, update)
