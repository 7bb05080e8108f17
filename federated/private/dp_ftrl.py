"""DP-FTRL: FedAvg with tree-aggregated noise, without sampling assumptions."""

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    Steps,
    arrays_of,
    built_once,
    count_clients,
    hyper_arrays,
    hyper_of,
    server_step,
)
from jaxanon.federated.engine.cohort import keyed_permutation
from jaxanon.federated.engine.hyper import in_range
from jaxanon.federated.engine.local import scaled_step
from jaxanon.federated.engine.personal import Client, PersonalState, train
from jaxanon.kernels.checks import whole
from jaxanon.privacy.sampled_gaussian import SampledGaussian


@built_once
def dp_ftrl(
    init_fn,
    loss_fn,
    *,
    steps: Steps,
    cohort_size: int,
    num_clients: int,
    client_optimizer=None,
    server_optimizer=None,
    layout: layouts.Layout | None = None,
) -> FederatedAlgorithm:
    """Builds DP-FTRL: central differential privacy of clients without sampling.

    Clients take turns in a random order, each in one round of a pass over the
    population. The server's model is the start plus the sum of all clipped changes,
    whose noise is that of a binary tree over the rounds of a pass. A pass has ``p =
    num_clients // cohort_size`` rounds, and its tree restarts. ``init(key,
    learning_rate=0.1, server_learning_rate=1.0, noise_multiplier=1.0, clip_norm=1.0)``.
    Each node of the tree has the standard deviation ``noise_multiplier * clip_norm``.
    Account for ``tree_gaussian(noise_multiplier, rounds, p)``. The guarantee does not
    depend on the order of clients, nor does it cover ``info["loss"]``.

    Args:
      init_fn, loss_fn: see ``fedavg``.
      steps: ``Steps`` of a client in a round.
      cohort_size: clients of a round, from 1 to ``num_clients``.
      num_clients: number of clients in the population, public.
      client_optimizer: see ``RoundConfig``. Changes are clipped after it.
      server_optimizer: Optax transformation of the noisy mean change, such as
        ``optax.sgd(1.0, momentum=0.9)``; ``server_learning_rate`` is then not used.
      layout: ``Layout``; None is ``default_layout``. It affects only speed.

    Returns:
      ``FederatedAlgorithm`` with a ``PersonalState`` without personal state.

    Raises:
      ValueError: for numbers of clients out of range. From ``init``, for a
        hyper-parameter on the host out of range. From ``update``, for a population of
        another size.

    Example:
      Changes of 2 and 0.5 are clipped to 1 and 0.5.

      >>> from jaxanon.federated import stack
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = dp_ftrl(
      ...     lambda key: jnp.zeros(()), square, steps=Steps(num_steps=1),
      ...     cohort_size=2, num_clients=2)
      >>> state = algorithm.init(
      ...     jax.random.key(0), learning_rate=0.5, noise_multiplier=0.0)
      >>> clients = stack([jnp.array([4.0]), jnp.array([1.0])])
      >>> algorithm.update(jax.random.key(1), state, clients)[0].params
      Array(0.75, dtype=float32)

    References:
      Kairouz et al., Practical and private (deep) learning without sampling or
      shuffling, ICML 2021, algorithm 1, for cohorts of clients and with restarts.
    """
    cohort_size = whole("cohort_size", cohort_size, least=1)
    num_clients = whole("num_clients", num_clients, least=1)
    if cohort_size > num_clients:
        raise ValueError(
            f"cohort_size must be in [1, {num_clients}], the number of clients, got "
            f"{cohort_size}."
        )
    period = num_clients // cohort_size
    defaults = {"learning_rate": 0.1, "server_learning_rate": 1.0}
    defaults |= {"noise_multiplier": 1.0, "clip_norm": 1.0}
    defaults = hyper_of(defaults, client_optimizer)

    def init(key, **values):
        in_range(values)
        params = arrays_of(init_fn(key))
        opt_state = server_optimizer and server_optimizer.init(params)
        return PersonalState(
            *(jnp.zeros((), jnp.int32), params, None, None),
            hyper_arrays(defaults, values),
            opt_state=opt_state,
        )

    def update(key, state, clients):
        if count_clients(clients) != num_clients:
            raise ValueError(
                f"population must have {num_clients} clients as the algorithm, got "
                f"{count_clients(clients)}; build it with that number."
            )
        hyper, norm = state.hyper, state.hyper["clip_norm"]
        client_key = jax.random.fold_in(key, state.round)
        turn, place = state.round // period, state.round % period
        order_key, noise_key = pass_keys(key, turn)
        places = place * cohort_size + jnp.arange(cohort_size, dtype=jnp.int32)
        ids = keyed_permutation(order_key, places, num_clients)

        def one(client):
            rows = jax.tree.map(lambda leaf: leaf[client], clients.rows)
            own_key = jax.random.fold_in(client_key, client)
            seen = (own_key, state.params, None, None, rows, clients.mask[client])
            seen = Client(*seen, hyper, client_optimizer)
            trained, losses = train(seen, loss_fn, state.params, steps)
            move = jax.tree.map(
                lambda old, new: (old - new)[None], state.params, trained
            )
            return kernels.clipped_sum(move, norm).value, {"loss": jnp.mean(losses)}

        chosen = layout
        if chosen is None:
            chosen = layouts.default_layout(state.params, cohort_size)
        weights = jnp.any(clients.mask[ids], axis=1).astype(jnp.result_type(float))
        total, info = layouts.sum_over_clients(one, ids, weights, chosen)
        noise = lambda count: tree_noise(
            jax.random.clone(noise_key),  # Nodes of both sums are the same.
            count,
            kernels.BoundedSum(jax.tree.map(jnp.zeros_like, total), norm),
            hyper["noise_multiplier"],
            max_rounds=period,
        )
        mean = jax.tree.map(
            lambda t, after, before: (t + (after - before)) / cohort_size,
            *(total, noise(place + 1), noise(place)),
        )
        if server_optimizer is None:
            rate = hyper["server_learning_rate"]
            params, opt_state = scaled_step(state.params, rate, mean), None
        else:
            params, opt_state = server_step(
                server_optimizer, mean, state.opt_state, state.params
            )
        after = state._replace(
            round=state.round + 1, params=params, opt_state=opt_state
        )
        return after, layouts.divide(info, jnp.sum(weights))

    return FederatedAlgorithm(init, update)


