"""Algorithms with personal client state in addition to shared parameters."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.federated.engine import layout as layouts
from jaxanon.federated.engine import local
from jaxanon.federated.engine.algorithm import (
    FederatedAlgorithm,
    RoundConfig,
    RoundStages,
    Steps,
    arrays_of,
    hyper_arrays,
    hyper_of,
    max_weight_fn,
    one_round,
    server_step,
    weight_fn,
    zero_if_absent,
)
from jaxanon.federated.engine.cohort import check_num_clients, sample_cohort
from jaxanon.federated.engine.exchange import subtract_broadcast
from jaxanon.federated.engine.hyper import in_range
from jaxanon.kernels.bounds import Range
from jaxanon.kernels.checks import whole

# Names of layers, or a function that returns whether a name is among them.
Layers = tuple[str, ...] | Callable[[str], bool]


class PersonalState(NamedTuple):
    """Everything that changes between rounds and is checkpointed."""

    round: jax.Array  # int32[]; completed rounds
    params: Any  # shared parameters
    own: Any  # [clients, ...]; personal state, never sent
    server: Any  # other state of the server
    hyper: dict[str, jax.Array]  # float[] each; varied by sweeps
    average: Any = None  # see ``State``
    opt_state: Any = None  # state of the server's optimizer, if it has one


class Client(NamedTuple):
    """Inputs of a client at the start of a round."""

    key: jax.Array
    params: Any  # parameters from the server
    own: Any  # personal state
    server: Any  # other state from the server
    rows: Any  # [n, ...]
    mask: jax.Array  # bool[n]
    hyper: dict[str, jax.Array]
    client_optimizer: Any = None  # see ``RoundConfig``

    @property
    def optimizer(self):
        """The Optax transformation of its steps."""
        return local.optimizer_of(self.client_optimizer, self.hyper)


class Reply(NamedTuple):
    """Outputs of a client in a round."""

    sent: Any  # message, which the server averages over the cohort
    own: Any  # new personal state
    info: dict[str, jax.Array]


def train(
    client: Client, loss_fn, params, steps: Steps, *, key=None, **settings
) -> tuple[Any, ...]:
    """Trains ``params`` on a client's rows with its optimizer.

    Args:
      client: client with its rows.
      loss_fn: ``(params, batch, key) -> float[B]``.
      params: initial parameters.
      steps: ``Steps``.
      key: typed PRNG key. None is ``client.key``.
      **settings: ``direction_fn``, ``optimizer`` and ``return_state`` of
        ``local_sgd``. The default optimizer is that of the client.

    Returns:
      The trained params, and the loss before each step; see ``local_sgd``.

    Raises:
      ValueError: if ``loss_fn`` does not return one loss per row.

    Example:
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> rows, mask = jnp.array([4.0, 8.0]), jnp.array([True, True])
      >>> client = Client(
      ...     jax.random.key(0), None, None, None, rows, mask, {"learning_rate": 0.5})
      >>> train(client, square, jnp.zeros(()), Steps(num_steps=1))
      (Array(3., dtype=float32), Array([20.], dtype=float32))
    """
    most = steps.most(len(client.mask))
    return local.local_sgd(
        loss_fn,
        client.key if key is None else key,
        params,
        client.rows,
        client.mask,
        learning_rate=client.hyper.get("learning_rate"),
        num_steps=steps.num_steps,
        num_epochs=steps.num_epochs,
        batch_size=steps.batch_size,
        shuffle=steps.shuffle,
        unroll=layouts.default_layout(params, 1, num_steps=most).unroll,
        **({} if client.client_optimizer is None else {"optimizer": client.optimizer})
        | settings,
    )


def personal(
    init_fn: Callable,
    client_fn: Callable,
    server_fn: Callable,
    model_fn: Callable,
    *,
    num_clients: int,
    hyper: dict,
    rounds: RoundConfig,
    example_bytes_fn: Callable | None = None,
    alone_fn: Callable | None = None,
    ranges: dict[str, Range] | None = None,
    direction_fn: Callable = subtract_broadcast,
    is_valid_fn: Callable = lambda sent: True,
    second: tuple[Callable, Callable] | None = None,
) -> FederatedAlgorithm:
    """Builds an algorithm with personal client state.

    ``init(key, **hyper) -> PersonalState``; ``update(key, state, population) -> (state,
    info)`` is a round. A client without rows or outside the cohort keeps its state and
    has no weight.

    Args:
      init_fn: ``key -> (params, own, server)``: shared parameters, initial personal
        state (the same for all clients) and other server state.
      client_fn: ``Client -> Reply``.
      server_fn: ``(state, mean, share) -> state``, given the weighted mean of the
        messages and the cohort's fraction of all clients. It does not count rounds.
      model_fn: ``Client -> params``. Returns parameters for prediction, given training
        rows in ``rows``.
      num_clients: number of clients in the population.
      hyper: names and defaults of the hyper-parameters.
      rounds: ``RoundConfig``.
      example_bytes_fn: ``(key, params, rows) -> int``, bytes of a client's per-example
        gradients held at once. None is 0.
      alone_fn: ``client_fn`` for a round without communication. None is the same.
      ranges: ranges of hyper-parameters that override ``RANGES``.
      direction_fn: ``direction`` of ``exchange.Exchange``.
      is_valid_fn: ``is_valid`` of ``exchange.Exchange``.
      second: ``client_fn`` and ``server_fn`` of a second exchange with the same cohort,
        whose ``info`` is not used. None is a round of one exchange.

    Raises:
      TypeError: for ``num_clients`` that is not an integer. From ``init``, for a
        hyper-parameter that is not a number.
      ValueError: for fewer than one client. From ``init``, for a hyper-parameter on the
        host out of range. From the first ``update``, for a population of another size
        or a cohort larger than the population.

    Example:
      Clients store their largest row, and the mean of these is shared.

      >>> from jaxanon.federated import stack
      >>> most = lambda client: jnp.maximum(client.own, jnp.max(client.rows))
      >>> algorithm = personal(
      ...     lambda key: (jnp.zeros(()), jnp.zeros(()), None),
      ...     lambda client: Reply(most(client), most(client), {}), replace_params,
      ...     lambda client: client.own, num_clients=2, hyper={}, rounds=RoundConfig())
      >>> state = algorithm.init(jax.random.key(0))
      >>> clients = stack([jnp.array([4.0]), jnp.array([1.0])])
      >>> algorithm.update(jax.random.key(1), state, clients)[0][1:3]
      (Array(2.5, dtype=float32), Array([4., 1.], dtype=float32))
    """
    num_clients = whole("num_clients", num_clients, least=1)
    weigh = weight_fn(rounds.weighting)
    hyper = hyper_of(hyper, rounds.client_optimizer)
    later_client_fn, later_server_fn = second or (client_fn, server_fn)
    optimizer = rounds.server_optimizer

    def init(key, **values):
        in_range(values, **(ranges or {}))
        arrays = hyper_arrays(hyper, values)
        params, own, server = map(arrays_of, init_fn(key))
        opt_state = None if optimizer is None else optimizer.init(params)
        each = lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], num_clients, axis=0)
        own = jax.tree.map(each, own)
        return PersonalState(
            *(jnp.zeros((), jnp.int32), params, own, server, arrays),
            opt_state=opt_state,
        )

    def seen(key, state, client, rows, mask, own=None):
        if own is None:
            own = jax.tree.map(lambda leaf: leaf[client], state.own)
        key = jax.random.fold_in(key, client)  # Independent of the position.
        return Client(
            *(key, state.params, own, state.server, rows, mask, state.hyper),
            client_optimizer=rounds.client_optimizer,
        )

    def cohort(key, state, found):
        check_num_clients(found, num_clients)
        size, per = rounds.cohort_size, rounds.rounds_per_cohort
        size = num_clients if size is None else size
        return sample_cohort(key, state.round, num_clients, size, rounds_per_cohort=per)

    def replied(key, state, clients, client, at, own=None, reply_fn=client_fn):
        """Returns a client's inputs and its reply."""
        _, client_key = jax.random.split(jax.random.fold_in(key, state.round))
        rows = jax.tree.map(lambda leaf: leaf[at], clients.rows)
        before = seen(client_key, state, client, rows, clients.mask[at], own)
        return before, reply_fn(before)

    def is_first(stage):
        return second is None or (isinstance(stage, int) and stage == 0)

    def work(key, state, clients, ids, counted, at=None, stage=0):
        reply_fn = client_fn if is_first(stage) else later_client_fn
        own = state.own
        if at is None:
            at = ids
            of_ids = lambda leaf: leaf[ids] if len(ids) < num_clients else leaf
            own = jax.tree.map(of_ids, own)

        def one(which, own):
            client, at = which
            before, reply = replied(key, state, clients, client, at, own, reply_fn)
            present = jnp.any(before.mask)
            keep = lambda new, old: jnp.where(present, new, old)
            return (reply.sent, reply.info), jax.tree.map(keep, reply.own, own)

        weights = counted * jax.vmap(weigh)(clients.mask[at])
        layout = rounds.layout
        if layout is None:
            one_of = lambda tree: jax.tree.map(lambda leaf: leaf[0], tree)
            alive = example_bytes_fn or (lambda key, params, rows: 0)
            held = alive(key, state.params, one_of(clients.rows))
            kept = state.params, one_of(state.own)
            layout = layouts.default_layout(kept, len(ids), example_bytes=held)
        total, own = layouts.sum_and_change(one, (ids, at), own, weights, layout)
        return (total, jnp.sum(weights)), own

    def merge(state, ids, sums, own, stage=0):
        merge_fn = server_fn if is_first(stage) else later_server_fn
        mean, info = layouts.divide(*sums)
        is_complete = len(ids) == num_clients  # Then ``ids`` are in order.
        put = lambda all_, new: new if is_complete else all_.at[ids].set(new)
        state = state._replace(own=jax.tree.map(put, state.own, own))
        after = merge_fn(state, mean, len(ids) / num_clients)
        is_last = second is None or not is_first(stage)
        if optimizer is not None and is_last:
            away = jax.tree.map(jnp.subtract, state.params, after.params)
            params, opt_state = server_step(
                optimizer, away, state.opt_state, state.params
            )
            after = after._replace(params=params, opt_state=opt_state)
        stay = lambda new, old: new if new is old else jnp.where(sums[1] > 0, new, old)
        after = jax.tree.map(stay, after, state)
        return after._replace(round=state.round + is_last), info

    def model(key, state, client, rows, mask):
        return model_fn(seen(key, state, client, rows, mask))

    def sent(key, state, clients, client):
        ids = cohort(key, state, len(clients.mask))
        weight = weigh(clients.mask[client]) * jnp.any(ids == client)
        return zero_if_absent(
            replied(key, state, clients, client, client)[1].sent, weight
        )

    def alone(key, state, client, rows, mask):
        return (alone_fn or client_fn)(seen(key, state, client, rows, mask)).own

    max_weight = max_weight_fn(rounds.weighting)
    stages = RoundStages(
        cohort,
        work,
        merge,
        direction=direction_fn,
        max_weight=max_weight,
        is_valid=is_valid_fn,
        more_stages=0 if second is None else 1,
    )
    return FederatedAlgorithm(init, one_round(stages), stages, model, sent, alone)


