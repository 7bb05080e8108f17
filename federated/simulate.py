"""Many rounds in one call, on one device or with one shard of clients on each."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.federated import algorithm as algorithms
from jaxanon.federated import layout as layouts


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
      >>> algorithm = fed.fed_avg(lambda key: jnp.zeros(()), square, num_steps=1)
      >>> clients = fed.stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
      >>> state, info = fed.simulate(algorithm, jax.random.key(1), state, clients, 2)
      >>> state.params, info["loss"]
      (Array(1.5, dtype=float32), Array([4. , 2.5], dtype=float32))
    """

    def one_round(state, _):
        return algorithm.update(key, state, clients)

    return jax.lax.scan(one_round, state, length=num_rounds)


class Sharded(NamedTuple):
    """An algorithm whose cohorts are shared out to devices.

    ``place(clients)`` copies the population to every device, once; ``update(key, state,
    placed) -> (state, info)`` is one round, driven from Python.
    """

    place: Callable
    update: Callable


def shard(algorithm, devices=None) -> Sharded:
    """One shard of the cohort per device, each its own program, merged by the host.

    No collectives: on a CPU with as many simulated devices as cores they can wait for
    each other for ever. The result is that of ``algorithm.update`` up to rounding.

    Args:
      algorithm: a ``FederatedAlgorithm`` with ``acts``, such as ``fed_avg`` makes.
      devices: a sequence of devices; ``None`` is ``jax.local_devices()``. For one per
        core of a CPU, set ``XLA_FLAGS=--xla_force_host_platform_device_count=2``
        before JAX is imported.

    Raises:
      ValueError: if the algorithm has no ``acts``.

    Example:
      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fed_avg(lambda key: jnp.zeros(()), square, num_steps=1)
      >>> sharded = fed.shard(algorithm)
      >>> placed = sharded.place(fed.stack([jnp.array([4.0]), jnp.array([0.0])]))
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
      >>> state, info = sharded.update(jax.random.key(1), state, placed)
      >>> state.params
      Array(1., dtype=float32)
    """
    acts = algorithm.acts
    if acts is None:
        raise ValueError(
            "algorithm must have acts to be sharded; build it with fed_sgd or fed_avg, "
            "or run it on one device by simulate."
        )
    devices = jax.local_devices() if devices is None else list(devices)

    @jax.jit
    def of_shard(key, state, clients, which):
        ids = acts.cohort(key, state.round, len(clients.mask))
        size = -(-len(ids) // len(devices))
        place = which * size + jnp.arange(size)
        own = ids[jnp.minimum(place, len(ids) - 1)]
        return algorithms.client_sum(acts, key, state, clients, own, place < len(ids))

    @jax.jit
    def merge(state, sums):
        total, weight = functools.reduce(lambda a, b: jax.tree.map(jnp.add, a, b), sums)
        gradient, info = layouts.divide(total, weight)
        return acts.server(state, gradient), info

    def place(clients):
        return [jax.device_put(clients, device) for device in devices]

    def update(key, state, placed):
        sums = []
        for which, device in enumerate(devices):
            inputs = jax.device_put((key, state), device)
            sums.append(of_shard(*inputs, placed[which], jnp.int32(which)))
        return merge(state, jax.device_put(sums, devices[0]))

    return Sharded(place, update)
