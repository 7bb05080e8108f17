"""Runs FedJAX on federated's work: WORK OUT ROUNDS BACKEND."""

import functools
import importlib.metadata
import os
import sys

if sys.argv[4] == "pmap":  # One device per core.
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={os.cpu_count()}"

import fedjax
import jax
import jax.numpy as jnp

from federated import work as fed_work


def main():
    """Runs FedJAX's FedAvg; clients run in sequence by jit, or by pmap."""
    work = fed_work.load(sys.argv[1])
    laps = fed_work.Laps(sys.argv[2], int(sys.argv[3]))
    sizes = work.sizes

    def loss(params, batch, rng):
        del rng
        h = batch["x"]
        for i in range(len(params)):
            kernel, bias = params[f"layer_{i}"]
            h = h @ kernel + bias
            h = jax.nn.relu(h) if i + 1 < len(params) else h
        return jnp.mean((h - batch["x"]) ** 2)

    algorithm = fedjax.algorithms.fedavg.federated_averaging(
        jax.grad(loss),
        client_optimizer=fedjax.optimizers.sgd(sizes.learning_rate),
        server_optimizer=fedjax.optimizers.sgd(1.0),
        client_batch_hparams=fedjax.ShuffleRepeatBatchHParams(
            batch_size=sizes.batch,
            num_epochs=None,
            num_steps=sizes.steps,
            skip_shuffle=True,
        ),
    )
    keys = jax.random.split(jax.random.PRNGKey(0), sizes.clients)
    clients = [
        (str(number), fedjax.ClientDataset({"x": rows}), keys[number])
        for number, rows in enumerate(work.rows)
    ]
    params = {
        f"layer_{i}": tuple(jnp.asarray(x) for x in layer)
        for i, layer in enumerate(work.layers)
    }
    layers = lambda params: [params[f"layer_{i}"] for i in range(len(params))]
    state = algorithm.init(params)
    with fedjax.for_each_client_backend(sys.argv[4]):
        for _ in range(laps.total):
            state, _ = algorithm.apply(state, clients)
            jax.block_until_ready(state.params)
            laps.lap(functools.partial(layers, state.params))
    laps.save(fedjax=importlib.metadata.version("fedjax"), jax=jax.__version__)