def replace_params(state: PersonalState, mean, share) -> PersonalState:
    """Replaces the shared parameters by the mean of the messages.

    Example:
      >>> state = PersonalState(0, jnp.zeros(()), None, None, {})
      >>> replace_params(state, jnp.array(2.5), 1.0).params
      Array(2.5, dtype=float32)
    """
    del share
    as_kept = lambda new, old: new.astype(old.dtype)
    return state._replace(params=jax.tree.map(as_kept, mean, state.params))


def shared(
    init_fn,
    train_fn,
    *,
    num_clients: int,
    hyper: dict,
    rounds: RoundConfig,
    server_fn=replace_params,
    model_fn=lambda client: client.params,
    traffic_fn=lambda params: {},
    **options,
) -> FederatedAlgorithm:
    """Builds an algorithm of one shared model without personal state.

    Args:
      init_fn: ``key -> params``.
      train_fn: ``Client -> (sent, losses)``; ``info["loss"]`` is the mean of losses.
      num_clients, hyper, server_fn, model_fn, options: see ``personal``.
      rounds: ``RoundConfig``.
      traffic_fn: ``params -> dict`` of further entries of ``info`` about messages.

    Raises:
      ValueError: same conditions as ``personal``.

    Example:
      >>> from jaxanon.federated import stack
      >>> algorithm = shared(
      ...     lambda key: jnp.zeros(()), lambda c: (jnp.sum(c.rows), jnp.zeros(1)),
      ...     num_clients=2, hyper={}, rounds=RoundConfig())
      >>> state = algorithm.init(jax.random.key(0))
      >>> clients = stack([jnp.array([4.0]), jnp.array([1.0])])
      >>> algorithm.update(jax.random.key(1), state, clients)[0].params
      Array(2.5, dtype=float32)
    """

    def client_fn(client: Client) -> Reply:
        sent, losses = train_fn(client)
        return Reply(sent, None, {"loss": jnp.mean(losses)} | traffic_fn(client.params))

    return personal(
        lambda key: (init_fn(key), None, None),
        client_fn,
        server_fn,
        model_fn,
        num_clients=num_clients,
        hyper=hyper,
        rounds=rounds,
        **options,
    )


