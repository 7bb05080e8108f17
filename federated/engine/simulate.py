"""Simulation of rounds in one program, or with one shard of the cohort per worker."""

import concurrent.futures
import functools
import os
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine.algorithm import count_clients


@functools.partial(
    jax.jit, static_argnames=("algorithm", "num_rounds"), donate_argnames="state"
)
def simulate(algorithm, key, state, clients, num_rounds):
    """Runs ``num_rounds`` rounds as one compiled program.

    A further call with the returned state continues exactly like one longer call. The
    given state is donated: its buffers are invalid afterwards.

    Args:
      algorithm: ``FederatedAlgorithm``; static. Builders return the same one for equal
        arguments, which does not compile again.
      key: typed PRNG key of the run, the same at every call.
      state: state from ``algorithm.init`` or an earlier call.
      clients: population for ``algorithm.update``.
      num_rounds: Python int; static.

    Returns:
      The new state, and ``info`` with a leading axis of rounds.

    Example:
      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedavg(
      ...     lambda key: jnp.zeros(()), square, steps=fed.Steps(num_steps=1))
      >>> clients = fed.stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> state, info = fed.simulate(algorithm, jax.random.key(1), state, clients, 2)
      >>> state.params, info["loss"]
      (Array(1.5, dtype=float32), Array([4. , 2.5], dtype=float32))
    """

    def one_round(state, _):
        return algorithm.update(key, state, clients)

    return jax.lax.scan(one_round, state, length=num_rounds)


class ShardedAlgorithm(NamedTuple):
    """An algorithm whose cohorts are distributed to workers.

    ``shard_clients(clients)`` copies the population to every device once.
    ``update(key, state, placed) -> (state, info)`` is one round, driven from Python.
    """

    shard_clients: Callable
    update: Callable


def shard(algorithm, devices=None) -> ShardedAlgorithm:
    """Distributes cohorts to workers with separate programs, merged by the host.

    On a CPU, one program per core is several times faster than ``simulate``, because
    small products parallelise poorly. It uses no collectives, which can deadlock on
    devices simulated by a CPU. The result equals that of ``algorithm.update`` up to
    rounding.

    Args:
      algorithm: ``FederatedAlgorithm`` (or ``jaxanon.methods.Method``) with ``stages``,
        such as ``fedavg``.
      devices: sequence of devices; a device listed twice works on two shards at a time.
        None is ``jax.local_devices()``, with a single CPU device listed once per core.

    Raises:
      ValueError: if the algorithm has no ``stages``.

    Example:
      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedavg(
      ...     lambda key: jnp.zeros(()), square, steps=fed.Steps(num_steps=1))
      >>> sharded = fed.shard(algorithm)
      >>> clients = fed.stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> placed = sharded.shard_clients(clients)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> state, info = sharded.update(jax.random.key(1), state, placed)
      >>> state.params
      Array(1., dtype=float32)
    """
    stages = algorithm.stages
    if stages is None:
        raise ValueError(
            "algorithm must have stages to be sharded, got None (as for dp_fedavg and "
            "centralized_clustering); use simulate on one device."
        )
    devices = _workers() if devices is None else list(devices)
    # Programs started by one thread on one device run sequentially.
    threads = concurrent.futures.ThreadPoolExecutor(len(devices), "shard")

    def of_shard(key, state, clients, which, num_clients, stage):
        ids = stages.cohort(key, state, num_clients)
        size = -(-len(ids) // len(devices))
        place = which * size + jnp.arange(size)
        own = ids[jnp.minimum(place, len(ids) - 1)]
        return stages.work(key, state, clients, own, place < len(ids), stage=stage)

    def merged(key, state, parts, num_clients, stage):
        ids = stages.cohort(key, state, num_clients)
        sums, kept = zip(*parts, strict=True)
        total = functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), sums)
        joined = jax.tree.map(lambda *a: jnp.concatenate(a)[: len(ids)], *kept)
        return stages.merge(state, ids, total, joined, stage=stage)

    # The first stage is one program, and all later stages share another.
    jit = functools.partial(jax.jit, static_argnames="num_clients")
    in_first = lambda fn: jit(functools.partial(fn, stage=0))
    first = in_first(of_shard), in_first(merged)
    later = jit(of_shard), jit(merged)
    finish = jax.jit(stages.finish)

    def shard_clients(clients):
        return [jax.device_put(clients, device) for device in devices]

    def stage_of(programs, key, state, placed, **stage):
        work, merge = programs
        num_clients = count_clients(placed[0])
        # All inputs are copied first, because copies wait for running programs.
        inputs = [
            jax.device_put((key, state, np.int32(which), stage), device)
            for which, device in enumerate(devices)
        ]
        run = lambda own, clients: work(
            own[0], own[1], clients, own[2], num_clients=num_clients, **own[3]
        )
        parts = jax.device_put([*threads.map(run, inputs, placed)], devices[0])
        return merge(key, state, parts, num_clients=num_clients, **stage)

    def update(key, state, placed):
        state, info = stage_of(first, key, state, placed)
        for number in range(1, stages.more_stages + 1):
            stage = np.int32(number)
            state, _ = stage_of(later, key, state, placed, stage=stage)
        return finish(state), info

    return ShardedAlgorithm(shard_clients, update)


def _workers():
    """Returns the devices, with a single CPU device repeated once per core."""
    devices = jax.local_devices()
    if len(devices) > 1 or devices[0].platform != "cpu":
        return devices
    return devices * (os.cpu_count() or 1)
