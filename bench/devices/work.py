"""Two algorithms timed in one program, by workers and by processes.

As a script, runs one of several processes with the arguments ``INDEX NUM PORT CASE
ROUNDS`` and ``smoke`` or ``full``.
"""

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

from blinder import meta_gradient
from federated import ours
from federated import work as fed_work
from harness import timing
from jaxanon import federated
from jaxanon.models import blinder


def case(name, smoke):
    """Returns ``(algorithm, clients, operations per client)`` of a case."""
    return {"FedAvg": fedavg, "Blinder": blinder_update}[name](smoke)


def fedavg(smoke):
    """FedAvg of the benchmark ``federated``, with 256 clients."""
    sizes = fed_work.SMOKE if smoke else fed_work.Sizes()._replace(clients=256)
    made = fed_work.make(sizes)
    algorithm, _ = ours.fedavg(made)
    flops = fed_work.flops_per_update(sizes)
    return algorithm, federated.stack(list(made.rows)), flops


def blinder_update(smoke, clients=None):
    """Blinder's update at MobiAct's sizes, second order, by default 256 clients."""
    clients = clients or (6 if smoke else 256)
    hidden = meta_gradient.SMOKE_HIDDEN if smoke else meta_gradient.HIDDEN
    networks, params, (support, query) = meta_gradient.problem(clients, hidden)
    scale = blinder.LossScale(*meta_gradient.SCALE)
    of = lambda tree, client: jax.tree.map(lambda leaf: leaf[client], tree)
    algorithm = federated.fed_maml(
        lambda key: params,
        lambda key, client, data: (*of(data, client), jnp.ones(())),
        lambda hyper: blinder.phases(
            networks,
            scale,
            meta_gradient.STEP_SIZE,
            discriminator_steps=1 if smoke else 5,
        ),
        lambda hyper: (blinder.joint_objective(networks, scale),),
        hyper={"server_learning_rate": 1e-3},
        server_optimizer=optax.adam(1.0),
    )
    return algorithm, (support, query), meta_gradient.flops_per_update(params)


def one_program(algorithm, clients, rounds):
    """Returns seconds per round in one program, and the parameters.

    Uses one device, or those of ``federated.shard_clients``.
    """
    placed = isinstance(clients, federated.ShardedClients)
    put = clients.replicated if placed else lambda tree: tree
    key, state = put(jax.random.key(1)), put(algorithm.init(jax.random.key(0)))
    state, _ = federated.simulate(algorithm, key, state, clients, rounds)
    jax.block_until_ready(state)
    start = time.perf_counter()
    state, _ = federated.simulate(algorithm, key, state, clients, rounds)
    jax.block_until_ready(state)
    return (time.perf_counter() - start) / rounds, state.params


def by_workers(algorithm, clients, rounds, devices):
    """Returns the same as ``one_program``, using ``federated.shard``."""
    sharded, key = federated.shard(algorithm, devices), jax.random.key(1)
    placed, state = sharded.shard_clients(clients), algorithm.init(jax.random.key(0))
    for index in range(2 * rounds):
        if index == rounds:
            jax.block_until_ready(state)
            start = time.perf_counter()
        state, _ = sharded.update(key, state, placed)
    jax.block_until_ready(state)
    return (time.perf_counter() - start) / rounds, state.params


def checksum(params) -> list[float]:
    """Returns a few numbers that must agree between two routes."""
    return [float(np.abs(np.asarray(x)).mean()) for x in jax.tree.leaves(params)[:4]]


def main():
    """Runs one of several processes; the first prints the measurement."""
    from jaxanon.training import processes

    index, num, port = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    name, rounds, smoke = sys.argv[4], int(sys.argv[5]), sys.argv[6] == "smoke"
    processes.join(f"127.0.0.1:{port}", num, index)
    algorithm, clients, _ = case(name, smoke)
    placed = federated.shard_clients(clients)
    seconds, params = one_program(algorithm, placed, rounds)
    if index == 0:
        told = {"seconds": seconds, "checksum": checksum(params)}
        print(json.dumps(told | {"device": timing.device()}))