def pass_keys(key, turn):
    """Returns the keys of the order of clients and of the noise in a pass."""
    passes = jax.random.fold_in(key, jnp.uint32(2**32 - 1))  # No round has this number.
    return jax.random.split(jax.random.fold_in(passes, turn))


def tree_noise(key, count, zeros, noise_multiplier, *, max_rounds: int):
    """Returns the noise of a sum over the first rounds of a tree.

    Rounds are the leaves of a binary tree. Each node has independent noise, and a sum
    over ``count`` rounds has the noise of the complete nodes that make it up, one for
    each bit of ``count``.

    Args:
      key: typed PRNG key of the tree.
      count: ``int32[]`` in [0, ``max_rounds``].
      zeros: ``BoundedSum`` of zeros, with the clip norm of a client's change.
      noise_multiplier: z, standard deviation of a node over the clip norm.
      max_rounds: rounds of the tree, a Python int >= 1.

    Returns:
      Tree like ``zeros.value``.

    Example:
      >>> zeros = kernels.BoundedSum(jnp.zeros(2), 1.0)
      >>> tree_noise(jax.random.key(0), jnp.int32(0), zeros, 1.0, max_rounds=4)
      Array([0., 0.], dtype=float32)

    References:
      Dwork et al., Differential privacy under continual observation, STOC 2010; Chan,
      Shi and Song, Private and continual release of statistics, 2011.
    """

    def add(level, total):
        node_key = jax.random.fold_in(jax.random.fold_in(key, level), count >> level)
        noise = kernels.add_noise_to_sum(node_key, zeros, noise_multiplier)
        is_part = (count >> level) & 1 == 1
        return jax.tree.map(lambda t, n: t + jnp.where(is_part, n, 0), total, noise)

    return jax.lax.fori_loop(0, max_rounds.bit_length(), add, zeros.value)


def tree_gaussian(
    noise_multiplier: float, num_rounds: int, rounds_per_pass: int
) -> SampledGaussian:
    """Returns the release of ``dp_ftrl``, for ``jaxanon.privacy.epsilon_spent``.

    A client changes one leaf in each pass, and every node above it. These are at most
    ``floor(log2(rounds_per_pass)) + 1`` complete nodes, each a Gaussian mechanism
    without sampling. Passes add.

    Args:
      noise_multiplier: z > 0 of a node.
      num_rounds: rounds in all, >= 1.
      rounds_per_pass: ``num_clients // cohort_size`` of ``dp_ftrl``.

    Raises:
      TypeError: for a number of rounds that is not an integer.
      ValueError: for a number out of range.

    Example:
      Two passes of 4 rounds, and a tree of 3 levels.

      >>> tree_gaussian(2.0, 8, 4).steps
      6

    References:
      Kairouz et al., ICML 2021, theorem C.1.
    """
    num_rounds = whole("num_rounds", num_rounds, least=1)
    period = whole("rounds_per_pass", rounds_per_pass, least=1)
    whole_passes, rest = divmod(num_rounds, period)
    levels = whole_passes * period.bit_length() + rest.bit_length()
    return SampledGaussian(noise_multiplier=noise_multiplier, steps=levels)
