"""FedDL against its loops and by hand; the groups of its layers are nested."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csgraph

from jaxanon import federated
from jaxanon.federated import Layout, Population, Steps
from jaxanon.federated.clustering import grouping
from jaxanon.federated.clustering.reference import feddl as loops

OPTIONS = {"num_steps": 3, "batch_size": 2}
ORDER = ("base", "head")


@pytest.mark.slow
@pytest.mark.parametrize(("similarity", "chunk"), [(0.5, 2), (0.75, 1)])
def test_agrees_with_the_loops_in_float64_however_padded(
    similarity, chunk, network, start, population, grown
):
    with jax.enable_x64(True):
        clients = population((5, 2, 7, 4, 3))
        algorithm = federated.feddl(
            start,
            network,
            steps=Steps(**OPTIONS),
            layers=ORDER,
            num_clients=7,
            layout=Layout(chunk_size=chunk),
        )
        hyper = {"learning_rate": 0.1, "similarity": similarity}
        state = algorithm.init(jax.random.key(0), **hyper)
        state, _ = federated.simulate(
            algorithm, jax.random.key(1), state, grown(clients), 3
        )
        params, models, found = loops(
            *(jax.random.key(1), start(jax.random.key(0)), jax.jit(network), clients),
            *(3, OPTIONS),
            **hyper,
            layers=ORDER,
        )
        close = {"rtol": 1e-9, "atol": 1e-11}
        chex.assert_trees_all_close(state.params, params, **close)
        stacked = jax.tree.map(lambda *x: np.stack(x), *models)
        five = jax.tree.map(lambda leaf: leaf[:5], state.own.model)
        chex.assert_trees_all_close(five, stacked, **close)
        for name in ORDER:
            told = np.asarray(state.server.groups[name])[:5]
            assert state.server.groups[name][5:].tolist() == [5, 6]
            groups = [
                np.flatnonzero(told == first).tolist() for first in np.unique(told)
            ]
            assert sorted(groups) == found[name]
        assert 1 < len(found["head"]) < 5


@functools.cache
def of_two(cohort_size):
    """Returns FedDL that starts at 0 and moves halfway in each step."""
    return federated.feddl(
        lambda key: {"a": jnp.zeros(()), "b": jnp.zeros(())},
        lambda p, x, key: 0.5 * ((p["a"] - x[:, 0]) ** 2 + (p["b"] - x[:, 1]) ** 2),
        steps=Steps(num_steps=1),
        layers=("a", "b"),
        num_clients=2 if cohort_size else 3,
        cohort_size=cohort_size,
    )


def two(num_rounds, similarity=0.4, cohort_size=None):
    """Returns the states and infos of rounds in which all clients take part.

    The clients are at (1, 1) with two rows, at (4, -2), and a third without rows.
    """
    algorithm, told = of_two(cohort_size), []
    state = algorithm.init(jax.random.key(0), learning_rate=0.5, similarity=similarity)
    rows = jnp.array([[[1.0, 1.0]] * 2, [[4.0, -2.0], [9.0, 9.0]], [[9.0, 9.0]] * 2])
    mask = jnp.array([[True] * 2, [True, False], [False] * 2])
    own = slice(2 if cohort_size else 3)
    clients = Population(rows[own], mask[own])
    for _ in range(num_rounds):
        state, info = federated.simulate(
            algorithm, jax.random.key(1), state, clients, 1
        )
        told.append(jax.tree.map(np.asarray, (state, info)))
    return told


def test_two_clients_by_hand():
    """First layer: 0.5 and 2, weighted 2 to 1, give 1.

    The second layer's cosine is -1, so each client keeps its own. From there the first
    layers are 1 and 2.5, whose mean is 1.5.
    """
    (state, info), (after, later) = two(2)
    assert state.own.model["a"].tolist() == [1.0, 1.0, 0.0]
    assert state.own.model["b"].tolist() == [0.5, -1.0, 0.0]
    assert state.server.groups["b"].tolist() == [0, 1, 2]
    assert state.params["b"] == 0.0 and info["layers"][0] == 2.0
    assert info["bytes_up"][0] == info["bytes_down"][0] == 8
    assert after.own.model["a"].tolist() == [1.5, 1.5, 0.0]
    assert after.own.model["b"].tolist() == [0.75, -1.5, 0.0]
    assert later["layers"][0] == 1.0 and later["bytes_down"][0] == 4
    # A threshold below -1 shares all layers, as FedAvg does.
    state, _ = two(2, similarity=-1.0)[-1]
    assert state.own.model["b"].tolist() == [0.0, 0.0, 0.0]
    # A client that was never seen forms a separate group.
    assert state.server.groups["b"].tolist() == [0, 0, 2]


def test_who_is_not_of_the_round_gets_what_its_group_made_of_it():
    """With a cohort of one, the other client is unseen, then has no weight."""
    told = [state for state, _ in two(11, cohort_size=1)]
    state = told[0]
    who = int(jnp.argmax(state.own.last))
    assert state.own.model["a"].tolist() == [0.5 * (1 - who), 2.0 * who]
    number = next(n for n, state in enumerate(told) if (state.own.last >= 0).all())
    state = told[number]
    last, model = state.own.last.tolist(), state.own.model["a"].tolist()
    assert sorted(last)[1] == number and model[0] == model[1]
    # It began at 0 and is merged from the new client alone.
    assert model[0] == (0.5, 2.0)[last.index(number)]


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
def test_linked_clients_are_those_of_one_component(share):
    rng = np.random.default_rng(int(100 * share))
    near = rng.random((30, 30)) < share
    near |= near.T
    found = np.asarray(grouping.link_clients(jnp.asarray(near)))
    _, labels = csgraph.connected_components(near)
    np.testing.assert_array_equal(found, labels[:, None] == labels[None, :])
    # A chain uses all products.
    chain = np.eye(30, k=1, dtype=bool)
    assert grouping.link_clients(jnp.asarray(chain | chain.T)).all()


def test_says_what_was_wrong(network, start):
    make = lambda layers: federated.feddl(
        start, network, steps=Steps(num_steps=1), layers=layers, num_clients=2
    )
    for layers in (("base",), ("base", "head", "head"), ("base", "hand")):
        with pytest.raises(ValueError, match=r"layers must be all layers .*\["):
            make(layers).init(jax.random.key(0))
