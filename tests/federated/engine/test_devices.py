"""Clients and a server on separate devices reproduce one round of the simulation."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon import federated
from jaxanon.federated import Population, Steps, fed_maml
from jaxanon.federated.engine import exchange as engine_exchange
from jaxanon.kernels import Objective, Phase


def _own_rows(data, client):
    """Returns the data stored on one client's device."""
    return jax.tree.map(lambda leaf: leaf[client][None], data)


def _by_devices(algorithm):
    """Returns ``(key, state, data, owns, absent=()) -> (state, info, owns)`` of a
    round.

    The clients never see each other's data.
    """
    parts = engine_exchange.split_algorithm(algorithm)
    cohort_of = jax.jit(parts.cohort, static_argnums=2)
    programs = [
        (
            jax.jit(exchange.reply),
            jax.jit(functools.partial(engine_exchange.merge_messages, exchange)),
        )
        for exchange in parts.exchanges
    ]

    def run(key, state, data, owns, absent=()):
        ids, owns, infos = cohort_of(key, state, 3), list(owns), []
        for exchange, (reply, merge) in zip(parts.exchanges, programs, strict=True):
            for step in range(exchange.num):
                messages, weights = [], []
                for client in ids.tolist():
                    sent, rows = (
                        engine_exchange.broadcast_state(state),
                        _own_rows(data, client),
                    )
                    message, weight, own = reply(
                        key, sent, step, client, rows, owns[client]
                    )
                    messages.append(message)
                    weights.append(0.0 if client in absent else weight)
                    if client not in absent:
                        owns[client] = own
                stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *messages)
                state, found = merge(state, ids, stacked, np.stack(weights))
                infos.append(found)
        return parts.end(state), infos[0], owns

    return run


def _fedavg(start, network):
    return federated.fedavg(
        start,
        network,
        steps=federated.Steps(num_steps=2, batch_size=2),
        cohort_size=2,
        server_optimizer=optax.adam(0.1),
    )


def _atlas(start, network, **more):
    return federated.atlas(
        start, network, steps=Steps(num_steps=2, batch_size=2), num_clients=3, **more
    )


