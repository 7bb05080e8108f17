"""Clients sharded over devices, each of which works on a part of the cohort."""

import dataclasses
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec

from jaxanon.federated.engine.layout import num_bytes

AXIS = "clients"  # Mesh axis.


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ShardedClients:
    """Clients on several devices, accepted by ``update`` in place of a population.

    Attributes:
      data: tree of arrays ``[clients, ...]``. Without copies it is padded with zeros to
        a multiple of the number of devices and sharded in order.
      num_clients: number of real clients.
      mesh: mesh with the single axis ``"clients"``.
      copies: whether every device holds all clients.
    """

    data: Any
    num_clients: int = dataclasses.field(metadata={"static": True})
    mesh: jax.sharding.Mesh = dataclasses.field(metadata={"static": True})
    copies: bool = dataclasses.field(metadata={"static": True})

    def replicated(self, tree):
        """Returns the tree replicated on every device of all processes."""
        return _put(tree, NamedSharding(self.mesh, PartitionSpec()))


def shard_clients(
    clients, devices=None, *, copies: bool | None = None
) -> ShardedClients:
    """Places clients on several devices, for any number of clients and devices.

    A round is then one program on all devices (``simulate``, or ``jax.jit`` of
    ``algorithm.update``). Each device works on an equal part of the cohort, parameters
    are replicated, and results are summed by one reduction. Results equal those of one
    device up to the rounding of sums. With ``jax.distributed`` the devices may belong
    to several processes, each of which must call this function with the same clients.
    Personal state is part of the algorithm's state and is replicated on every device.

    Clients are either replicated or sharded. If they are sharded, members of a partial
    cohort are transferred to the device that works on them.

    Programs wait for each other's sums, which can deadlock on devices simulated by a
    CPU; use ``shard`` for those.

    Args:
      clients: tree of arrays ``[clients, ...]``, such as a ``Population``.
      devices: sequence of devices. None is all devices of all processes.
      copies: whether to replicate the clients on every device. None does so if they use
        at most a quarter of its memory (1 GiB if the memory is unknown).

    Raises:
      ValueError: if arrays differ in their number of clients, or are empty.

    Example:
      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedavg(
      ...     lambda key: jnp.zeros(()), square, steps=fed.Steps(num_steps=1))
      >>> clients = fed.stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> placed = fed.shard_clients(clients, jax.devices()[:1])
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> state, info = algorithm.update(jax.random.key(1), state, placed)
      >>> state.params
      Array(1., dtype=float32)
    """
    leaves = jax.tree.leaves(clients)
    sizes = sorted({leaf.shape[0] if np.ndim(leaf) else 0 for leaf in leaves})
    if len(sizes) != 1 or not sizes[0]:
        raise ValueError(
            "clients must be arrays [clients, ...] with the same number of clients >= "
            f"1, got {sizes}."
        )
    num_clients = sizes[0]
    devices = np.asarray(jax.devices() if devices is None else devices)
    auto = (jax.sharding.AxisType.Auto,)
    mesh = jax.sharding.Mesh(devices, (AXIS,), axis_types=auto)
    if copies is None:
        copies = bool(num_bytes(clients) <= _room(jax.local_devices()[0]))
    missing = 0 if copies else -num_clients % mesh.size

    def filled(leaf):
        leaf = np.asarray(leaf)
        return np.pad(leaf, [(0, missing)] + [(0, 0)] * (leaf.ndim - 1))

    data = jax.tree.map(filled, clients) if missing else clients
    where = PartitionSpec() if copies else PartitionSpec(AXIS)
    return ShardedClients(
        _put(data, NamedSharding(mesh, where)), num_clients, mesh, copies
    )


def _room(device):
    """Returns the bytes of a device that copies of all clients may use."""
    stats = device.memory_stats() or {}
    room = np.float32(stats.get("bytes_limit", 4 << 30) // 4)
    if jax.process_count() == 1:
        return room
    return multihost_utils.process_allgather(room).min()  # Must agree on all processes.


def _put(tree, sharding):
    """Places each device's part; a process transfers only what its devices need."""
    if sharding.is_fully_addressable:
        return jax.device_put(tree, sharding)

    def put(leaf):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raw = put(jax.random.key_data(leaf))
            return jax.random.wrap_key_data(raw, impl=jax.random.key_impl(leaf))
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, sharding, lambda at: host[at])

    return jax.tree.map(put, tree)


def shard_work(work, placed: ShardedClients):
    """Distributes ``work`` of ``RoundStages`` over all devices of ``placed``.

    Args:
      work: ``work`` of ``RoundStages``.
      placed: ``ShardedClients``.

    Returns:
      ``(key, state, ids, stage) -> (sums, kept)``, with the total sums of all devices
      and the personal state of each of ``ids``.
    """
    mesh, all_, own_part = placed.mesh, PartitionSpec(), PartitionSpec(AXIS)
    spread = NamedSharding(mesh, own_part)

    def of_cohort(key, state, ids, stage):
        num = len(ids)
        at = jnp.arange(-(-num // mesh.size) * mesh.size)
        counted, members = at < num, placed.data
        own_ids = ids[jnp.minimum(at, num - 1)]
        take = lambda leaf: jax.lax.with_sharding_constraint(leaf[own_ids], spread)
        kept = None
        if not placed.copies:
            if num < placed.num_clients:  # Otherwise all clients are in place.
                members = jax.tree.map(take, members)
            kept = jax.tree.map(take, state.own)
            if kept is not None:
                state = state._replace(own=None)  # Other clients' state stays in place.

        def part(key, state, members, kept, ids, counted, *traced):
            if kept is not None:
                state = state._replace(own=kept)
            at = None if placed.copies else jnp.arange(len(ids))
            own_stage = traced[0] if traced else stage
            sums, kept = work(key, state, members, ids, counted, at, own_stage)
            flat, as_tree = jax.flatten_util.ravel_pytree(sums)  # One reduction.
            return as_tree(jax.lax.psum(flat, AXIS)), kept

        traced = () if isinstance(stage, int) else (stage,)
        of_members = all_ if placed.copies else own_part
        each = (all_, all_, of_members, own_part, own_part, own_part)
        sums, kept = jax.shard_map(
            part,
            mesh=mesh,
            in_specs=(*each, *(all_,) * len(traced)),
            out_specs=(all_, own_part),
            # Gradients of replicated params must be per client, not device sums.
            check_vma=False,
        )(key, state, members, kept, own_ids, counted, *traced)
        return sums, jax.tree.map(lambda leaf: leaf[:num], kept)

    return of_cohort


def replicate(tree, placed: ShardedClients):
    """Replicates a tree on every device of ``placed``, inside a program."""
    whole = NamedSharding(placed.mesh, PartitionSpec())
    constrain = lambda leaf: jax.lax.with_sharding_constraint(leaf, whole)
    return jax.tree.map(constrain, tree)
