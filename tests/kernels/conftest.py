"""Fixtures shared by the tests of several kernels."""

import chex
import jax
import pytest
from jax.sharding import AxisType, PartitionSpec


@pytest.fixture
def traced_once():
    """Returns ``fn -> fn`` that fails on a second trace, and clears earlier ones."""

    def counted(fn):
        chex.clear_trace_counter()
        return chex.assert_max_traces(lambda *args: fn(*args), n=1)

    return counted


@pytest.fixture
def over_a_mesh():
    """Returns ``fn -> fn``, compiled over a one-device mesh with an axis of clients.

    Every argument is sharded along its first axis, or by ``in_specs``.
    """
    mesh = jax.make_mesh((1,), ("clients",), axis_types=(AxisType.Auto,))
    clients = PartitionSpec("clients")

    def sharded(fn, in_specs=clients):
        return jax.jit(
            jax.shard_map(fn, mesh=mesh, in_specs=in_specs, out_specs=clients)
        )

    return sharded