ALGORITHMS = {
    "fedavg": _fedavg,
    "fedper": lambda start, network: federated.fedper(
        start,
        network,
        steps=Steps(num_steps=2, batch_size=2),
        personal_layers=("head",),
        num_clients=3,
        cohort_size=2,
    ),
    "scaffold": lambda start, network: federated.scaffold(
        start, network, steps=Steps(num_steps=2, batch_size=2), num_clients=3
    ),
    "atlas": _atlas,
    "atlas_private": lambda start, network: _atlas(
        start,
        network,
        lots=federated.PoissonSampling(
            sampling_probability=0.5, expected_batch_size=2.0, max_batch_size=4
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_rounds_over_single_clients_are_the_simulation(
    name, start, network, population
):
    algorithm, data = ALGORITHMS[name](start, network), population()
    begun = algorithm.init(jax.random.key(0))
    key = jax.random.key(1)
    wanted, _ = federated.simulate(
        algorithm, key, algorithm.init(jax.random.key(0)), data, 3
    )
    owns, state, run = (
        [engine_exchange.initial_own(begun)] * 3,
        begun,
        _by_devices(algorithm),
    )
    for _ in range(3):
        state, info, owns = run(key, state, data, owns)
    assert np.isfinite(float(info["loss"]))
    if state.own is not None:
        kept = jax.tree.map(lambda *leaves: jnp.stack(leaves), *owns)
        chex.assert_trees_all_close(kept, wanted.own, rtol=2e-5, atol=2e-6)
        # Client states never leave the clients: the server has the initial ones.
        chex.assert_trees_all_equal(state.own, begun.own)
        state, wanted = state._replace(own=None), wanted._replace(own=None)
    chex.assert_trees_all_close(state, wanted, rtol=2e-5, atol=2e-6)


def _meta(**more):
    loss = lambda params, x: 0.5 * jnp.mean((params["model"]["w"] - x) ** 2)
    chase = lambda params, x: (
        0.5 * jnp.mean((params["adversary"]["w"] - params["model"]["w"] - x) ** 2)
    )
    graded = lambda name, fn: lambda params, x: (fn(params, x), {name: fn(params, x)})

    def draw(key, client, data):
        rows, mask = data.rows[client], data.mask[client]
        noise = jax.random.normal(key, (2,))
        return rows[:1] + noise[:1], rows[1:2] + noise[1:], jnp.any(mask).astype(float)

    return fed_maml(
        lambda key: {"model": {"w": jnp.zeros(())}, "adversary": {"w": jnp.zeros(())}},
        draw,
        lambda hyper: [Phase(("model",), loss, 0.5)],
        lambda hyper: [
            Objective(("model",), graded("model", loss)),
            Objective(("adversary",), graded("adversary", chase)),
        ],
        hyper={"server_learning_rate": 0.1},
        cohort_size_fn=lambda num_clients: 2,
        server_optimizer=optax.adam(1.0),
        alone_fn=lambda hyper: Objective(("adversary",), graded("adversary", chase)),
        ema_decay=0.9,
        **more,
    )


@pytest.mark.slow
@pytest.mark.parametrize("alone_rounds", [0, 2])
def test_meta_gradients_of_single_clients_are_the_simulation(alone_rounds):
    algorithm = _meta(alone_rounds=alone_rounds)
    rows = jnp.array([[1.0, 2.0], [5.0, 3.0], [2.0, 8.0]])
    data, key = Population(rows, jnp.ones((3, 2), bool)), jax.random.key(1)
    wanted, infos = federated.simulate(
        algorithm, key, algorithm.init(jax.random.key(0)), data, 3
    )
    state, run = algorithm.init(jax.random.key(0)), _by_devices(algorithm)
    for index in range(3):
        state, info, _ = run(key, state, data, [None] * 3)
        chex.assert_trees_all_close(
            info, jax.tree.map(lambda leaf, i=index: leaf[i], infos), rtol=1e-5
        )
    chex.assert_trees_all_close(state, wanted, rtol=1e-5, atol=1e-6)


def _square(params, x, key):
    return 0.5 * (params["w"] - x) ** 2


def test_two_clients_by_hand_and_one_of_them_absent():
    # Halfway from 0 to 4 and to 10: 2 and 5, with weights 1 and 2.
    algorithm = federated.fedavg(
        lambda key: {"w": jnp.zeros(())}, _square, steps=federated.Steps(num_steps=1)
    )
    (exchange,) = engine_exchange.split_algorithm(algorithm).exchanges
    state = algorithm.init(jax.random.key(0), learning_rate=0.5)
    clients = federated.stack([np.array([4.0]), np.array([10.0, 10.0])])
    replies = [
        exchange.reply(
            *(jax.random.key(1), engine_exchange.broadcast_state(state), 0),
            *(client, _own_rows(clients, client), None),
        )
        for client in range(2)
    ]
    (first, one, _), (second, two, _) = replies
    assert [float(m[0]["w"]) for m in (first, second)] == [-2.0, -5.0]
    assert [float(one), float(two)] == [1.0, 2.0]
    assert [exchange.max_weight(1), exchange.max_weight(2)] == [1.0, 2.0]
    messages = jax.tree.map(lambda *leaves: jnp.stack(leaves), first, second)
    merged = jax.jit(functools.partial(engine_exchange.merge_messages, exchange))
    after = lambda weights: merged(state, np.arange(2), messages, np.array(weights))
    assert float(after([1.0, 2.0])[0].params["w"]) == 4.0  # (1 * 2 + 2 * 5) / 3
    alone, info = after([1.0, 0.0])
    assert float(alone.params["w"]) == 2.0
    # Half of 4 squared; the other client contributes nothing.
    assert float(info["loss"]) == 8.0
    nobody, _ = after([0.0, 0.0])
    assert float(nobody.params["w"]) == 0.0 and int(nobody.round) == 1


@pytest.mark.slow
def test_an_absent_client_keeps_what_it_had_and_the_others_go_on(
    start, network, population
):
    algorithm = ALGORITHMS["scaffold"](start, network)
    data, key = population(), jax.random.key(1)
    begun = algorithm.init(jax.random.key(0))
    # In the simulation, a client without rows has no weight.
    without = data._replace(mask=data.mask.at[1].set(False))
    wanted, _ = jax.jit(algorithm.update)(key, begun, without)
    owns = [engine_exchange.initial_own(begun)] * 3
    state, _, owns = _by_devices(algorithm)(key, begun, data, owns, absent=(1,))
    chex.assert_trees_all_close(state.params, wanted.params, rtol=1e-5, atol=1e-6)
    chex.assert_trees_all_equal(owns[1], engine_exchange.initial_own(begun))


def test_the_only_client_of_a_population(start, network, population):
    algorithm = federated.fedper(
        start,
        network,
        steps=Steps(num_steps=1),
        personal_layers=("head",),
        num_clients=1,
    )
    data, key = population((4,)), jax.random.key(1)
    begun = algorithm.init(jax.random.key(0))
    wanted, _ = jax.jit(algorithm.update)(key, begun, data)
    (exchange,) = engine_exchange.split_algorithm(algorithm).exchanges
    message, weight, own = jax.jit(exchange.reply)(
        key,
        engine_exchange.broadcast_state(begun),
        0,
        0,
        data,
        engine_exchange.initial_own(begun),
    )
    chex.assert_trees_all_close(message[0], wanted.params, rtol=1e-6)
    chex.assert_trees_all_close(own, engine_exchange.initial_own(wanted), rtol=1e-6)
    assert float(weight) == 4.0


def test_what_is_sent_out_and_how_far_a_message_moves_it(start, network):
    algorithm = _atlas(start, network)
    state = algorithm.init(jax.random.key(0))
    sent = engine_exchange.broadcast_state(state)
    assert sent.own is None and sent.average is None
    assert sent.params is state.params and sent.hyper is state.hyper
    (exchange,) = engine_exchange.split_algorithm(algorithm).exchanges
    ones = jax.tree.map(lambda leaf: leaf + 1, state.params)
    senders = {"base": 1.0, "head": 0.0}
    zeros = ones | {"head": jax.tree.map(jnp.zeros_like, ones["head"])}
    way = exchange.direction(state, (zeros, senders))
    chex.assert_trees_all_close(way["base"], jax.tree.map(jnp.ones_like, way["base"]))
    assert float(jnp.abs(way["head"]["v"]).sum()) == 0  # Not sent, so unchanged.
    assert exchange.is_valid((zeros, senders))
    # A client may claim to have sent any layer, so the sum would cover all of them.
    moved = exchange.direction(state, (ones, senders))["head"]
    chex.assert_trees_all_close(moved, ones["head"])
    assert not exchange.is_valid((ones, senders))
    assert not exchange.is_valid((ones, {"base": 1.0, "head": 0.5}))


def test_algorithms_that_no_device_can_run_are_refused():
    bare = federated.FederatedAlgorithm(None, None)
    with pytest.raises(ValueError, match="must have stages to run on real"):
        engine_exchange.split_algorithm(bare)
    algorithm = federated.feddl(
        lambda key: {"w": jnp.zeros(())},
        _square,
        **{"steps": Steps(num_steps=1), "num_clients": 3, "layers": ("w",)},
    )
    state, key = algorithm.init(jax.random.key(0)), jax.random.key(1)
    (exchange,) = engine_exchange.split_algorithm(algorithm).exchanges
    clients = federated.stack([np.array([4.0])] * 3)
    data, own = _own_rows(clients, 0), engine_exchange.initial_own(state)
    sent = engine_exchange.broadcast_state(state)
    message, weight, _ = jax.eval_shape(exchange.reply, key, sent, 0, 0, data, own)
    with pytest.raises(ValueError, match="must not use personal states on the server"):
        jax.eval_shape(exchange.merge, state, jnp.arange(3), message, weight)
