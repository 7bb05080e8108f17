"""Mixing matrices: by hand, doubly stochastic, and their rate of consensus."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import federated
from jaxanon.federated.gossip import graphs

METROPOLIS = jax.jit(federated.metropolis_weights)


def test_of_a_complete_graph_the_weights_are_the_mean():
    mixing = federated.metropolis_weights(federated.complete_graph(5))
    np.testing.assert_allclose(mixing, np.full((5, 5), 0.2), atol=1e-7)


def test_a_ring_weighs_both_neighbours_by_a_third():
    row = federated.metropolis_weights(federated.ring_graph(5))[0]
    np.testing.assert_allclose(row, np.array([1, 1, 0, 0, 1]) / 3, atol=1e-7)


@pytest.mark.parametrize(("agents", "neighbours"), [(1, 0), (2, 1), (3, 2)])
def test_small_rings_have_whoever_there_is(agents, neighbours):
    assert federated.ring_graph(agents).sum(axis=1).tolist() == [neighbours] * agents


@pytest.mark.parametrize(("agents", "degree"), [(7, 0), (7, 4), (8, 3), (8, 7), (7, 6)])
def test_k_regular_graphs_have_that_many_neighbours(agents, degree):
    graph = np.asarray(federated.k_regular_graph(agents, degree))
    assert (graph == graph.T).all() and not graph.diagonal().any()
    assert (graph.sum(axis=1) == degree).all()


def test_random_graphs_have_about_as_many_edges_as_they_should():
    graph = np.asarray(federated.random_graph(jax.random.key(0), 200, 0.3))
    assert (graph == graph.T).all() and not graph.diagonal().any()
    # 19,900 pairs: 5,970 edges, with a standard deviation of 65.
    assert abs(np.triu(graph).sum() - 5970) < 4 * 65


@settings(max_examples=20)
@given(st.integers(0, 2**31 - 1))
def test_metropolis_weights_of_any_graph_are_a_mixing_matrix(seed):
    rng = np.random.default_rng(seed)
    graph = np.triu(rng.random((7, 7)) < rng.random(), 1)
    graph = graph | graph.T
    mixing = np.asarray(METROPOLIS(graph))
    federated.check_mixing(mixing)
    np.testing.assert_array_equal(mixing, mixing.T)
    apart = ~graph & ~np.eye(7, dtype=bool)
    assert not mixing[apart].any() and (mixing[graph] > 0).all()


def test_separate_groups_are_each_their_own_mean():
    kinds = np.array([0, 1, 0, 1, 1])
    mixing = federated.metropolis_weights(kinds[:, None] == kinds[None])
    mixed = federated.mix(mixing, jnp.array([1.0, 10.0, 3.0, 20.0, 30.0]))
    np.testing.assert_allclose(mixed, [2.0, 20.0, 2.0, 20.0, 20.0], rtol=1e-6)


@pytest.mark.parametrize("agents", [3, 6, 11])
def test_a_ring_s_rate_is_that_of_its_circulant_matrix(agents):
    # Eigenvalues are (1 + 2 cos(2 pi k / n)) / 3.
    eigenvalues = (1 + 2 * np.cos(2 * np.pi * np.arange(agents) / agents)) / 3
    expected = np.sort(np.abs(eigenvalues))[-2]
    found = federated.convergence_rate(
        federated.metropolis_weights(federated.ring_graph(agents))
    )
    assert found == pytest.approx(expected, abs=1e-6)


def test_rates_of_the_extremes():
    assert federated.convergence_rate(np.full((4, 4), 0.25)) == pytest.approx(0)
    assert federated.convergence_rate(np.eye(3)) == pytest.approx(1)
    # A single agent always agrees with itself.
    assert (
        federated.convergence_rate(
            federated.metropolis_weights(federated.ring_graph(1))
        )
        == 0
    )


def test_differences_shrink_by_the_rate_and_the_mean_stays():
    mixing = federated.metropolis_weights(federated.k_regular_graph(8, 3))
    rate = federated.convergence_rate(mixing)
    x = jax.random.normal(jax.random.key(0), (8, 5))
    y = federated.mix(mixing, x)
    spread = lambda x: jnp.linalg.norm(x - jnp.mean(x, axis=0, keepdims=True))
    assert spread(y) <= rate * spread(x) * (1 + 1e-5)
    np.testing.assert_allclose(y.mean(axis=0), x.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: federated.complete_graph(0), "num_agents must be >= 1, got 0"),
        (
            lambda: federated.k_regular_graph(5, 3),
            "degree must be below num_agents, 5, and even",
        ),
        (lambda: federated.k_regular_graph(4, 4), "odd, got 4."),
        (
            lambda: federated.metropolis_weights(np.ones((2, 3))),
            "graph must be [agents",
        ),
        (lambda: federated.check_mixing(np.ones(3)), "mixing must be [agents"),
        (
            lambda: federated.check_mixing(np.array([[1.5, -0.5], [-0.5, 1.5]])),
            "mixing must be >= 0, got -0.5",
        ),
        (
            lambda: federated.check_mixing(np.array([[1, 0], [0.5, 0.25]])),
            "every row of mixing must sum to 1, got 0.75 in row 1",
        ),
        (
            lambda: federated.check_mixing(np.array([[1, 0], [0.5, 0.5]])),
            "every column of mixing must sum to 1, got 1.5 in column 0",
        ),
        (
            lambda: federated.convergence_rate(np.roll(np.eye(3), 1, axis=1)),
            "mixing must be symmetric",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError) as raised:
        call()
    assert message in str(raised.value)


def test_a_legacy_key_is_refused():
    with pytest.raises(TypeError, match="key must be a typed PRNG key"):
        graphs.random_graph(jnp.zeros(2, jnp.uint32), 3, 0.5)
