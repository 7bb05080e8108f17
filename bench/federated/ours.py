"""Runs our FedAvg and others: python bench federated.ours WORK OUT BLOCKS CASE.

For a case of many clients, WORK is ``-`` and the case creates its data.
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from federated import many_clients
from federated import work as fed_work
from federated.check import EPSILON, NOISE_MULTIPLIER, RADIUS
from jaxanon import federated
from jaxanon.federated import Layout, PoissonSampling, Steps

FIRST_SCORE = 0.6  # Above the threshold: all layers are shared, as in FedAvg.
KEYS = {"init": 0, "run": 1}


def loss_fn(layers, x, key):
    """Returns the mean squared error of every row."""
    del key
    h = x
    for i in range(len(layers)):
        layer = layers[f"layer_{i}"]
        h = h @ layer["kernel"] + layer["bias"][None]
        h = jax.nn.relu(h) if i + 1 < len(layers) else h
    return jnp.mean((h - x) ** 2, axis=1)


def tree_of(layers):
    """Converts layers to a dict of dicts."""
    return {
        f"layer_{i}": {"kernel": jnp.asarray(kernel), "bias": jnp.asarray(bias)}
        for i, (kernel, bias) in enumerate(layers)
    }


def layers_of(tree):
    """Inverts ``tree_of``."""
    tree = jax.device_get(tree)
    layers = (tree[f"layer_{i}"] for i in range(len(tree)))
    return [(layer["kernel"], layer["bias"]) for layer in layers]


def fedavg(work, layout=None):
    """Returns FedAvg over all clients with rows in their given order."""
    sizes = work.sizes
    algorithm = federated.fedavg(
        lambda key: tree_of(work.layers),
        loss_fn,
        steps=federated.Steps(
            num_steps=sizes.steps, batch_size=sizes.batch, shuffle=False
        ),
        layout=layout,
    )
    return algorithm, {"learning_rate": sizes.learning_rate}


def steps_of(sizes):
    """Returns the same steps for algorithms whose clients have a state."""
    return Steps(num_steps=sizes.steps, batch_size=sizes.batch, shuffle=False)


def lots_of(sizes):
    """Returns Poisson sampling with the same mean batch size."""
    probability = sizes.batch / sizes.rows
    return PoissonSampling(
        sampling_probability=probability,
        expected_batch_size=float(sizes.batch),
        max_examples=sizes.rows,
    )


def atlas(work, noisy, layout=None):
    """Returns Atlas with plain steps, or with Poisson sampling, clipping and noise."""
    sizes = work.sizes
    algorithm = federated.atlas(
        lambda key: tree_of(work.layers),
        loss_fn,
        steps=steps_of(sizes),
        num_clients=sizes.clients,
        lots=lots_of(sizes) if noisy else None,
        weighting="clients",
        layout=layout,
    )
    hyper = {"learning_rate": sizes.learning_rate, "first_score": FIRST_SCORE}
    return algorithm, hyper | {"noise_multiplier": NOISE_MULTIPLIER}


def ldp_fl(work):
    """Returns LDP-FL: the same steps, then one of two values for every weight."""
    sizes = work.sizes
    algorithm = federated.ldp_fl(
        lambda key: tree_of(work.layers),
        loss_fn,
        steps=steps_of(sizes),
        radii=RADIUS,
        num_clients=sizes.clients,
        cut_mean=False,  # The check distinguishes two values by their means.
    )
    return algorithm, {"learning_rate": sizes.learning_rate, "weight_epsilon": EPSILON}


def simulated(algorithm, hyper, clients, rounds=fed_work.COMPARED):
    """Returns ``(state, block)``; a block of rounds is one program on one device."""
    state = algorithm.init(jax.random.key(KEYS["init"]), **hyper)
    key = jax.random.key(KEYS["run"])

    def block(state):
        return federated.simulate(algorithm, key, state, clients, rounds)[0]

    return state, block


def sharded(algorithm, hyper, clients, rounds=fed_work.COMPARED):
    """Returns the same as ``simulated`` with a shard of clients per device."""
    state = algorithm.init(jax.random.key(KEYS["init"]), **hyper)
    key = jax.random.key(KEYS["run"])
    shards = federated.shard(algorithm)
    placed = shards.shard_clients(clients)

    def block(state):
        for _ in range(rounds):
            state, _ = shards.update(key, state, placed)
        return state

    return state, block


CASES = {
    "FedAvg, a shard per device": (sharded, fedavg),
    "FedAvg, one device": (simulated, fedavg),
    "FedAvg, side by side": (simulated, lambda work: fedavg(work, Layout())),
    "Atlas, one device": (simulated, lambda work: atlas(work, noisy=False)),
    "Atlas with noise, one device": (simulated, lambda work: atlas(work, noisy=True)),
    "LDP-FL, one device": (simulated, ldp_fl),
}


def main():
    """Measures one case in this process."""
    path, out, blocks, name = sys.argv[1:]
    if name in many_clients.CASES:
        return many_clients.measure(out, name)
    work = fed_work.load(path)
    run, make = CASES[name]
    mask = np.ones(work.rows.shape[:2], bool)
    state, block = run(*make(work), federated.population(work.rows, mask))
    seconds, layers = [], None
    for _ in range(int(blocks) + 1):  # The first compiles and is checked.
        start = time.perf_counter()
        state = jax.block_until_ready(block(state))
        seconds.append((time.perf_counter() - start) / fed_work.COMPARED)
        layers = layers_of(state.params) if layers is None else layers
    fed_work.write(
        out, seconds[1:], layers, seconds[0] * fed_work.COMPARED, jax=jax.__version__
    )
