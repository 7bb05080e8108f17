"""Placement of a method's rounds on one device, CPU cores or many devices."""

import os

import jax
import jax.numpy as jnp

from jaxanon.core.method import DevicePlacement
from jaxanon.core.programs import rounds_program, state_is_finite
from jaxanon.federated import shard, shard_clients
from jaxanon.training import processes


def check_devices(method, devices: int | None) -> None:
    """Checks that a method can train on a number of devices.

    Args:
      method: ``Method``.
      devices: number of devices; None is one, or all devices of several processes.

    Raises:
      ValueError: if the number is below 1 or above the available devices, or above 1
        for a method that trains on all windows at once.
    """
    available = num_devices()
    if devices is not None and not 1 <= devices <= available:
        kind = "cores" if _by_cores() else "devices"
        raise ValueError(
            f"devices must be between 1 and {available}, the number of available "
            f"{kind}, got {devices!r}."
        )
    if processes.several() and devices not in (None, available):
        raise ValueError(
            f"devices must be {available}, the number of all processes' devices, or "
            f"None, got {devices!r}; set JAX_LOCAL_DEVICE_IDS to use fewer."
        )
    if method.place is not None and not processes.several():
        return
    if method.stages is None and (processes.several() or devices not in (None, 1)):
        raise ValueError(
            f"devices must be 1 for {method.name}, got {devices!r}: several devices "
            "require a method that sums the updates of separate clients, such as "
            "blinder or fedavg."
        )


def num_devices() -> int:
    """Returns the number of devices for training: JAX's devices, or CPU cores."""
    return len(os.sched_getaffinity(0)) if _by_cores() else len(jax.devices())


def _by_cores():
    """Returns whether the only device is a CPU, whose cores can be workers."""
    devices = jax.devices()
    single_device = len(devices) == 1 and hasattr(os, "sched_getaffinity")
    return single_device and devices[0].platform == "cpu"


def place_rounds(method, data, devices: int | None) -> DevicePlacement:
    """Returns the program of a method's rounds on a number of devices.

    One device, several accelerators and several processes each run one program
    (``federated.shard_clients``). CPU cores run separate programs, and the host adds
    their sums (``federated.shard``), because a simulated mesh of CPU devices can
    deadlock.

    Args:
      method: ``Method``, checked by ``check_devices``; it may place itself.
      data: result of ``method.prepare``.
      devices: number of devices, as in ``check_devices``.
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
        bad = jnp.where(state_is_finite(state), bad, jnp.minimum(bad, num - 1))
        return state, jax.tree.map(lambda leaf: leaf.mean(axis=0), each), bad

    return DevicePlacement(call, sharded.shard_clients(data), lambda tree: tree)


def to_host(state):
    """Returns a state on this process' first device, as if one device had trained."""
    local = lambda leaf: jnp.asarray(leaf.addressable_data(0))
    return jax.tree.map(local, state) if processes.several() else state
