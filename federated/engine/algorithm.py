"""The federated algorithm interface, and rounds built from stages."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine import local, sharding
from jaxanon.federated.engine.cohort import sample_cohort
from jaxanon.federated.engine.hyper import in_range
from jaxanon.federated.engine.layout import Layout
from jaxanon.kernels.bounds import check, setting
from jaxanon.kernels.checks import one_of, whole

B = TypeVar("B", bound=Callable)


def built_once(builder: B) -> B:
    """Makes a builder return the same algorithm for equal arguments.

    ``simulate`` compiles once per algorithm, so an algorithm that is built again does
    not compile again. Functions are equal only to themselves: define a loss outside the
    loop that builds the algorithm. Globals and attributes that a loss reads must not
    change: the compiled program keeps their first values. Arguments that cannot be
    hashed, such as dicts, build a new algorithm. The last 16 algorithms of each builder
    are kept.

    Example:
      >>> double = built_once(lambda number: [2 * number])
      >>> double(1) is double(1), double(1) is double(2)
      (True, False)
    """
    known = functools.lru_cache(maxsize=16, typed=True)(builder)

    @functools.wraps(builder)
    def build(*args, **settings):
        try:
            hash((args, *settings.values()))
        except TypeError:
            return builder(*args, **settings)
        return known(*args, **settings)

    return cast(B, build)


class State(NamedTuple):
    """Everything that changes between rounds and is checkpointed."""

    round: jax.Array  # int32[]; completed rounds
    params: Any
    opt_state: Any  # state of the server's optimizer
    hyper: dict[str, jax.Array]  # float[] each; varied by sweeps
    average: Any = None  # running mean of params, if an algorithm has one

    own = None  # no personal state of clients
    server = None  # no further state of the server


def hyper_arrays(defaults: dict, values: dict) -> dict[str, jax.Array]:
    """Returns ``State.hyper``: the defaults updated by ``values``, ``float[]`` each.

    They are copies, because ``simulate`` donates them and values may be the caller's.

    Raises:
      TypeError: for a name without a default.
    """
    unknown = sorted(set(values) - set(defaults))
    if unknown:
        raise TypeError(
            f"hyper-parameters must be among {sorted(defaults)}, got {unknown}."
        )
    to_array = lambda value: jnp.array(value, jnp.result_type(float))
    return {name: to_array(value) for name, value in (defaults | values).items()}


class RoundStages(NamedTuple):
    """Separate stages of a round, for placement on devices.

    - ``cohort(key, state, num_clients) -> int32[m]`` samples the clients.
    - ``work(key, state, clients, ids, counted, at=None, stage=0) -> (sums, kept)``
      returns weighted sums over ``ids`` where ``counted`` (``bool[len(ids)]``) is True,
      and the personal state of each of ``ids``.
    - ``merge(state, ids, sums, kept, stage=0) -> (state, info)`` takes the total sums
      over a cohort and its personal states in order.
    - ``finish(state) -> state`` ends the round.

    ``at`` holds the positions of ``ids`` in ``clients``; None means ``ids``. With
    ``at``, ``state.own`` (unless None) holds the entries of ``ids`` in order. After
    stage 0, the same cohort runs ``more_stages`` further stages 1, 2, ... without
    ``info``. For the other fields see ``exchange.Exchange``.
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
    """A federated algorithm as a tuple of pure functions.

    ``init(key, ...) -> state`` and ``update(key, state, clients) -> (state, info)``.
    States have the attributes of ``State``; ``own`` is None without personal state.
    ``update`` is one round and can be jitted, scanned and vmapped. It takes the run's
    key and derives ``fold_in(key, state.round)``. The other fields are optional:

    - ``stages``: the parts of ``update``, if the algorithm can be split.
    - ``model(key, state, client, rows, mask) -> params``: parameters with which client
      ``client`` predicts, given its training rows. None is ``state.params`` for all.
    - ``message(key, state, clients, client) -> (message, weight)``: the message that
      client ``client`` sends in ``update`` with the same arguments (see
      ``simulate_observed``). None if single messages are not observable.
    - ``local_update``: takes the arguments of ``model`` and returns the client's
      personal state after a round without communication. None without personal state.
    - ``init_new_client(state, own) -> own``: initial personal state of a new client,
      given that of other clients. None is the same (see ``personalize_new_client``).
    """

    init: Callable
    update: Callable
    stages: RoundStages | None = None
    model: Callable | None = None
    message: Callable | None = None
    local_update: Callable | None = None
    init_new_client: Callable | None = None


def zero_if_absent(message, weight):
    """Returns ``(message, weight)`` of a client, with zeros if the weight is 0."""
    nothing = lambda leaf: jnp.where(weight > 0, leaf, jnp.zeros_like(leaf))
    return jax.tree.map(nothing, message), weight


