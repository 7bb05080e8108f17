"""ClusterFL against its loops, by hand, and at its fixed point."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import Layout, Steps
from jaxanon.federated.clustering import clusterfl
from jaxanon.federated.clustering.reference import clusterfl as loops

OPTIONS = {"num_steps": 2, "batch_size": 2}
HYPER = {"learning_rate": 0.1, "alpha": 0.1, "beta": 0.05, "rho": 0.3}
SQUARE = lambda w, x, key: 0.5 * (w - x) ** 2


def logits(params, batch):
    hidden = jnp.tanh(batch["x"] @ params["base"]["w"] + params["base"]["b"][None])
    return jnp.stack([hidden @ params["head"]["v"], jnp.sum(hidden, axis=1)], axis=1)


def probe(key):
    return {"x": jax.random.normal(key, (6, 3), jnp.result_type(float))}


@pytest.fixture
def found(network, start):
    """Returns ``(**settings) -> FederatedAlgorithm`` with two clusters."""
    return lambda num_clients=4, **settings: federated.clusterfl(
        start,
        network,
        steps=Steps(**OPTIONS),
        num_clients=num_clients,
        num_clusters=2,
        outputs_fn=logits,
        probe_fn=probe,
        **settings,
    )


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["corrected", "official"])
def test_agrees_with_the_loops_in_float64_however_padded(
    variant, found, network, start, population, grown
):
    with jax.enable_x64(True):
        clients = population((3, 1, 4, 2))
        chunk = None if variant == "corrected" else 3
        layout = Layout(chunk_size=chunk)
        algorithm = found(6, variant=variant, every=2, layout=layout)
        state = algorithm.init(jax.random.key(0), **HYPER, temperature=2.0)
        state, _ = federated.simulate(
            algorithm, jax.random.key(1), state, grown(clients), 4
        )
        params_key, probe_key = jax.random.split(jax.random.key(0))
        loss_fn = jax.jit(network)
        params, models, members, duals = loops(
            *(jax.random.key(1), start(params_key), loss_fn, clients, 4, OPTIONS),
            **HYPER,
            temperature=2.0,
            outputs_fn=logits,
            probe=probe(probe_key),
            num_clusters=2,
            every=2,
            variant=variant,
        )
        close = {"rtol": 1e-8, "atol": 1e-10}
        stacked = lambda trees: jax.tree.map(lambda *x: np.stack(x), *trees)
        four = jax.tree.map(lambda leaf: leaf[:4], state.own)
        chex.assert_trees_all_close(state.params, params, **close)
        chex.assert_trees_all_close(four.model, stacked(models), **close)
        np.testing.assert_allclose(state.server.members[:4], members, **close)
        chex.assert_trees_all_close(state.server.duals, stacked(duals), **close)
        assert (members > 0).any(axis=0).all()
        assert not state.own.seen[4:].any() and not state.server.members[4:].any()


@functools.cache
def of_two(variant):
    """Returns ClusterFL of two clients in one cluster, one step per round from 0."""
    return federated.clusterfl(
        lambda key: jnp.zeros(()),
        SQUARE,
        steps=Steps(num_steps=1),
        num_clients=2,
        num_clusters=1,
        members=np.ones((2, 1)),
        variant=variant,
    )


def quadratic(hyper, num_rounds, learning_rate=0.5, variant="corrected"):
    """Returns the states and infos of such rounds for clients at 4 and 0."""
    algorithm, told = of_two(variant), []
    state = algorithm.init(jax.random.key(0), learning_rate=learning_rate, **hyper)
    clients = federated.stack([jnp.array([4.0]), jnp.array([0.0])])
    for _ in range(num_rounds):
        # One compiled round serves any number of rounds.
        state, info = federated.simulate(
            algorithm, jax.random.key(1), state, clients, 1
        )
        told.append(jax.tree.map(np.asarray, (state, info)))
    return told


def test_two_clients_by_hand():
    """Models 2 and 0, FᵀW = √2, Ω = √2 / (1 - 1/4), U = Ω - √2 = √2 / 3.

    Both are pulled by (1/3 + 1/3). Round 2: gradients -2 and 0, so 2 + 4/3 and 1/3. The
    official variant pushes them by (1/3 + 4/3), and the first by 1/2 · 2 towards 0.
    """
    hyper = {"alpha": 0.0, "beta": 0.125, "rho": 1.0}
    (_, first), (state, second) = quadratic(hyper, 2)
    np.testing.assert_allclose(state.own.model, [10 / 3, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(state.own.nearness, [0.5, 0.5], rtol=1e-6)
    np.testing.assert_allclose([first["loss"], second["loss"]], [[4.0], [1.0]])
    assert first["bytes_up"][0] == first["bytes_down"][0] == 4
    state, _ = quadratic(hyper, 2, variant="official")[-1]
    want = [2 - 0.5 * (-2 + 5 / 3 + 1), -0.5 * 5 / 3]
    np.testing.assert_allclose(state.own.model, want, rtol=1e-6)


def test_comes_to_rest_where_the_penalised_losses_are_least():
    """(1 + 2α) w - 2β mean(w) = x: the mean is 2 / (1 + 2α - 2β).

    The published sign has another fixed point.
    """
    hyper = {"alpha": 0.25, "beta": 0.125, "rho": 1.0}
    state, _ = quadratic(hyper, 300, learning_rate=0.2)[-1]
    mean = 2 / (1 + 0.5 - 0.25)
    want = (np.array([4.0, 0.0]) + 0.25 * mean) / 1.5
    np.testing.assert_allclose(state.own.model, want, rtol=1e-4)
    # U = 2 β Ω and Ω = FᵀW at the fixed point.
    total = want.sum() / np.sqrt(2)
    np.testing.assert_allclose(state.server.centres, [total], rtol=1e-4)
    np.testing.assert_allclose(state.server.duals, [0.25 * total], rtol=1e-4)
    released, _ = quadratic(hyper, 300, learning_rate=0.2, variant="official")[-1]
    assert np.abs(released.own.model - want).max() > 0.1


def test_duals_swing_for_ever_with_the_published_numbers():
    """U' = U - ρ/(ρ - 2β) (U - 2β x) oscillates at ρ = 4β and converges at 8β."""
    clients = {"alpha": 1e-3, "beta": 5e-4}
    swings = []
    for rho in (2e-3, 4e-3):
        told = quadratic({**clients, "rho": rho}, 22)[-3:]
        first, second, third = (float(state.server.duals[0]) for state, _ in told)
        swings.append((abs(second - first), abs(third - second)))
    assert min(swings[0]) > 1e-3 and max(swings[1]) < 1e-6


