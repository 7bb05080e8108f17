"""Rounds in one call equal rounds one by one; shards run in one program."""

import os
import pathlib
import subprocess
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shared_out

from jaxanon import federated


def _algorithm(**settings):
    square = lambda w, x, key: 0.5 * (w - x) ** 2
    init_fn = lambda key: jax.random.normal(key, ())
    return federated.fedavg(
        init_fn,
        square,
        steps=federated.Steps(num_steps=2, batch_size=1),
        cohort_size=2,
        **settings,
    )


def _clients():
    return federated.stack([np.array([1.0, 3.0]), np.array([5.0]), np.array([2.0] * 3)])


def test_stopped_and_resumed_equals_uninterrupted_bit_for_bit():
    algorithm, clients = _algorithm(rounds_per_cohort=2), _clients()
    start = lambda: algorithm.init(jax.random.key(0))
    key = jax.random.key(1)
    whole, info = federated.simulate(algorithm, key, start(), clients, 6)
    half, first = federated.simulate(algorithm, key, start(), clients, 3)
    saved = jax.tree.map(np.asarray, half)
    resumed, second = federated.simulate(
        algorithm, key, jax.tree.map(jnp.asarray, saved), clients, 3
    )
    chex.assert_trees_all_equal(whole, resumed)
    np.testing.assert_array_equal(
        info["loss"], np.concatenate([first["loss"], second["loss"]])
    )
    assert whole.round == 6


def test_the_state_is_donated():
    algorithm = _algorithm()
    state = algorithm.init(jax.random.key(0))
    federated.simulate(algorithm, jax.random.key(1), state, _clients(), 1)
    assert state.params.is_deleted()


@pytest.mark.parametrize(
    "make", [federated.fedavg, federated.fedmask, federated.dp_fedavg]
)
def test_what_is_from_elsewhere_stays_whose_it_was(make):
    """The state is donated, but the arguments of ``init`` and ``init_fn`` are not."""
    trained, learning_rate = {"w": jnp.ones(2)}, jnp.array(0.25, jnp.float32)
    loss = lambda p, x, key: (p["w"].sum() - x) ** 2
    steps = federated.Steps(num_steps=1)
    more = {"steps": steps}
    if make is federated.fedmask:
        more = {"steps": steps, "masked_layers": ("w",), "num_clients": 7}
    if make is federated.dp_fedavg:
        every = federated.PoissonSampling(
            sampling_probability=1.0, expected_batch_size=7.0, max_examples=7
        )
        more = {"steps": steps, "cohorts": every, "count_stddev": 1.0}
    algorithm = make(lambda key: trained, loss, **more)
    clients = federated.stack([np.arange(n + 1.0) for n in range(7)])
    for _ in range(2):
        state = algorithm.init(jax.random.key(0), learning_rate=learning_rate)
        federated.simulate(algorithm, jax.random.key(1), state, clients, 1)
    assert trained["w"].tolist() == [1.0, 1.0] and learning_rate == 0.25


def check_shards(make, size, devices=None):
    """Compares three sharded rounds with three rounds of one program."""
    algorithm = make(size)
    sharded = federated.shard(algorithm, devices)
    placed = sharded.shard_clients(shared_out.seven())
    state, infos = algorithm.init(jax.random.key(0)), []
    for _ in range(3):
        state, info = sharded.update(jax.random.key(1), state, placed)
        infos.append(info)
    wanted, told = shared_out.in_memory(make, size)
    chex.assert_trees_all_close(state, wanted, rtol=1e-5)
    chex.assert_trees_all_close(
        jax.tree.map(lambda *a: np.stack(a), *infos), told, rtol=1e-5
    )
    assert state.round == 3 and all(x.any() for x in jax.tree.leaves(state.params))
    return placed


# Cohorts of 7 and 1 in threes: a ragged last shard, and shards without a client.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "size"),
    [
        (shared_out.averaging, None),
        (shared_out.keeping, None),
        (shared_out.keeping, 1),
        (shared_out.meta, 1),
    ],
)
def test_shards_of_one_device_are_the_same_algorithm(make, size):
    check_shards(make, size, jax.devices()[:1] * 3)


@pytest.mark.slow
def test_a_cpu_that_is_one_device_has_a_shard_for_each_core():
    placed = check_shards(shared_out.averaging, 5)
    assert len(placed) == os.cpu_count()


SHARDS = """
import jax
import test_simulate
from test_simulate import shared_out

assert len(jax.devices()) == 2
for make in (shared_out.keeping, shared_out.meta):
    placed = test_simulate.check_shards(make, 5)
    assert [clients.mask.device for clients in placed] == jax.devices()
"""


@pytest.mark.slow
def test_one_shard_per_device_is_the_same_algorithm(tmp_path):
    # JAX counts devices when it starts, so this needs a separate process.
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    env = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    here = pathlib.Path(__file__).parent
    paths = [str(here), str(here.parents[1] / "support")]
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path += {paths!r}{SHARDS}"],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("make", "size", "copies"),
    [
        (shared_out.averaging, 5, True),
        (shared_out.keeping, 5, False),
        (shared_out.keeping, None, True),
        (shared_out.meta, None, False),
    ],
)
def test_clients_in_their_places_are_the_same_algorithm(make, size, copies):
    """Runs the many-device program on one; training/test_processes.py uses many."""
    algorithm, clients = make(size), shared_out.seven()
    placed = federated.shard_clients(clients, jax.devices()[:1], copies=copies)
    state = algorithm.init(jax.random.key(0))
    found = federated.simulate(algorithm, jax.random.key(1), state, placed, 3)
    wanted = shared_out.in_memory(make, size)
    chex.assert_trees_all_close(found, wanted, rtol=1e-5)
    assert all(x.any() for x in jax.tree.leaves(wanted[0].params))


def test_what_cannot_be_placed():
    with pytest.raises(
        ValueError, match=r"the same number of clients >= 1, got \[2, 3\]"
    ):
        federated.shard_clients({"x": np.ones(3), "y": np.ones((2, 3))})
    with pytest.raises(ValueError, match=r"clients >= 1, got \[0\]"):
        federated.shard_clients(np.ones(()))


def test_an_algorithm_without_acts_cannot_be_sharded():
    algorithm = federated.FederatedAlgorithm(lambda key: 0, lambda k, s, c: (s, {}))
    with pytest.raises(ValueError, match="must have stages to be sharded"):
        federated.shard(algorithm)


def test_an_equal_algorithm_built_again_is_not_compiled_again():
    traces = []

    def loss_fn(w, x, key):
        traces.append(1)  # Runs while the loss is traced, not in compiled rounds.
        return 0.5 * (w - x) ** 2

    start, key = lambda key: jnp.zeros(()), jax.random.key(1)

    def run(**settings):
        steps = federated.Steps(num_steps=1)
        algorithm = federated.fedavg(start, loss_fn, steps=steps, **settings)
        state = algorithm.init(jax.random.key(0))
        federated.simulate(algorithm, key, state, _clients(), 2)
        return len(traces)

    first = run(cohort_size=2)
    assert run(cohort_size=2) == first > 0
    assert run(cohort_size=1) > first
