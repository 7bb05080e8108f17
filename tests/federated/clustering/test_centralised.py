"""Groups by inner products against scikit-learn and loops, and one model per group."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from jaxanon import federated
from jaxanon.federated import Layout, Steps
from jaxanon.federated.clustering import grouping
from jaxanon.federated.clustering import reference as loops


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [None, 1])
def test_agrees_with_the_loops_in_float64_however_padded(
    chunk, network, start, population, grown
):
    with jax.enable_x64(True):
        sizes = (3, 1, 4, 2)
        clients = population(sizes)
        algorithm = federated.centralized_clustering(
            start,
            network,
            steps=Steps(num_steps=2, batch_size=99),
            num_clients=6,
            num_clusters=2,
            alone=1,
            layout=Layout(chunk_size=chunk),
        )
        state = algorithm.init(jax.random.key(0), learning_rate=0.1)
        state, _ = federated.simulate(
            algorithm, jax.random.key(1), state, grown(clients), 3
        )
        models, groups = loops.centralized_clustering(
            *(jax.random.key(1), start(jax.random.key(0)), jax.jit(network)),
            *(clients, 3),
            learning_rate=0.1,
            num_steps=2,
            k=2,
            alone=1,
        )
        assert state.own[:4].tolist() == groups and len({*groups}) == 2
        stacked = jax.tree.map(lambda *x: np.stack(x), *models)
        chex.assert_trees_all_close(state.params, stacked, rtol=1e-9, atol=1e-11)
        # Clients without rows get the model of the group with most rows.
        most = int(np.bincount(groups, weights=sizes).argmax())
        assert state.own[4:].tolist() == [most] * 2
        told = algorithm.model(None, state, jnp.int32(5), None, None)
        want = jax.tree.map(lambda leaf: leaf[most], state.params)
        chex.assert_trees_all_equal(told, want)


def test_two_clients_by_hand():
    """Round 1: the mean of 4, 4 and -2 is 2, so half a step gives 1.

    Then gradients -3 and 3 separate the models: 1 + 3/2 and 1 - 3/2.
    """
    algorithm = federated.centralized_clustering(
        lambda key: jnp.zeros(()),
        lambda w, x, key: 0.5 * (w - x) ** 2,
        steps=Steps(num_steps=1),
        num_clients=2,
        num_clusters=2,
        alone=1,
    )
    clients = federated.stack([jnp.array([4.0, 4.0]), jnp.array([-2.0])])
    state = algorithm.init(jax.random.key(0), learning_rate=0.5)
    update = jax.jit(algorithm.update)
    state, info = update(jax.random.key(1), state, clients)
    assert state.params.tolist() == [1.0, 0.0] and state.own.tolist() == [0, 0]
    assert float(info["loss"]) == pytest.approx((8 + 8 + 2) / 3)
    state, info = update(jax.random.key(1), state, clients)
    assert state.params.tolist() == [2.5, -0.5] and state.own.tolist() == [0, 1]
    assert info["loss"] == 4.5
    assert algorithm.model(None, state, jnp.int32(1), None, None) == -0.5


def test_clients_are_grouped_by_what_they_are_told_to_be():
    """Rows 9 and 1 share a sign, 5 and 1.5 a magnitude; the given function decides."""
    clients = federated.stack([jnp.array([x]) for x in (9.0, -1.0, 8.0, 1.5)])
    for features, want in (
        (lambda rows, mask: jnp.abs(rows[0]), [0, 1, 0, 1]),
        (None, [0, 1, 0, 0]),
    ):
        algorithm = federated.centralized_clustering(
            lambda key: jnp.zeros(()),
            lambda w, x, key: 0.5 * (w - x) ** 2,
            steps=Steps(num_steps=1),
            num_clients=4,
            num_clusters=2,
            features_fn=features,
        )
        state = algorithm.init(jax.random.key(0))
        state, _ = jax.jit(algorithm.update)(jax.random.key(1), state, clients)
        same = lambda groups: np.equal.outer(groups, groups).tolist()
        assert same(state.own) == same(want)


@pytest.mark.parametrize("num", [1, 3, 5])
def test_k_means_finds_what_scikit_learn_and_loops_do(num):
    rng = np.random.default_rng(num)
    centres = 8 * rng.normal(size=(num, 6))
    points = centres[rng.integers(0, num, 40)] + rng.normal(size=(40, 6))
    products = grouping.inner_products({"x": jnp.asarray(points, jnp.float32)})
    np.testing.assert_allclose(products, points @ points.T, rtol=1e-4, atol=1e-3)
    found = jax.jit(grouping.k_means, static_argnums=2)(
        products, np.ones(40, bool), num
    )
    theirs = KMeans(num, n_init=10, random_state=0).fit_predict(points)
    assert adjusted_rand_score(found, theirs) == 1.0
    assert found.tolist() == loops.k_means(points, num)


def test_who_is_absent_forms_no_group():
    x = jnp.array([[0.0], [1.0], [10.0], [11.0], [99.0]])
    present = jnp.array([True] * 4 + [False])
    k_means = jax.jit(grouping.k_means, static_argnums=2)
    found = k_means(grouping.inner_products(x), present, 2)
    assert found[0] == found[1] != found[2] == found[3] == found[4]
    # Fewer clients than groups: the other groups are empty, and no value is NaN.
    found = k_means(grouping.inner_products(x), jnp.zeros(5, bool), 3)
    assert ((0 <= found) & (found < 3)).all()
    found = k_means(jnp.ones((5, 5)), present, 3)
    assert len({*found[:4].tolist()}) == 1


def test_cosines_are_of_directions():
    x = jnp.array([[2.0, 0.0], [3.0, 3.0], [0.0, -1.0], [0.0, 0.0]])
    found = grouping.cosines(grouping.inner_products(x))
    half = np.sqrt(0.5)
    want = [[1, half, 0, 0], [half, 1, -half, 0], [0, -half, 1, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(found, want, atol=1e-6)


def test_says_what_was_wrong(network, start, population):
    make = lambda num_clients=3, **more: federated.centralized_clustering(
        start, network, steps=Steps(num_steps=1), num_clients=num_clients, **more
    )
    with pytest.raises(ValueError, match="num_clusters must be <= 3"):
        make(num_clusters=4)
    with pytest.raises(ValueError, match="alone must be >= 0, got -1"):
        make(num_clusters=1, alone=-1)
    algorithm = make(4, num_clusters=2)
    state = algorithm.init(jax.random.key(0))
    with pytest.raises(ValueError, match="population must have 4 clients"):
        algorithm.update(jax.random.key(0), state, population())
    with pytest.raises(ValueError, match="num_groups must be <= 3"):
        grouping.k_means(jnp.ones((3, 3)), jnp.ones(3, bool), 4)
