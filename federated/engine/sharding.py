"""Clients that lie on several devices: each device works on its part of a cohort."""

import dataclasses
from typing import Any

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding, PartitionSpec

from jaxanon.federated.engine.layout import num_bytes

AXIS = "clients"  # Of the mesh.


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ShardedClients:
    """Clients, spread over devices; ``update`` takes it in place of them.

    Attributes:
      data: tree of arrays ``[clients, ...]``. Where devices have their own, filled up
        with zeros to a multiple of the devices: each has as many as the next, in order.
      num_clients: real ones.
      mesh: of one axis, ``"clients"``.
      copies: whether every device has all clients.
    """

    data: Any
    num_clients: int = dataclasses.field(metadata={"static": True})
    mesh: jax.sharding.Mesh = dataclasses.field(metadata={"static": True})
    copies: bool = dataclasses.field(metadata={"static": True})

    def replicated(self, tree):
        """The tree with all of it on every device; the same in all processes."""
        return _put(tree, NamedSharding(self.mesh, PartitionSpec()))


def shard_clients(
    clients, devices=None, *, copies: bool | None = None
) -> ShardedClients:
    """Brings clients to several devices, any number of clients to any number of them.

    Rounds are then one program on all devices (``simulate``, or ``jax.jit`` of
    ``algorithm.update``): each works on an equal part of the cohort, parameters are on
    all, and what devices found is added up by one reduction. Results are those of one
    device, up to the rounding of sums. With ``jax.distributed`` the devices may be many
    processes'; each has to call this with the same clients, of which it brings to its
    devices what they need. What clients keep of their own is a part of the state, and
    whole on every device.

    Devices have all clients, and work on any of them, or each has its own: then members
    of a cohort travel to the device whose part they are in, unless all take part.

    Programs wait for each other's sums, which devices that a CPU simulates may do for
    ever; for those there is ``shard``.

    Args:
      clients: tree of arrays ``[clients, ...]``, such as a ``Population``.
      devices: a sequence of devices; ``None`` is all, of all processes.
      copies: whether every device gets all clients; ``None`` is where they take a
        quarter of its memory at most, or 1 GiB where it does not tell.

    Raises:
      ValueError: if arrays differ in their number of clients, or there are none.

    Example:
      >>> import jaxanon.federated as fed
      >>> square = lambda w, x, key: 0.5 * (w - x) ** 2
      >>> algorithm = fed.fedavg(lambda key: jnp.zeros(()), square, num_steps=1)
      >>> clients = fed.stack([jnp.array([4.0]), jnp.array([0.0])])
      >>> placed = fed.shard_clients(clients, jax.devices()[:1])
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
      >>> state, info = algorithm.update(jax.random.key(1), state, placed)
      >>> state.params
      Array(1., dtype=float32)
    """
    leaves = jax.tree.leaves(clients)
    sizes = sorted({leaf.shape[0] if np.ndim(leaf) else 0 for leaf in leaves})
    if len(sizes) != 1 or not sizes[0]:
        raise ValueError(
            "clients must be arrays [clients, ...] that agree about how many clients "
            f"there are, 1 at least; got {sizes}."
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
    """Bytes of a device that copies of all clients may take."""
    told = device.memory_stats() or {}
    room = np.float32(told.get("bytes_limit", 4 << 30) // 4)
    if jax.process_count() == 1:
        return room
    return multihost_utils.process_allgather(room).min()  # All must do the same.


def _put(tree, sharding):
    """Each device gets its part; of a process' arrays no more than its devices need."""
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
    """``work`` of ``Acts``, by all devices of ``placed``, each on its part of ``ids``.

    Args:
      work: of ``Acts``.
      placed: clients.

    Returns:
      ``(key, state, ids, stage) -> (sums, kept)``, with the sums of all devices added
      up, and what each of ``ids`` keeps.
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
            if num < placed.num_clients:  # Else all take part, where they are.
                members = jax.tree.map(take, members)
            kept = jax.tree.map(take, getattr(state, "own", None))
            if kept is not None:
                state = state._replace(own=None)  # Others' stays where it is.

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
            # Gradients of what all devices have are each client's own, not their sums.
            check_vma=False,
        )(key, state, members, kept, own_ids, counted, *traced)
        return sums, jax.tree.map(lambda leaf: leaf[:num], kept)

    return of_cohort


def replicate(tree, placed: ShardedClients):
    """The tree, of which every device of ``placed`` has all, inside a program."""
    whole = NamedSharding(placed.mesh, PartitionSpec())
    constrain = lambda leaf: jax.lax.with_sharding_constraint(leaf, whole)
    return jax.tree.map(constrain, tree)
