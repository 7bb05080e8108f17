"""Federated meta-learning: clients adapt, the server follows the adapted losses."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from jaxanon import kernels
from jaxanon.federated.algorithm import FederatedAlgorithm, State
from jaxanon.federated.cohort import sample_cohort

CHUNK = {"cpu": 64}  # Clients side by side; enough to fill the cores, and in cache.
DEFAULT_CHUNK = 4096


def meta(
    init_fn: Callable,
    draw_fn: Callable,
    phases_fn: Callable,
    objectives_fn: Callable,
    *,
    hyper: dict,
    num_clients_fn: Callable,
    server_optimizer: optax.GradientTransformation,
    cohort_size_fn: Callable = lambda num_clients: num_clients,
    rounds_per_cohort: int = 1,
    step_sizes_fn: Callable | None = None,
    second_order: bool = True,
    implementation: str | None = None,
    chunk: int | None = None,
) -> FederatedAlgorithm:
    """Model-agnostic meta-learning over clients, with per-group inner losses.

    ``init(key, **hyper) -> state``; ``update(key, state, data) -> (state, info)`` is a
    round: a cohort adapts on support sets, is graded on query sets, and the server
    takes one step along the mean meta-gradient, ``hyper["server_step_size"]`` long.

    Args:
      init_fn: ``key -> params``, a dict of groups.
      draw_fn: ``(key, client, data) -> (support, query, weight)`` for client number
        ``client`` (``int32[]``), drawn afresh; a weight of 0 counts for nothing.
      phases_fn: ``hyper -> phases``, see ``jaxanon.kernels.Phase``.
      objectives_fn: ``hyper -> objectives``, see ``jaxanon.kernels.Objective``.
      hyper: names and defaults of the hyper-parameters, ``server_step_size`` among
        them; they become arrays, so changing one compiles nothing anew.
      num_clients_fn: ``data -> int``.
      server_optimizer: Optax transformation of unit step size: ``optax.adam(1.0)``.
      cohort_size_fn: ``num_clients -> int``, clients per round; all by default.
      rounds_per_cohort: rounds that a cohort stays together.
      step_sizes_fn: ``hyper -> {group: float[]}``, where groups take server steps of
        lengths of their own.
      second_order: differentiate through the inner steps.
      implementation: of ``jaxanon.kernels.meta_gradient``.
      chunk: clients computed side by side; ``None`` is 64 on a CPU and 4096 elsewhere.
        Changes no result beyond rounding.

    Raises:
      ValueError: if ``hyper`` lacks ``server_step_size``.
      TypeError: from ``init``, for a name that is not in ``hyper``.

    References:
      Finn et al., ICML 2017; Yang and Ardakanian, Blinder, 2023, Algorithm 1.
    """
    if "server_step_size" not in hyper:
        raise ValueError(
            f"hyper must have 'server_step_size', got {sorted(hyper)}; add the length "
            "of the server's step."
        )

    def init(key, **values):
        unknown = sorted(set(values) - set(hyper))
        if unknown:
            raise TypeError(
                f"init takes the hyper-parameters {sorted(hyper)}, got {unknown}."
            )
        params = init_fn(key)
        arrays = {
            name: jnp.asarray(value, jnp.result_type(float))
            for name, value in (hyper | values).items()
        }
        opt_state = server_optimizer.init(params)
        return State(jnp.zeros((), jnp.int32), params, opt_state, arrays)

    def update(key, state, data):
        num_clients = num_clients_fn(data)
        ids = sample_cohort(
            key,
            state.round,
            num_clients,
            cohort_size_fn(num_clients),
            rounds_per_cohort=rounds_per_cohort,
        )
        _, client_key = jax.random.split(jax.random.fold_in(key, state.round))
        # The key belongs to the client, whatever its place in the cohort.
        draw = lambda client: draw_fn(
            jax.random.fold_in(client_key, client), client, data
        )
        support, query, weights = jax.vmap(draw)(ids)
        gradient, infos = kernels.meta_gradient(
            phases_fn(state.hyper),
            objectives_fn(state.hyper),
            state.params,
            support,
            query,
            weights,
            second_order=second_order,
            implementation=implementation,
            chunk=chunk or CHUNK.get(jax.default_backend(), DEFAULT_CHUNK),
        )
        steps, opt_state = server_optimizer.update(
            gradient, state.opt_state, state.params
        )
        lengths = dict.fromkeys(state.params, state.hyper["server_step_size"])
        if step_sizes_fn is not None:
            lengths |= step_sizes_fn(state.hyper)
        params = {}
        for group, length in lengths.items():
            move = lambda param, step, length=length: param + length * step
            params[group] = jax.tree.map(move, state.params[group], steps[group])
        info = {name: value for _, info in infos for name, value in info.items()}
        return state._replace(
            round=state.round + 1, params=params, opt_state=opt_state
        ), info

    return FederatedAlgorithm(init, update)
