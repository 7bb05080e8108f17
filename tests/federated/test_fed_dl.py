"""FedDL against its loops and by hand; its groups lie within one another."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csgraph

from jaxanon import federated
from jaxanon.federated import Layout, Rounds, Steps, grouping
from jaxanon.federated.reference_layers import fed_dl as loops

pytestmark = pytest.mark.long

OPTIONS = {"num_steps": 3, "batch_size": 2}
ORDER = ("base", "head")


@pytest.mark.parametrize(("similarity", "chunk"), [(0.5, 2), (0.75, 1)])
def test_agrees_with_the_loops_in_float64(
    similarity, chunk, network, start, population
):
    with jax.enable_x64(True):
        clients = population((5, 2, 7, 4, 3))
        algorithm = federated.fed_dl(
            start,
            network,
            Steps(**OPTIONS),
            layers=ORDER,
            num_clients=5,
            rounds=Rounds(layout=Layout(chunk=chunk)),
        )
        hyper = {"step_size": 0.1, "similarity": similarity}
        state = algorithm.init(jax.random.key(0), **hyper)
        state, _ = federated.simulate(algorithm, jax.random.key(1), state, clients, 3)
        params, models, found = loops(
            *(jax.random.key(1), start(jax.random.key(0)), network, clients, 3),
            OPTIONS,
            **hyper,
            layers=ORDER,
        )
        close = {"rtol": 1e-9, "atol": 1e-11}
        chex.assert_trees_all_close(state.params, params, **close)
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *models)
        chex.assert_trees_all_close(state.own.model, stacked, **close)
        for name in ORDER:
            told = np.asarray(state.server.groups[name])
            groups = [
                np.flatnonzero(told == first).tolist() for first in np.unique(told)
            ]
            assert sorted(groups) == found[name]
        assert 1 < len(found["head"]) < 5


def two(num_rounds, similarity=0.4, cohort_size=None):
    """Clients at (1, 1), of two rows, and (4, -2), from 0, half of the way a step."""
    algorithm = federated.fed_dl(
        lambda key: {"a": jnp.zeros(()), "b": jnp.zeros(())},
        lambda p, x, key: 0.5 * ((p["a"] - x[:, 0]) ** 2 + (p["b"] - x[:, 1]) ** 2),
        Steps(num_steps=1),
        layers=("a", "b"),
        num_clients=2,
        rounds=Rounds(cohort_size=cohort_size),
    )
    state = algorithm.init(jax.random.key(0), step_size=0.5, similarity=similarity)
    clients = federated.stack([jnp.array([[1.0, 1.0]] * 2), jnp.array([[4.0, -2.0]])])
    return federated.simulate(algorithm, jax.random.key(1), state, clients, num_rounds)


def test_two_clients_by_hand():
    """Of the first layer 0.5 and 2, with two rows to one: 1. Of the second, whose
    cosine is -1, each its own. From there 1 and 2.5, whose mean is 1.5."""
    state, info = two(1)
    assert state.own.model["a"].tolist() == [1.0, 1.0]
    assert state.own.model["b"].tolist() == [0.5, -1.0]
    assert state.server.groups["b"].tolist() == [0, 1]
    assert state.params["b"] == 0.0 and info["layers"][0] == 2.0
    assert info["bytes_up"][0] == info["bytes_down"][0] == 8
    state, info = two(2)
    assert state.own.model["a"].tolist() == [1.5, 1.5]
    assert state.own.model["b"].tolist() == [0.75, -1.5]
    assert info["layers"][1] == 1.0 and info["bytes_down"][1] == 4
    # Beyond -1 all is shared, as FedAvg does.
    assert two(2, similarity=-1.0)[0].own.model["b"].tolist() == [0.0, 0.0]


def test_who_is_not_of_the_round_gets_what_its_group_made_of_it():
    """With a cohort of one, the other has not been seen, then counts for nothing."""
    state, _ = two(1, cohort_size=1)
    who = int(jnp.argmax(state.own.last))
    assert state.own.model["a"].tolist() == [0.5 * (1 - who), 2.0 * who]
    for rounds in range(2, 12):
        state, _ = two(rounds, cohort_size=1)
        if (state.own.last >= 0).all():
            break
    last, model = state.own.last.tolist(), state.own.model["a"].tolist()
    assert sorted(last)[1] == rounds - 1 and model[0] == model[1]
    # It began at 0 and is merged from the newcomer alone.
    assert model[0] == (0.5, 2.0)[last.index(rounds - 1)]


def test_padded_rows_and_clients_change_nothing(network, start, population, grown):
    def ran(clients):
        algorithm = federated.fed_dl(
            start,
            network,
            Steps(**OPTIONS),
            layers=ORDER,
            num_clients=len(clients.mask),
        )
        state = algorithm.init(jax.random.key(0))
        return federated.simulate(algorithm, jax.random.key(1), state, clients, 2)

    plain, plain_info = ran(population())
    padded, padded_info = ran(grown(population()))
    close = {"rtol": 1e-5, "atol": 1e-6}
    chex.assert_trees_all_close(plain.params, padded.params, **close)
    chex.assert_trees_all_close(plain_info, padded_info, **close)
    three = jax.tree.map(lambda leaf: leaf[:3], padded.own)
    chex.assert_trees_all_close(plain.own, three, **close)
    for name in ORDER:
        assert padded.server.groups[name][3:].tolist() == [3, 4]


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
def test_linked_clients_are_those_of_one_component(share):
    rng = np.random.default_rng(int(100 * share))
    near = rng.random((30, 30)) < share
    near |= near.T
    found = np.asarray(grouping.linked(jnp.asarray(near)))
    _, labels = csgraph.connected_components(near)
    np.testing.assert_array_equal(found, labels[:, None] == labels[None, :])
    # A chain takes all of the products.
    chain = np.eye(30, k=1, dtype=bool)
    assert grouping.linked(jnp.asarray(chain | chain.T)).all()


def test_says_what_was_wrong(network, start):
    make = lambda layers: federated.fed_dl(
        *(start, network, Steps(num_steps=1)), layers=layers, num_clients=2
    )
    for layers in (("base",), ("base", "head", "head"), ("base", "hand")):
        with pytest.raises(ValueError, match=r"layers must be all of the model's, \["):
            make(layers).init(jax.random.key(0))
