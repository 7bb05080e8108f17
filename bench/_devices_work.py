"""What bench/devices.py times: two algorithms, in a program, by workers, by processes.

As a script it is one of several processes: ``INDEX NUM PORT CASE ROUNDS``
and ``smoke`` or ``full`` are its words.
"""

import json
import sys
import time

import _fed_work
import _timing
import jax
import jax.numpy as jnp
import meta
import numpy as np
import optax

from jaxanon import federated
from jaxanon.models import blinder


def case(name, smoke):
    """``(algorithm, clients, operations of a client)``: FedAvg, or Blinder's update."""
    return {"FedAvg": fed_avg, "Blinder": blinder_update}[name](smoke)


def loss_fn(layers, x, key):
    """Squared error of an autoencoder of ReLUs, per row."""
    del key
    h = x
    for index, (kernel, bias) in enumerate(layers):
        h = h @ kernel + bias[None]
        h = jax.nn.relu(h) if index + 1 < len(layers) else h
    return jnp.mean((h - x) ** 2, axis=1)


def fed_avg(smoke):
    """Of bench/federated.py, over 256 clients."""
    sizes = _fed_work.SMOKE if smoke else _fed_work.Sizes()._replace(clients=256)
    work = _fed_work.make(sizes)

    algorithm = federated.fed_avg(
        lambda key: jax.tree.map(jnp.asarray, work.layers),
        loss_fn,
        num_steps=sizes.steps,
        batch_size=sizes.batch,
        shuffle=False,
    )
    flops = _fed_work.flops_per_update(sizes)
    return algorithm, federated.stack(list(work.rows)), flops


def blinder_update(smoke, clients=None):
    """Blinder's at MobiAct's sizes, second order, over 256 clients or so many."""
    clients = clients or (6 if smoke else 256)
    hidden = meta.SMOKE_HIDDEN if smoke else meta.HIDDEN
    networks, params, (support, query) = meta.problem(clients, hidden)
    scale = blinder.LossScale(*meta.SCALE)
    of = lambda tree, client: jax.tree.map(lambda leaf: leaf[client], tree)
    algorithm = federated.meta(
        lambda key: params,
        lambda key, client, data: (*of(data, client), jnp.ones(())),
        lambda hyper: blinder.phases(
            networks, scale, meta.STEP_SIZE, discriminator_steps=1 if smoke else 5
        ),
        lambda hyper: (blinder.joint_objective(networks, scale),),
        hyper={"server_step_size": 1e-3},
        server_optimizer=optax.adam(1.0),
    )
    return algorithm, (support, query), meta.flops_per_update(params)


def one_program(algorithm, clients, rounds):
    """Seconds of a round in one program, and the parameters.

    On one device, or on those of ``federated.place``.
    """
    placed = isinstance(clients, federated.Placed)
    put = clients.replicated if placed else lambda tree: tree
    key, state = put(jax.random.key(1)), put(algorithm.init(jax.random.key(0)))
    state, _ = federated.simulate(algorithm, key, state, clients, rounds)
    jax.block_until_ready(state)
    start = time.perf_counter()
    state, _ = federated.simulate(algorithm, key, state, clients, rounds)
    jax.block_until_ready(state)
    return (time.perf_counter() - start) / rounds, state.params


def by_workers(algorithm, clients, rounds, devices):
    """The same by ``federated.shard``."""
    sharded, key = federated.shard(algorithm, devices), jax.random.key(1)
    placed, state = sharded.place(clients), algorithm.init(jax.random.key(0))
    for index in range(2 * rounds):
        if index == rounds:
            jax.block_until_ready(state)
            start = time.perf_counter()
        state, _ = sharded.update(key, state, placed)
    jax.block_until_ready(state)
    return (time.perf_counter() - start) / rounds, state.params


def checksum(params) -> list[float]:
    """A few numbers that two routes to the same parameters must share."""
    return [float(np.abs(np.asarray(x)).mean()) for x in jax.tree.leaves(params)[:4]]


def main():
    """Is one of several processes; the first prints what it measured."""
    from jaxanon.training import processes

    index, num, port = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    name, rounds, smoke = sys.argv[4], int(sys.argv[5]), sys.argv[6] == "smoke"
    processes.join(f"127.0.0.1:{port}", num, index)
    algorithm, clients, _ = case(name, smoke)
    placed = federated.place(clients)
    seconds, params = one_program(algorithm, placed, rounds)
    if index == 0:
        told = {"seconds": seconds, "checksum": checksum(params)}
        print(json.dumps(told | {"device": _timing.device()}))


if __name__ == "__main__":
    main()
