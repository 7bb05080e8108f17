"""Layouts change only speed and memory."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import Layout
from jaxanon.federated.engine import layout

# All five clients, fewer than fit, one by one, and in two and a half parts.
ALL = pytest.mark.parametrize("chunk", [None, 1, 2, 9])


def _mean(fn, clients, weights, chunk):
    return federated.mean_over_clients(fn, clients, weights, Layout(chunk_size=chunk))


@ALL
def test_weighted_mean_by_hand(chunk):
    # (1*1 + 2*4 + 0*9 + 1*16 + 4*25) / 8 = 125 / 8, exact in binary.
    x, weights = jnp.arange(1.0, 6.0), jnp.array([1.0, 2.0, 0.0, 1.0, 4.0])
    fn = lambda x: {"square": x * x, "flag": x > 3}
    mean = jax.jit(lambda x, w: _mean(fn, x, w, chunk))(x, weights)
    assert mean["square"] == 125 / 8
    assert mean["flag"] == 5 / 8


@pytest.mark.parametrize(
    ("num", "chunk"), [(5, None), (5, 1), (5, 2), (5, 9), (1, 1), (1, 2)]
)
def test_what_clients_keep_is_changed_in_its_place(num, chunk):
    """Against a loop; a client with weight 0 still updates its client state."""
    x, weights = np.arange(5.0) + 2, np.array([1.0, 0.0, 2.0, 1.0, 3.0])
    own = {"sum": np.arange(5.0), "seen": np.zeros((5, 2), bool)}
    fn = lambda x, own: (x * own["sum"], {"sum": own["sum"] + x, "seen": ~own["seen"]})
    x, weights = x[:num], weights[:num]
    own = {name: leaf[:num] for name, leaf in own.items()}
    given = jax.tree.map(jnp.asarray, (x, own, weights))
    change = functools.partial(
        layout.sum_and_change, fn, layout=Layout(chunk_size=chunk)
    )
    total, after = jax.jit(change)(*given)
    assert total == sum(weights[i] * x[i] * own["sum"][i] for i in range(num))
    np.testing.assert_array_equal(after["sum"], own["sum"] + x)
    assert after["seen"].all() and after["seen"].shape == (num, 2)


@ALL
def test_a_client_of_weight_zero_changes_nothing_not_even_by_nan(chunk):
    x = jnp.array([[1.0, 2.0], [jnp.nan, jnp.inf], [3.0, 6.0]])
    mean = _mean(lambda x: x, x, jnp.array([1.0, 0.0, 1.0]), chunk)
    np.testing.assert_array_equal(mean, [2.0, 4.0])


@ALL
def test_all_weights_zero_is_zero(chunk):
    mean = _mean(lambda x: x, jnp.full((4, 2), 7.0), jnp.zeros(4), chunk)
    np.testing.assert_array_equal(mean, [0.0, 0.0])


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_typed_keys_travel_with_their_clients(chunk):
    fn = lambda c: jax.random.normal(c["key"], (3,)) * c["scale"]
    clients = lambda: {
        "key": jax.random.split(jax.random.key(0), 5),
        "scale": jnp.arange(5.0),
    }
    apart = jax.jit(jax.vmap(fn))(clients())
    mean = jax.jit(lambda clients: _mean(fn, clients, jnp.ones(5), chunk))(clients())
    np.testing.assert_allclose(mean, np.mean(apart, axis=0), rtol=1e-5)


def test_sums_are_wide():
    # 4,096 + 1 rounds to 4,096 in bfloat16.
    x = jnp.ones(4097, jnp.bfloat16)
    mean = _mean(lambda x: x, x, jnp.ones(4097), 1)
    assert mean.dtype == jnp.float32 and mean == 1


def test_one_after_another_keeps_no_result_per_client():
    # 64 clients with a result of 4 MB each would need 256 MB if all were stored.
    fn = lambda x: x[0] + jnp.arange(1_000_000, dtype=jnp.float32)
    x = jnp.ones((64, 1))

    def peak(chunk):
        run = jax.jit(lambda x: _mean(fn, x, jnp.ones(64), chunk))
        return run.lower(x).compile().memory_analysis().temp_size_in_bytes

    assert peak(1) < 20_000_000
    assert peak(4) < 40_000_000


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_under_an_outer_vmap(chunk):
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    given = jnp.asarray(x)
    fn = lambda scale: _mean(lambda x: scale * jnp.tanh(x), given, jnp.ones(5), chunk)
    scales = np.float32([1.0, -2.0])
    expected = scales[:, None] * np.tanh(x).mean(axis=0)[None]
    chex.assert_trees_all_close(jax.jit(jax.vmap(fn))(scales), expected, rtol=1e-5)


def test_default_follows_backend_and_memory():
    params = {"w": jax.ShapeDtypeStruct((1 << 28,), jnp.float32)}  # 1 GiB.
    default = federated.default_layout
    assert default(params, 8, num_steps=20, backend="cpu") == Layout(
        chunk_size=1, unroll=8
    )
    deep = {str(number): jnp.zeros(1) for number in range(41)}
    assert default(deep, 8, num_steps=20, backend="cpu") == Layout(
        chunk_size=1, unroll=1
    )
    assert default(params, 8, backend="gpu").chunk_size == 1  # 3 GiB of 4 per client.
    small = {"w": jax.ShapeDtypeStruct((1 << 20,), jnp.float32)}
    assert default(small, 300, backend="gpu").chunk_size is None
    assert (
        default(small, 400, backend="gpu").chunk_size == 341
    )  # 4096 / 12, rounded down.


def test_gradients_of_single_examples_take_room_too():
    small = {"w": jax.ShapeDtypeStruct((1 << 20,), jnp.float32)}
    default = federated.default_layout
    held = 116 << 20  # In addition to 12 MiB: 128 of them are 16 GiB.
    assert default(small, 40, example_bytes=held, backend="gpu").chunk_size == 32


@pytest.mark.parametrize("name", ["atlas", "fedsgd_ldp"])
def test_learners_on_lots_say_what_their_examples_take(name, monkeypatch):
    """A matrix stays factored for one row per window; for 50 it is multiplied out."""
    loss = lambda p, x, key: jnp.sum((x @ p["a"]["w"]) ** 2, axis=(1, 2))
    lots = federated.PoissonSampling(
        sampling_probability=0.5, expected_batch_size=2.0, max_examples=4
    )
    seen = []
    found = layout.default_layout
    monkeypatch.setattr(
        layout,
        "default_layout",
        lambda *args, **more: seen.append(more) or found(*args, **more),
    )
    shared = {"num_clients": 2, "lots": lots}
    start = lambda key: {"a": {"w": jnp.zeros((6, 7))}}
    for time, floats in ((1, 6 + 7), (50, 6 * 7)):
        if name == "atlas":
            steps = federated.Steps(num_steps=1)
            algorithm = federated.atlas(start, loss, steps=steps, **shared)
        else:
            algorithm = federated.fedsgd_ldp(
                start, loss, steps=federated.Steps(num_steps=1), **shared
            )
        state = algorithm.init(jax.random.key(0))
        clients = federated.stack([np.ones((4, time, 6), np.float32)] * 2)
        jax.eval_shape(algorithm.update, jax.random.key(1), state, clients)
        assert seen.pop() == {"example_bytes": 4 * 4 * floats}