def one_round(stages: RoundStages) -> Callable:
    """Returns ``update`` of all stages, for one device or for ``ShardedClients``."""

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
    """Returns the number of clients of arrays ``[clients, ...]``.

    Raises:
      TypeError: if ``clients`` is a list, such as one of separate clients.

    Example:
      >>> count_clients({"x": jnp.zeros((3, 4))})
      3
    """
    if isinstance(clients, list):
        raise TypeError(
            "clients must be one tree of arrays [clients, ...], got a list of "
            f"{len(clients)}; stack separate clients by federated.stack(clients)."
        )
    return len(jax.tree.leaves(clients)[0])


def arrays_of(params):
    """Copies initial parameters, because ``simulate`` donates them.

    Raises:
      TypeError: for a leaf that is not an array, such as a function in an Equinox
        module.

    Example:
      >>> arrays_of({"w": 2.0})
      {'w': Array(2., dtype=float32, weak_type=True)}
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        if not isinstance(
            leaf, jax.Array | np.ndarray | np.generic | complex | float | int
        ):
            raise TypeError(
                "init_fn must return a tree of arrays, got "
                f"{type(leaf).__name__} at params{jax.tree_util.keystr(path)}; for an "
                "Equinox module return eqx.filter(module, eqx.is_inexact_array)."
            )
    return jax.tree.map(jnp.copy, params)


def server_step(server_optimizer, gradient, opt_state, params):
    """Returns ``(params, opt_state)`` after a step of the server's optimizer."""
    updates, opt_state = server_optimizer.update(gradient, opt_state, params)
    return optax.apply_updates(params, updates), opt_state


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
    aggregator=None,
    gradient_fn=lambda mean: mean,
) -> FederatedAlgorithm:
    """Builds an algorithm from a client function.

    ``cohort_size`` may also be a function of the number of clients. ``gradient_fn``
    maps the mean of the messages to the gradient of the server's optimizer.
    """
    whole("rounds_per_cohort", rounds_per_cohort, least=1)
    if cohort_size is not None and not callable(cohort_size):
        whole("cohort_size", cohort_size, least=1)
    weigh = weight_fn(weighting)

    def init(key, **values):
        in_range(values)
        arrays = hyper_arrays(hyper, values)
        params = arrays_of(init_fn(key))
        opt_state = server_optimizer.init(params)
        return State(jnp.zeros((), jnp.int32), params, opt_state, arrays)

    def cohort(key, state, num_clients):
        size = num_clients if cohort_size is None else cohort_size
        size = size(num_clients) if callable(size) else size
        return sample_cohort(
            key, state.round, num_clients, size, rounds_per_cohort=rounds_per_cohort
        )

    def reply(key, state, clients, number, at):
        """Computes a client's message of a round."""
        _, client_key = jax.random.split(jax.random.fold_in(key, state.round))
        rows = jax.tree.map(lambda leaf: leaf[at], clients.rows)
        # The key depends on the client, not on its position in the cohort.
        own_key = jax.random.fold_in(client_key, number)
        return client(own_key, state, rows, clients.mask[at])

    def work(key, state, clients, ids, counted, at=None, stage=0):
        del stage
        at = ids if at is None else at
        one = lambda which: reply(key, state, clients, *which)
        weights = counted * jax.vmap(weigh)(clients.mask[at])
        chosen = layout or layouts.default_layout(state.params, len(ids))
        if aggregator is None:
            total = layouts.sum_over_clients(one, (ids, at), weights, chosen)
            return (total, jnp.sum(weights)), ()
        apart = lambda which: one(which)[::-1]
        info, each = layouts.sum_and_keep(apart, (ids, at), weights, chosen)
        return (((), info), jnp.sum(weights)), (each, weights > 0)

    def merge(state, ids, sums, kept, stage=0):
        del ids, stage
        mean, info = layouts.divide(*sums)
        if aggregator is not None:
            if kept is None:
                raise ValueError(
                    "aggregator must be None on real devices, where the server gets "
                    "sums of messages only; simulate instead."
                )
            mean = aggregator(kept[0], mask=kept[1])
        gradient = gradient_fn(mean)
        params, opt_state = server_step(
            server_optimizer, gradient, state.opt_state, state.params
        )
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
    """Returns ``mask -> float[]``, the weight of a client.

    Raises:
      ValueError: for an unknown weighting.

    Example:
      >>> weight_fn("rows")(jnp.array([True, True, False]))
      Array(2., dtype=float32)
    """
    one_of("weighting", weighting, sorted(WEIGHTINGS))
    return WEIGHTINGS[weighting]


