"""What a federated algorithm is, and how its stages make one round of it."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine import sharding
from jaxanon.federated.engine.cohort import sample_cohort
from jaxanon.federated.engine.hyper import in_range
from jaxanon.federated.engine.layout import Layout
from jaxanon.kernels.bounds import check, setting
from jaxanon.kernels.checks import one_of, whole


class State(NamedTuple):
    """All that changes from round to round, and so all that is checkpointed."""

    round: jax.Array  # int32[]; rounds done
    params: Any
    opt_state: Any  # of the server's optimizer
    hyper: dict[str, jax.Array]  # float[] each; what a sweep varies
    average: Any = None  # running mean of params, where an algorithm keeps one


def hyper_arrays(defaults: dict, values: dict) -> dict[str, jax.Array]:
    """``State.hyper``: the defaults with ``values`` in their place, ``float[]`` each.

    They are copies, for ``simulate`` gives them away, and values may be the caller's.

    Raises:
      TypeError: for a name that has no default.
    """
    unknown = sorted(set(values) - set(defaults))
    if unknown:
        raise TypeError(
            f"init takes the hyper-parameters {sorted(defaults)}, got {unknown}."
        )
    to_array = lambda value: jnp.array(value, jnp.result_type(float))
    return {name: to_array(value) for name, value in (defaults | values).items()}


class RoundStages(NamedTuple):
    """The stages of a round, apart, for whoever has to place them on devices.

    ``cohort(key, state, num_clients) -> int32[m]``; ``work(key, state, clients, ids,
    counted, at=None, stage=0) -> (sums, kept)``, weighted sums over ``ids`` of whom
    ``counted`` (``bool[len(ids)]``) says so, and what each of ``ids`` keeps;
    ``merge(state, ids, sums, kept, stage=0) -> (state, info)``, with the sums of all
    parts of a cohort added up and what they keep in its order.

    ``at`` says where ``ids`` lie in ``clients``; ``state.own``, where states have it,
    is then that of ``ids``, in their order. None is where their numbers say. After
    stage 0 the same cohort works and is merged in ``more_stages`` further ones, 1, 2,
    ..., whose ``info`` nobody reads, and ``finish(state) -> state`` ends the round.
    ``way``, ``most`` and ``legal``: see ``exchange.Exchange``.
    """

    cohort: Callable
    work: Callable
    merge: Callable
    more_stages: int = 0
    finish: Callable = lambda state: state
    direction: Callable = lambda state, sent: sent
    max_weight: Callable = float
    is_valid: Callable = lambda sent: True


class FederatedAlgorithm(NamedTuple):
    """``init(key, ...) -> state`` and ``update(key, state, clients) -> (state, info)``.

    ``update`` is one round, may be jitted, scanned and vmapped, and is given the run's
    key: the stream over time is ``fold_in(key, state.round)``. ``stages`` are the parts
    that ``update`` is made of, where an algorithm can be taken apart. ``model(key,
    state, client, rows, mask) -> params`` is what client number ``client`` predicts
    with, given its own training rows; None where that is ``state.params`` for all.
    ``sent(key, state, clients, client) -> (message, weight)`` is what client number
    ``client`` sends in the round that ``update`` with the same arguments is; see
    ``observed``. None where single messages are nobody's to see. ``alone``, of the
    arguments of ``model``, is what a client keeps of a round that nobody hears of; None
    where clients keep nothing. ``newcomer(state, own) -> own`` is what somebody begins
    with who joins, of what clients began with; None is the same. See ``join``.
    """

    init: Callable
    update: Callable
    stages: RoundStages | None = None
    model: Callable | None = None
    message: Callable | None = None
    local_update: Callable | None = None
    init_new_client: Callable | None = None


def zero_if_absent(message, weight):
    """``(message, weight)`` of a client; zeros where the weight is 0."""
    nothing = lambda leaf: jnp.where(weight > 0, leaf, jnp.zeros_like(leaf))
    return jax.tree.map(nothing, message), weight


def one_round(stages: RoundStages) -> Callable:
    """``update`` of all stages: one program, for one device or those of ``Placed``."""

    def update(key, state, clients):
        placed = isinstance(clients, sharding.ShardedClients)
        num_clients = clients.num_clients if placed else count_clients(clients)
        ids = stages.cohort(key, state, num_clients)
        if placed:
            work = sharding.shard_work(stages.work, clients)
        else:
            counted = jnp.ones(len(ids), bool)
            work = lambda key, state, ids, stage: stages.work(
                key, state, clients, ids, counted, stage=stage
            )

        def done(state, stage):
            state, info = stages.merge(
                state, ids, *work(key, state, ids, stage), stage=stage
            )
            return (
                sharding.replicate((state, info), clients) if placed else (state, info)
            )

        state, info = done(state, 0)
        if stages.more_stages:
            more = jnp.arange(1, stages.more_stages + 1)
            step = lambda state, stage: (done(state, stage)[0], None)
            state, _ = jax.lax.scan(step, state, more)
        return stages.finish(state), info

    return update


def count_clients(clients) -> int:
    """How many clients arrays ``[clients, ...]`` are of.

    Example:
      >>> count_clients({"x": jnp.zeros((3, 4))})
      3
    """
    return len(jax.tree.leaves(clients)[0])


def build(
    init_fn,
    client,
    *,
    hyper,
    server_optimizer,
    cohort_size,
    rounds_per_cohort,
    weighting,
    layout,
) -> FederatedAlgorithm:
    """An algorithm that differs from others only in what a client does.

    ``cohort_size`` may be a function of the number of clients as well.
    """
    whole("rounds_per_cohort", rounds_per_cohort, least=1)
    if cohort_size is not None and not callable(cohort_size):
        whole("cohort_size", cohort_size, least=1)
    weigh = weight_fn(weighting)

    def init(key, **values):
        in_range(values)
        arrays = hyper_arrays(hyper, values)
        # Copied, for ``simulate`` gives them away, and they may be the caller's.
        params = jax.tree.map(jnp.copy, init_fn(key))
        opt_state = server_optimizer.init(params)
        return State(jnp.zeros((), jnp.int32), params, opt_state, arrays)

    def cohort(key, state, num_clients):
        size = num_clients if cohort_size is None else cohort_size
        size = size(num_clients) if callable(size) else size
        return sample_cohort(
            key, state.round, num_clients, size, rounds_per_cohort=rounds_per_cohort
        )

    def reply(key, state, clients, number, at):
        """What a client makes of a round."""
        _, client_key = jax.random.split(jax.random.fold_in(key, state.round))
        rows = jax.tree.map(lambda leaf: leaf[at], clients.rows)
        # The key belongs to the client, whatever its place in the cohort.
        own_key = jax.random.fold_in(client_key, number)
        return client(own_key, state, rows, clients.mask[at])

    def work(key, state, clients, ids, counted, at=None, stage=0):
        del stage
        at = ids if at is None else at
        one = lambda which: reply(key, state, clients, *which)
        weights = counted * jax.vmap(weigh)(clients.mask[at])
        chosen = layout or layouts.default_layout(state.params, len(ids))
        total = layouts.sum_over_clients(one, (ids, at), weights, chosen)
        return (total, jnp.sum(weights)), ()

    def merge(state, ids, sums, kept, stage=0):
        del ids, kept, stage
        gradient, info = layouts.divide(*sums)
        updates, opt_state = server_optimizer.update(
            gradient, state.opt_state, state.params
        )
        params = optax.apply_updates(state.params, updates)
        after = state._replace(
            round=state.round + 1, params=params, opt_state=opt_state
        )
        return after, info

    def sent(key, state, clients, number):
        ids = cohort(key, state, len(clients.mask))
        weight = weigh(clients.mask[number]) * jnp.any(ids == number)
        return zero_if_absent(reply(key, state, clients, number, number)[0], weight)

    stages = RoundStages(cohort, work, merge, max_weight=max_weight_fn(weighting))
    return FederatedAlgorithm(init, one_round(stages), stages, message=sent)


WEIGHTINGS = {
    "rows": lambda mask: jnp.sum(mask).astype(jnp.result_type(float)),
    "clients": lambda mask: jnp.any(mask).astype(jnp.result_type(float)),
}


def weight_fn(weighting: str) -> Callable:
    """``mask -> float[]``, what a client counts for, by one of ``WEIGHTINGS``.

    Raises:
      ValueError: for an unknown weighting.

    Example:
      >>> weight_fn("rows")(jnp.array([True, True, False]))
      Array(2., dtype=float32)
    """
    one_of("weighting", weighting, sorted(WEIGHTINGS))
    return WEIGHTINGS[weighting]


def max_weight_fn(weighting: str) -> Callable:
    """``num_rows -> float``, the largest weight of so many rows.

    Example:
      >>> max_weight_fn("rows")(5), max_weight_fn("clients")(5)
      (5.0, 1.0)
    """
    weigh = weight_fn(weighting)
    return lambda num_rows: float(weigh(jnp.ones(num_rows, bool)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Steps:
    """A client's steps of gradient descent in a round.

    Raises:
      TypeError: for a number that is not whole, or a ``shuffle`` that is no bool.
      ValueError: for a number below 1.

    Example:
      >>> Steps(num_steps=5, batch_size=16)
      Steps(num_steps=5, batch_size=16, shuffle=True)
    """

    num_steps: int = setting(at_least=1, help="steps in a round")
    batch_size: int | None = setting(
        None,
        at_least=1,
        remedy="None takes all rows",
        help="rows of a step; None is all of a client's",
    )
    shuffle: bool = setting(True, help="rows in a fresh order each round")

    __post_init__ = check


@dataclasses.dataclass(frozen=True, kw_only=True)
class CohortConfig:
    """Who takes part in a round, and what it counts for.

    Raises:
      TypeError: for a number that is not whole.
      ValueError: for a number below 1, or an unknown weighting.

    Example:
      >>> CohortConfig(cohort_size=10).weighting
      'rows'
    """

    cohort_size: int | None = setting(None, at_least=1, help="clients; None: all")
    rounds_per_cohort: int = setting(1, at_least=1, help="rounds of a cohort")
    weighting: str = setting(
        "rows",
        choices=WEIGHTINGS,
        help='``"rows"`` weighs a client by its real rows, ``"clients"`` all alike',
    )
    layout: Layout | None = setting(
        None, help="a ``Layout``; None is ``default_layout``. Changes no result"
    )

    __post_init__ = check