def partly_shared(
    init_fn, train_fn, *, personal_layers, num_clients, rounds
) -> FederatedAlgorithm:
    """Builds an algorithm with shared and personal layers.

    ``init(key, learning_rate=0.1)``.

    Args:
      init_fn: ``key -> params``, such as nested dicts of layers.
      train_fn: ``Client -> (params, info)``, all layers after local training.
      personal_layers: names of the personal layers; see ``split_layers``.
      num_clients: see ``personal``.
      rounds: ``RoundConfig``.

    Raises:
      ValueError: under the conditions of ``personal``. From ``init``, for an unknown
        layer.

    Example:
      >>> from jaxanon.federated import stack
      >>> said = lambda c: ({"w": c.rows[0], "v": 2 * c.rows[0]}, {})
      >>> algorithm = partly_shared(
      ...     lambda key: {"w": jnp.zeros(()), "v": jnp.zeros(())}, said,
      ...     personal_layers=("v",), num_clients=2, rounds=RoundConfig())
      >>> state = algorithm.init(jax.random.key(0))
      >>> clients = stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state, _ = algorithm.update(jax.random.key(1), state, clients)
      >>> state.params["w"], state.own["v"]
      (Array(2., dtype=float32), Array([8., 0.], dtype=float32))
    """

    def init(key):
        params, own = split_layers(init_fn(key), personal_layers)
        return params, own, None

    def client_fn(client: Client) -> Reply:
        trained, info = train_fn(client)
        return Reply(*split_layers(trained, personal_layers), info)

    return personal(
        init,
        client_fn,
        replace_params,
        lambda client: merge_layers(client.params, client.own),
        num_clients=num_clients,
        hyper={"learning_rate": 0.1},
        rounds=rounds,
    )


