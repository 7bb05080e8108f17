"""Federated MAML: server steps along the gradient of adapted client losses."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from jaxanon import kernels
from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundStages,
    State,
    built_once,
    hyper_arrays,
    one_round,
)
from jaxanon.federated.engine.cohort import sample_cohort
from jaxanon.federated.engine.hyper import in_range
from jaxanon.federated.engine.local import scaled_step
from jaxanon.kernels.checks import whole

CHUNK = {"cpu": 64}  # Clients in parallel; fills the cores and fits the cache.

DEFAULT_CHUNK = 4096

LIST = 0x6C697374  # "list"; folded into a run's key for repeated rows.


@built_once
def fed_maml(
    init_fn: Callable,
    draw_fn: Callable,
    phases_fn: Callable,
    objectives_fn: Callable,
    *,
    hyper: dict,
    server_optimizer: optax.GradientTransformation,
    cohort_size_fn: Callable = lambda num_clients: num_clients,
    rounds_per_cohort: int = 1,
    rounds_per_list: int | None = None,
    learning_rates_fn: Callable | None = None,
    ema_decay: float = 0.0,
    alone_fn: Callable | None = None,
    alone_rounds: int = 0,
    second_order: bool = True,
    implementation: str | None = None,
    chunk: int | None = None,
) -> FederatedAlgorithm:
    """Builds model-agnostic meta-learning over clients, with per-group inner losses.

    ``init(key, **hyper) -> state``; ``update(key, state, data) -> (state, info)`` is a
    round over ``data``, arrays ``[clients, ...]``. A cohort adapts on support sets and
    is evaluated on query sets. The server takes one step along the mean meta-gradient
    with learning rate ``hyper["server_learning_rate"]``.

    Args:
      init_fn: ``key -> params``, a dict of groups.
      draw_fn: ``(key, client, data) -> (support, query, weight)``, a random draw for
        client ``client`` (``int32[]``). A weight of 0 excludes the client.
      phases_fn: ``hyper -> phases``, see ``jaxanon.kernels.Phase``.
      objectives_fn: ``hyper -> objectives``, see ``jaxanon.kernels.Objective``.
      hyper: names and defaults of the hyper-parameters, including
        ``server_learning_rate``. They become arrays, so other values do not recompile.
      server_optimizer: Optax transformation with learning rate 1: ``optax.adam(1.0)``.
      cohort_size_fn: ``num_clients -> int``, clients per round. The default is all.
      rounds_per_cohort: rounds before a new cohort is sampled.
      rounds_per_list: period in rounds after which a client's rows repeat. Then
        ``draw_fn(key, client, data, rows_key)`` must draw rows with ``rows_key`` and
        everything else with ``key``. None draws new rows each round.
      learning_rates_fn: ``hyper -> {group: float[]}``, server learning rates of single
        groups.
      ema_decay: decay of the running mean of the parameters, ``state.average``, in
        [0, 1); 0 disables it. Early decay is smaller, so the initial parameters are
        quickly forgotten.
      alone_fn: ``hyper -> objective`` of groups, such as discriminators, that train
        further after each round, without inner steps and with all others fixed.
      alone_rounds: number of these further rounds, on new draws of the same cohort.
      second_order: whether to differentiate through the inner steps.
      implementation: see ``jaxanon.kernels.meta_gradient``.
      chunk: clients computed in parallel. None is 64 on a CPU and 4096 elsewhere. It
        changes results only by rounding.

    Raises:
      ValueError: if ``hyper`` lacks ``server_learning_rate``, or for ``ema_decay`` or
        numbers of rounds out of range. From ``init``, for a ``learning_rate`` on the
        host out of range.
      TypeError: for numbers of rounds that are not integers. From ``init``, for a name
        that is not in ``hyper``, or a ``learning_rate`` that is not a number.

    Example:
      Two clients with losses ``(w - t)²/2`` and inner learning rate 0.5: the
      meta-gradient is ``(w - t)/4``, and its mean over targets 2 and 6 is -1.

      >>> loss = lambda params, t: 0.5 * (params["net"]["w"] - t) ** 2
      >>> algorithm = fed_maml(
      ...     lambda key: {"net": {"w": jnp.zeros(())}},
      ...     lambda key, client, data: (data[client], data[client], jnp.ones(())),
      ...     lambda hyper: [kernels.Phase(("net",), loss, 0.5)],
      ...     lambda hyper: [
      ...         kernels.Objective(("net",), lambda p, t: (loss(p, t), {}))],
      ...     hyper={"server_learning_rate": 1.0},
      ...     server_optimizer=optax.sgd(1.0))
      >>> state = algorithm.init(jax.random.key(0))
      >>> state, _ = algorithm.update(jax.random.key(1), state, jnp.array([2.0, 6.0]))
      >>> state.params["net"]["w"]
      Array(1., dtype=float32)

    References:
      Finn et al., ICML 2017; Yang and Ardakanian, Blinder, 2023, Algorithm 1.
    """
    if "server_learning_rate" not in hyper:
        raise ValueError(
            f"hyper must have 'server_learning_rate', got {sorted(hyper)}; add the "
            "server's learning rate."
        )
    whole("rounds_per_cohort", rounds_per_cohort, least=1)
    if rounds_per_list is not None:
        rounds_per_list = whole("rounds_per_list", rounds_per_list, least=1)
    if not 0 <= ema_decay < 1:
        raise ValueError(
            f"ema_decay must be in [0, 1), got {ema_decay!r}; 0 disables the mean."
        )

    @jax.jit  # Without jit, initialization of networks takes seconds.
    def start(key):
        params = init_fn(key)
        opt_state = {
            group: server_optimizer.init(tree) for group, tree in params.items()
        }
        return params, opt_state

    def init(key, **values):
        in_range(values)
        arrays = hyper_arrays(hyper, values)
        params, opt_state = start(key)
        average = jax.tree.map(jnp.copy, params) if ema_decay else None
        return State(jnp.zeros((), jnp.int32), params, opt_state, arrays, average)

    more_stages = alone_rounds if alone_fn is not None else 0

    def cohort(key, state, num_clients):
        size = cohort_size_fn(num_clients)
        return sample_cohort(
            key, state.round, num_clients, size, rounds_per_cohort=rounds_per_cohort
        )

    def work(key, state, data, ids, counted, at=None, stage=0):
        _, client_key = jax.random.split(jax.random.fold_in(key, state.round))
        step_key, alone_key = jax.random.split(client_key)
        if alone_fn is None or (isinstance(stage, int) and stage == 0):
            phases, objectives = phases_fn(state.hyper), objectives_fn(state.hyper)
        else:
            step_key = jax.random.split(alone_key, more_stages)[stage - 1]
            phases, objectives = (), (alone_fn(state.hyper),)
        # The key depends on the client, not on its position in the cohort.
        own_key = lambda client: jax.random.fold_in(step_key, client)

        def draw(client, at):
            if rounds_per_list is None:
                return draw_fn(own_key(client), at, data)
            number = state.round % rounds_per_list * (1 + more_stages) + stage
            rows_key = jax.random.fold_in(jax.random.fold_in(key, LIST), number)
            rows_key = jax.random.fold_in(rows_key, client)
            return draw_fn(own_key(client), at, data, rows_key)

        support, query, weights = jax.vmap(draw)(ids, ids if at is None else at)
        weights = jnp.where(counted, weights, 0)
        groups = [group for objective in objectives for group in objective.groups]
        chosen = CHUNK.get(jax.default_backend(), DEFAULT_CHUNK)
        mean = kernels.meta_gradient(
            phases,
            _with_resting(objectives, state.params),
            {group: state.params[group] for group in groups},
            support,
            query,
            weights,
            second_order=second_order,
            implementation=implementation,
            chunk=chosen if chunk is None else chunk,
        )
        total = jnp.sum(weights)
        return (jax.tree.map(lambda leaf: total * leaf, mean), total), ()

    def merge(state, ids, sums, kept, stage=0):
        del ids, kept, stage
        gradient, infos = layouts.divide(*sums)
        lengths = dict.fromkeys(gradient, state.hyper["server_learning_rate"])
        if learning_rates_fn is not None:
            own = learning_rates_fn(state.hyper)
            lengths |= {group: own[group] for group in own if group in lengths}
        params, opt_state = dict(state.params), dict(state.opt_state)
        for group, grads in gradient.items():
            steps, opt_state[group] = server_optimizer.update(
                grads, opt_state[group], params[group]
            )
            up = jax.tree.map(jnp.negative, steps)
            params[group] = scaled_step(params[group], lengths[group], up)
        info = {name: value for _, info in infos for name, value in info.items()}
        return state._replace(params=params, opt_state=opt_state), info

    def finish(state):
        if ema_decay:
            keep = jnp.minimum(ema_decay, (1 + state.round) / (10 + state.round))
            mix = lambda old, new: (keep * old + (1 - keep) * new).astype(old.dtype)
            average = jax.tree.map(mix, state.average, state.params)
            state = state._replace(average=average)
        return state._replace(round=state.round + 1)

    unit = lambda num_rows: 1.0
    stages = RoundStages(cohort, work, merge, more_stages, finish, max_weight=unit)
    return FederatedAlgorithm(init, one_round(stages), stages)


def _with_resting(objectives, params):
    """Gives objectives access to all groups, of which they get only their own."""
    resting = jax.lax.stop_gradient(params)
    return tuple(
        objective._replace(
            loss_fn=lambda moving, batch, fn=objective.loss_fn: fn(
                resting | moving, batch
            )
        )
        for objective in objectives
    )
