"""Fixtures shared by the tests of several kernels."""

import chex
import jax
import pytest
from jax.sharding import AxisType, PartitionSpec


@pytest.fixture
def traced_once():
    """``fn -> fn`` that fails when it is traced again, and forgets earlier tests."""

    def counted(fn):
        chex.clear_trace_counter()
        return chex.assert_max_traces(lambda *args: fn(*args), n=1)

    return counted


@pytest.fixture
def over_a_mesh():
    """``fn -> fn``, compiled, over a mesh with an axis of clients and one device.

    Every argument is cut along its first axis, or as ``in_specs`` says.
    """
    mesh = jax.make_mesh((1,), ("clients",), axis_types=(AxisType.Auto,))
    clients = PartitionSpec("clients")

    def sharded(fn, in_specs=clients):
        return jax.jit(
            jax.shard_map(fn, mesh=mesh, in_specs=in_specs, out_specs=clients)
        )

    return sharded