def choose_model(client: Client):
    """Returns a client's personal model, or the shared model if it has no rows.

    Example:
      >>> absent, shared, own = jnp.array([False]), jnp.zeros(()), jnp.ones(())
      >>> choose_model(Client(None, shared, own, None, None, absent, {}))
      Array(0., dtype=float32)
    """
    present = jnp.any(client.mask)
    choose = lambda own, shared: jnp.where(present, own, shared)
    return jax.tree.map(choose, client.own, client.params)


def split_layers(params, names: Layers) -> tuple[Any, Any]:
    """Splits parameters into ``(shared, own)`` by the names of own layers.

    A layer is an entry of a dict or an attribute of a module, at any depth.
    ``merge_layers`` is the inverse. Dicts lose the other part's entries, and in other
    containers None takes the place of the other part's arrays.

    Args:
      params: tree of arrays, such as nested dicts or an Equinox module.
      names: names of own layers, or ``name -> bool``.

    Raises:
      ValueError: for a name without a layer, or if a function finds no layer.

    Example:
      >>> split_layers({"params": {"base": 1, "head": 2}}, ("head",))
      ({'params': {'base': 1}}, {'params': {'head': 2}})
    """
    seen = []

    def is_own(name):
        seen.append(name)
        return names(name) if callable(names) else name in names

    def split(tree):
        if isinstance(tree, Mapping):
            shared, own = {}, {}
            for name, layer in tree.items():
                if is_own(str(name)):
                    own[name] = layer
                    continue
                rest, part = split(layer)
                shared |= {name: rest} if jax.tree.leaves(rest) or not part else {}
                own |= {name: part} if jax.tree.leaves(part) else {}
            return shared, own
        flags = jax.tree_util.tree_map_with_path(
            lambda path, _: any([is_own(_name(entry)) for entry in path]), tree
        )
        part = lambda wanted: jax.tree.map(
            lambda leaf, flag: leaf if flag == wanted else None, tree, flags
        )
        return part(False), part(True)

    shared, own = split(params)
    unknown = [] if callable(names) else sorted(set(names) - set(seen))
    if unknown or (callable(names) and not jax.tree.leaves(own)):
        raise ValueError(
            f"layers must be among {sorted(set(seen))}, got {unknown or names}."
        )
    return shared, own


def _name(entry) -> str:
    """Returns the name of an entry of a path in a tree."""
    for field in ("name", "key", "idx"):
        if hasattr(entry, field):
            return str(getattr(entry, field))
    return str(entry)


def merge_layers(shared, own):
    """Joins the parts of ``split_layers``.

    Example:
      >>> merge_layers({"params": {"base": 1}}, {"params": {"head": 2}})
      {'params': {'base': 1, 'head': 2}}
    """
    if isinstance(shared, Mapping) and isinstance(own, Mapping):
        join = lambda name: (
            merge_layers(shared[name], own[name])
            if name in shared and name in own
            else (shared if name in shared else own)[name]
        )
        return {name: join(name) for name in [*shared, *(own.keys() - shared.keys())]}
    choose = lambda a, b: b if a is None else a
    return jax.tree.map(choose, shared, own, is_leaf=lambda leaf: leaf is None)
