"""Observed messages of clients are those that the server averages."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import PoissonSampling, Population, Steps

STEPS = Steps(num_steps=2, batch_size=2)
COHORT = {"cohort_size": 3, "num_clients": 4}
ALIKE = COHORT | {"weighting": "clients"}
LOTS = PoissonSampling(
    sampling_probability=0.5, expected_batch_size=2.0, max_examples=5
)
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def loss_fn(params, batch, key):
    return (batch["x"] @ params["w"] + params["b"] - batch["y"]) ** 2


def init_fn(key):
    return {"w": jnp.array([0.5, -1.0]), "b": jnp.zeros(())}


def trained(before, message):
    return message


def moved(before, message):
    return jax.tree.map(jnp.subtract, before, message)


def layers(before, message):
    """Returns Atlas's mean over the senders of each layer."""
    total, senders = message
    new = lambda old, x, n: np.where(n > 0, x / np.where(n > 0, n, 1), old)
    return {name: new(before[name], total[name], senders[name]) for name in before}


# Each entry: builder, layers sent by each client, and the server's use of the mean.
CASES = {
    "fedavg": (
        lambda: federated.fedavg(
            init_fn, loss_fn, steps=federated.Steps(num_steps=2), cohort_size=3
        ),
        moved,
    ),
    "fedsgd": (
        lambda: federated.fedsgd(init_fn, loss_fn, weighting="clients"),
        lambda before, mean: jax.tree.map(lambda p, g: p - 0.1 * g, before, mean),
    ),
    "fedprox": (
        lambda: federated.fedprox(init_fn, loss_fn, steps=STEPS, **COHORT),
        trained,
    ),
    "atlas": (
        lambda: federated.atlas(init_fn, loss_fn, steps=STEPS, lots=LOTS, **ALIKE),
        layers,
    ),
}


def population():
    """Four clients with 5, 2, 0 and 3 rows."""
    rng = np.random.default_rng(0)
    sizes = (5, 2, 0, 3)
    mask = np.arange(5) < np.array(sizes)[:, None]
    x = rng.normal(size=(4, 5, 2)).astype(np.float32) * mask[..., None]
    rows = {"x": jnp.asarray(x), "y": jnp.asarray(x[..., 0] * 2)}
    return Population(rows, jnp.asarray(mask))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_server_took_the_mean_of_what_was_sent(name):
    make, server = CASES[name]
    algorithm, clients, key = make(), population(), jax.random.key(1)
    program = jax.jit(federated.simulate_observed, static_argnums=(0, 4))
    own = lambda client: program(
        algorithm, key, algorithm.init(jax.random.key(0)), clients, 3, client
    )
    each = [own(jnp.int32(client)) for client in range(4)]
    state, seen = own(None)
    weights = np.stack([of.weight for _, of in each])
    assert not weights[2].any()  # The client has no row.
    if name != "fedsgd":  # Otherwise all clients are in the cohort.
        assert (weights[[0, 1, 3]] == 0).any() and (weights > 0).sum(0).max() <= 3
    rows = np.array([[5], [2], [1], [3]])
    want = {"fedavg": rows, "fedprox": rows}.get(name, 1.0)
    np.testing.assert_array_equal(weights, np.where(weights > 0, want, 0))
    np.testing.assert_allclose(seen.weight, weights.sum(0))
    messages = jax.tree.map(lambda *x: np.stack(x), *[of.message for _, of in each])
    for leaf in jax.tree.leaves(messages):
        assert not leaf[weights == 0].any()
    share = weights / weights.sum(0)
    mean = jax.tree.map(lambda x: np.einsum("cr...,cr->r...", x, share), messages)
    chex.assert_trees_all_close(seen.message, mean, **CLOSE)
    # Observation changes no round, neither one at a time nor all together. Every
    # algorithm reports a round by the same few lines.
    for number in range(2):
        at = lambda tree, number=number: jax.tree.map(lambda x: x[number], tree)
        after = server(at(seen.before), at(mean))
        chex.assert_trees_all_close(after, at(_later(seen.before)), **CLOSE)
    if name == "fedavg":
        start = algorithm.init(jax.random.key(0))
        plain, _ = federated.simulate(algorithm, key, start, clients, 3)
        chex.assert_trees_all_close(state, plain, **CLOSE)


def _later(tree):
    return jax.tree.map(lambda x: x[1:], tree)


@pytest.mark.slow
def test_two_clients_by_hand():
    """Gradient steps of 0.5 from 0 to 4 and to 0, clipped to 2 by DP-SGD: 1 and 0."""
    algorithm = federated.fedsgd_ldp(
        lambda key: jnp.zeros(()),
        lambda w, x, key: 0.5 * (w - x) ** 2,
        lots=PoissonSampling(
            sampling_probability=1.0, expected_batch_size=1.0, max_examples=1
        ),
        steps=federated.Steps(num_steps=1),
        num_clients=2,
    )
    hyper = {"learning_rate": 0.5, "clip_norm": 2.0, "noise_multiplier": 0.0}
    clients = federated.stack([jnp.array([4.0]), jnp.array([0.0])])
    program = jax.jit(federated.simulate_observed, static_argnums=(0, 4))
    state = algorithm.init(jax.random.key(0), **hyper)
    see = lambda client: program(
        algorithm, jax.random.key(1), state, clients, 2, client
    )[1]
    # Then from 0.5: 1.5 and, with gradient 0.5, 0.25.
    for client, told in ((0, [1.0, 1.5]), (1, [0.0, 0.25]), (None, [0.5, 0.875])):
        seen = see(client)
        np.testing.assert_allclose(seen.before, [0.0, 0.5])
        np.testing.assert_allclose(seen.message, told)


def test_says_what_was_wrong():
    central = federated.dp_fedavg(
        init_fn, loss_fn, steps=STEPS, cohorts=LOTS, count_stddev=1.0
    )
    see = lambda algorithm, rounds: federated.simulate_observed(
        algorithm, jax.random.key(0), None, population(), rounds
    )
    with pytest.raises(ValueError, match="algorithm must have message to observe"):
        see(central, 1)
    with pytest.raises(ValueError, match="num_rounds must be >= 1, got 0"):
        see(federated.fedsgd(init_fn, loss_fn), 0)