def max_weight_fn(weighting: str) -> Callable:
    """Returns ``num_rows -> float``, the maximum weight of a client with these rows.

    Example:
      >>> max_weight_fn("rows")(5), max_weight_fn("clients")(5)
      (5.0, 1.0)
    """
    weigh = weight_fn(weighting)
    return lambda num_rows: float(weigh(jnp.ones(num_rows, bool)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Steps:
    """Optimizer steps of a client in a round.

    Raises:
      TypeError: for a number that is not an integer, or a ``shuffle`` that is not a
        bool.
      ValueError: for a number below 1, or unless exactly one of ``num_steps`` and
        ``num_epochs`` is given.

    Example:
      >>> Steps(num_steps=5, batch_size=16)
      Steps(num_steps=5, num_epochs=None, batch_size=16, shuffle=True)
    """

    num_steps: int | None = setting(
        None, at_least=1, help="steps in a round, equal for all clients"
    )
    num_epochs: int | None = setting(
        None,
        at_least=1,
        help="passes of a client over its rows in a round, instead of ``num_steps``; "
        "the last batch of the last pass may be smaller",
    )
    batch_size: int | None = setting(
        None,
        at_least=1,
        remedy="None takes all rows",
        help="rows per step; None is all rows of a client",
    )
    shuffle: bool = setting(True, help="shuffle rows each round")

    def __post_init__(self):
        check(self)
        if (self.num_steps is None) == (self.num_epochs is None):
            both = "neither" if self.num_steps is None else "both"
            raise ValueError(
                f"num_steps or num_epochs must be given, got {both}; use num_epochs "
                "for passes over a client's rows."
            )

    def most(self, num_rows: int) -> int:
        """Returns the number of steps of a client with this number of rows.

        Example:
          >>> Steps(num_epochs=2, batch_size=4).most(7)
          4
        """
        return self.num_steps or local.most_steps(
            self.num_epochs, self.batch_size, num_rows
        )

    def count(self, mask):
        """Returns ``int32[]``, the number of steps of a client, for ``bool[n]``.

        Example:
          >>> Steps(num_epochs=2, batch_size=4).count(jnp.arange(9) < 7)
          Array(4, dtype=int32)
        """
        if self.num_steps is not None:
            return jnp.int32(self.num_steps)
        return local.count_steps(self.num_epochs, self.batch_size, mask)

    def exact(self, user: str) -> int:
        """Returns ``num_steps`` for an algorithm that needs it.

        Raises:
          ValueError: if ``num_epochs`` was given.

        Example:
          >>> Steps(num_steps=3).exact("atlas")
          3
        """
        if self.num_steps is None:
            raise ValueError(
                f"steps must have num_steps for {user}, got num_epochs = "
                f"{self.num_epochs}; its clients take equally many steps."
            )
        return self.num_steps


class RoundOptions(TypedDict, total=False):
    """Options of every algorithm; see ``RoundConfig`` for their meaning."""

    cohort_size: int | None
    rounds_per_cohort: int
    weighting: str
    client_optimizer: Any
    server_optimizer: Any
    layout: Layout | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RoundConfig:
    """Sampling and weighting of clients in a round, and the optimizers.

    Raises:
      TypeError: for a number that is not an integer.
      ValueError: for a number below 1, or an unknown weighting.

    Example:
      >>> RoundConfig(cohort_size=10).weighting
      'rows'
    """

    cohort_size: int | None = setting(
        None, at_least=1, help="clients per round; None is all"
    )
    rounds_per_cohort: int = setting(1, at_least=1, help="rounds per cohort")
    weighting: str = setting(
        "rows",
        choices=WEIGHTINGS,
        help='client weights: ``"rows"`` is the number of rows, ``"clients"`` is 1',
    )
    client_optimizer: Any = setting(
        None,
        help="Optax transformation of a client's gradients, which restarts in each "
        "round, or a function such as ``optax.adam`` that makes it from the "
        "hyper-parameter ``learning_rate``; None is SGD",
    )
    server_optimizer: Any = setting(
        None,
        help="Optax transformation of old minus new shared parameters, whose result "
        "replaces the algorithm's update; None keeps it",
    )
    layout: Layout | None = setting(
        None, help="a ``Layout``; None is ``default_layout``; affects only speed"
    )

    __post_init__ = check

    def reject(self, user: str, *names: str) -> "RoundConfig":
        """Returns the config unless one of the named options is set.

        Raises:
          ValueError: for an option that the algorithm cannot follow.

        Example:
          >>> RoundConfig(cohort_size=3).reject("atlas", "layout").cohort_size
          3
        """
        for name in names:
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} must be None for {user}, whose step is part of the "
                    "method; omit it."
                )
        return self


def hyper_of(defaults: dict, client_optimizer) -> dict:
    """Returns default hyper-parameters, without a learning rate that is not used.

    Example:
      >>> hyper_of({"learning_rate": 0.1, "alpha": 1.0}, optax.adam(1e-3))
      {'alpha': 1.0}
    """
    if client_optimizer is None or callable(client_optimizer):
        return defaults
    return {name: x for name, x in defaults.items() if name != "learning_rate"}
