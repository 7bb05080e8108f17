"""Many rounds in one call, on one device or with one shard of clients on each."""

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

    Calling it again with the state that it returned goes on exactly as one longer call
    would have. The given state is donated: its buffers are gone afterwards.

    Args:
      algorithm: a ``FederatedAlgorithm``; static.
      key: the run's key, the same at every call.
      state: from ``algorithm.init`` or an earlier call.
      clients: what ``algorithm.update`` reads.
      num_rounds: a Python int; static.

    Returns:
      The new state, and ``info`` with a leading axis of rounds.

    Example:
      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedavg(lambda key: jnp.zeros(()), square, num_steps=1)
      >>> clients = fed.stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
      >>> state, info = fed.simulate(algorithm, jax.random.key(1), state, clients, 2)
      >>> state.params, info["loss"]
      (Array(1.5, dtype=float32), Array([4. , 2.5], dtype=float32))
    """

    def one_round(state, _):
        return algorithm.update(key, state, clients)

    return jax.lax.scan(one_round, state, length=num_rounds)


class ShardedAlgorithm(NamedTuple):
    """An algorithm whose cohorts are shared out to workers.

    ``place(clients)`` copies the population to every device, once; ``update(key, state,
    placed) -> (state, info)`` is one round, driven from Python.
    """

    shard_clients: Callable
    update: Callable


def shard(algorithm, devices=None) -> ShardedAlgorithm:
    """One shard of the cohort per worker, each its own program, merged by the host.

    On a CPU small products are slow to share out to cores, and one program per core is
    several times as fast as ``simulate``. No collectives: where devices of a CPU are
    simulated, they can wait for each other for ever. The result is that of
    ``algorithm.update`` up to rounding.

    Args:
      algorithm: a ``FederatedAlgorithm`` with ``stages``, such as ``fedavg`` makes, or
        a ``jaxanon.methods.Method`` with them.
      devices: a sequence of devices, where one that stands there twice works on two
        shards at a time; ``None`` is ``jax.local_devices()``, and a CPU that is one
        device once for each of its cores.

    Raises:
      ValueError: if the algorithm has no ``stages``.

    Example:
      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedavg(lambda key: jnp.zeros(()), square, num_steps=1)
      >>> sharded = fed.shard(algorithm)
      >>> placed = sharded.shard_clients(fed.stack([jnp.array([4.0]), jnp.array([0.0])]))
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
      >>> state, info = sharded.update(jax.random.key(1), state, placed)
      >>> state.params
      Array(1., dtype=float32)
    """
    stages = algorithm.stages
    if stages is None:
        raise ValueError(
            "algorithm must have stages to be sharded, and dp_fedavg and clustered have "
            "none; run it on one device by simulate."
        )
    devices = _workers() if devices is None else list(devices)
    # Programs that one thread starts on one device run one after another.
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

    # The first stage is another program than those after it, which are all one.
    jit = functools.partial(jax.jit, static_argnames="num_clients")
    in_first = lambda fn: jit(functools.partial(fn, stage=0))
    first = in_first(of_shard), in_first(merged)
    later = jit(of_shard), jit(merged)
    finish = jax.jit(stages.finish)

    def place(clients):
        return [jax.device_put(clients, device) for device in devices]

    def stage_of(programs, key, state, placed, **stage):
        work, merge = programs
        num_clients = count_clients(placed[0])
        # All in its place before the first begins, for copies wait for programs.
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

    return ShardedAlgorithm(place, update)


def _workers():
    """Devices, or the only one once for each core of the CPU that it is."""
    devices = jax.local_devices()
    if len(devices) > 1 or devices[0].platform != "cpu":
        return devices
    return devices * (os.cpu_count() or 1)
