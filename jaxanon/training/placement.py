"""A method's rounds on one device, on the cores of a CPU, or on many devices."""

import os

import jax
import jax.numpy as jnp

from jaxanon.core.method import DevicePlacement
from jaxanon.core.programs import rounds_program, sound
from jaxanon.federated import shard, shard_clients
from jaxanon.training import processes


def check_devices(method, devices: int | None) -> None:
    """Refuses devices that there are not, or that a method cannot share.

    Args:
      method: ``Method``.
      devices: how many; None is one, or all there are of several processes.

    Raises:
      ValueError: for fewer than one, or more than there are; or of a method that trains
        on all windows at once, more than one.
    """
    available = num_devices()
    if devices is not None and not 1 <= devices <= available:
        what = "cores" if _by_cores() else "devices"
        raise ValueError(
            f"devices must be at least 1 and at most the {available} {what} there are, "
            f"got {devices!r}."
        )
    if processes.several() and devices not in (None, available):
        raise ValueError(
            f"devices must be all {available} that the processes have, or None, got "
            f"{devices!r}; give processes fewer by JAX_LOCAL_DEVICE_IDS."
        )
    if method.place is not None and not processes.several():
        return
    if method.stages is None and (processes.several() or devices not in (None, 1)):
        raise ValueError(
            f"{method.name} cannot be shared out to devices: only methods can whose "
            "clients train apart and are added up; train it on one, or choose another "
            "method, such as blinder or fedavg."
        )


def num_devices() -> int:
    """How many devices there are to train on: those of JAX, or a CPU's cores."""
    return len(os.sched_getaffinity(0)) if _by_cores() else len(jax.devices())


def _by_cores():
    """Whether the only device is a CPU, whose cores can be workers."""
    devices = jax.devices()
    alone = len(devices) == 1 and hasattr(os, "sched_getaffinity")
    return alone and devices[0].platform == "cpu"


def spread(method, data, devices: int | None) -> DevicePlacement:
    """The program of a method's rounds on so many devices.

    One device takes them as one program, and many accelerators, or processes, do, too
    (``federated.shard_clients``). A CPU's cores are workers with programs of their own,
    whose sums the host adds up (``federated.shard``): what they simulate of a mesh can
    wait for itself for ever.

    Args:
      method: ``Method``; checked by ``check_devices``. One may place itself.
      data: of ``method.prepare``.
      devices: as in ``check_devices``.
    """
    if method.place is not None:
        return method.place(data, devices)
    if processes.several() or (devices or 1) > 1:
        if not processes.several() and jax.default_backend() == "cpu":
            return _by_workers(method, data, devices)
        placed = shard_clients(data, jax.devices()[:devices])
        return DevicePlacement(rounds_program(method.update), placed, placed.replicated)
    return DevicePlacement(rounds_program(method.update), data, lambda tree: tree)


def _by_workers(method, data, devices):
    local = jax.local_devices()
    workers = local[:devices] if len(local) > 1 else local * devices
    sharded = shard(method.federation.algorithm, workers)

    def call(key, state, placed, num):
        infos = []
        for _ in range(num):
            state, info = sharded.update(key, state, placed)
            infos.append(info)
        each = jax.tree.map(lambda *leaves: jnp.stack(leaves), *infos)
        finite = jnp.isfinite(jnp.stack(jax.tree.leaves(each))).all(axis=0)
        bad = jnp.where(finite.all(), num, jnp.argmin(finite))
        bad = jnp.where(sound(state), bad, jnp.minimum(bad, num - 1))
        return state, jax.tree.map(lambda leaf: leaf.mean(axis=0), each), bad

    return DevicePlacement(call, sharded.shard_clients(data), lambda tree: tree)


def to_host(state):
    """A state that each process has for itself, as one device would have left it."""
    own = lambda leaf: jnp.asarray(leaf.addressable_data(0))
    return jax.tree.map(own, state) if processes.several() else state