def test_divergences_are_those_of_every_pair():
    keys = jax.random.split(jax.random.key(0), 2)
    outputs = jax.random.normal(keys[0], (4, 5, 3))
    shares = np.asarray(jax.nn.softmax(outputs / 2.0), np.float64)
    want = [[(p * np.log(p / q)).sum(-1).mean() for q in shares] for p in shares]
    divergences = jax.jit(clusterfl.divergences, static_argnames="numbers")
    got = divergences(outputs, 2.0)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
    # Gaussians of std 2: half the squared distance over 4.
    want = [[((p - q) ** 2).sum(-1).mean() / 8 for q in outputs] for p in outputs]
    got = divergences(outputs, 2.0, numbers=True)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_memberships_tell_groups_and_leave_out_whoever_sent_nothing():
    group = np.array([0, 0, 1, 1, 1, 2, 9])
    seen = jnp.array(group < 9)
    apart = jnp.asarray(group[:, None] != group[None, :], float)
    memberships = jax.jit(clusterfl.memberships, static_argnums=2)
    found = np.asarray(memberships(apart, seen, 3))
    np.testing.assert_allclose((found**2).sum(0), [1, 1, 0], rtol=1e-5)
    assert not found[6].any()
    for number in range(3):
        rows = found[group == number]
        np.testing.assert_allclose(rows, rows[:1].repeat(len(rows), 0), atol=1e-5)
    assert len(np.unique(found[:6].round(4), axis=0)) == 3
    nobody = memberships(apart, jnp.zeros(7, bool), 3)
    assert not np.asarray(nobody).any()
    same = memberships(jnp.zeros((7, 7)), seen, 3)
    assert not np.asarray(same).any()


def test_says_what_was_wrong(found):
    wrong = lambda members: federated.clusterfl(
        *(lambda key: jnp.zeros(()), SQUARE),
        steps=Steps(num_steps=1),
        **{"num_clients": 2, "num_clusters": 1, "members": members},
    )
    with pytest.raises(ValueError, match="variant must be one of"):
        found(variant="published")
    with pytest.raises(ValueError, match="every must be >= 1, got 0"):
        found(every=0)
    with pytest.raises(
        ValueError, match=r"either members or both outputs_fn and probe_fn"
    ):
        found(members=jnp.ones((4, 2)))
    with pytest.raises(ValueError, match=r"members must be float\[2, 1\].*\(2, 3\)"):
        wrong(np.ones((2, 3)))
    for weight in (-1.0, np.nan):
        with pytest.raises(ValueError, match="members must be finite and >= 0"):
            wrong(np.array([[1.0], [weight]]))
    with pytest.raises(ValueError, match=r"rho must be > 2 beta, 0\.002, got"):
        found().init(jax.random.key(0), beta=1e-3, rho=1e-3)
    with pytest.raises(ValueError, match="num_clusters must be <= 3"):
        clusterfl.memberships(jnp.zeros((3, 3)), jnp.ones(3, bool), 4)
