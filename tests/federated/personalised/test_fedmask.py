"""FedMask against its loops, by hand, and its invariants."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import Layout, Population, Steps
from jaxanon.federated.personalised.reference import fedmask as loops

pytestmark = pytest.mark.slow

OPTIONS = {"num_steps": 3, "batch_size": 2}
BOTH = ("base", "head")


def logit(p):
    return np.log(p / (1 - p))


@pytest.mark.parametrize(("names", "chunk"), [(BOTH, 2), (("head",), 1)])
def test_agrees_with_the_loops_in_float64_however_padded(
    names, chunk, network, start, population, grown
):
    with jax.enable_x64(True):
        clients = population()
        algorithm = federated.fedmask(
            start,
            network,
            steps=Steps(**OPTIONS),
            masked_layers=names,
            num_clients=5,
            weighting="clients",
            layout=Layout(chunk_size=chunk),
        )
        hyper = {"learning_rate": 0.5, "certainty": 0.7}
        state = algorithm.init(jax.random.key(0), **hyper)
        begun = state.params
        state, _ = federated.simulate(
            algorithm,
            jax.random.key(1),
            jax.tree.map(jnp.copy, state),
            grown(clients),
            3,
        )
        assert (state.own.last[3:] == -1).all()
        state = state._replace(own=jax.tree.map(lambda leaf: leaf[:3], state.own))
        masks, retained = loops(
            *(jax.random.key(1), start(jax.random.key(0)), jax.jit(network), clients),
            *(3, OPTIONS),
            **hyper,
            names=names,
        )
        stacked = lambda trees: jax.tree.map(lambda *x: np.stack(x), *trees)
        chex.assert_trees_all_equal(state.own.retained, stacked(retained))
        shares = [np.mean(x) for x in jax.tree.leaves(state.own.retained)]
        assert 0 < min(shares) < 1
        chex.assert_trees_all_equal(state.params, begun)
        # The model at the start of a round, as used for prediction.
        model = jax.jit(algorithm.model)
        for c in range(3):
            told = model(
                jax.random.key(0),
                state,
                jnp.int32(c),
                jax.tree.map(lambda leaf, c=c: leaf[c], clients.rows),
                clients.mask[c],
            )
            use = lambda w, e, keep: np.asarray(w) * (e >= -1e-12) * keep
            own = {n: begun[n] for n in begun if n not in names} | {
                n: jax.tree.map(use, begun[n], masks[c][n], retained[c][n])
                for n in names
            }
            chex.assert_trees_all_close(told, own, rtol=1e-12)
        # If no other client retains a weight, the client's own value is used.
        alone = jax.tree.map(lambda flag: np.sum(flag, 0) == 1, state.own.retained)
        for mine, theirs, flag in zip(
            *map(jax.tree.leaves, (state.own.masks, stacked(masks), alone)), strict=True
        ):
            mine = np.asarray(mine) + logit(0.7)
            np.testing.assert_allclose(mine[:, flag], theirs[:, flag], rtol=1e-9)


def two(num_rounds, **hyper):
    """Returns clients at 3 and 0, with weights 2 and 1 that add up.

    A third has no row.
    """
    algorithm = federated.fedmask(
        lambda key: {"w": jnp.array([2.0, 1.0])},
        lambda p, x, key: 0.5 * (jnp.sum(p["w"]) - x) ** 2,
        steps=Steps(num_steps=1),
        masked_layers=("w",),
        num_clients=3,
    )
    state = algorithm.init(jax.random.key(0), **{"learning_rate": 0.4} | hyper)
    rows = jnp.array([[3.0, 9.0], [0.0, 9.0], [9.0, 9.0]])
    clients = Population(rows, jnp.array([[True, False], [True, False], [False] * 2]))
    states, infos = [], []
    for _ in range(num_rounds):
        state, info = federated.simulate(
            algorithm, jax.random.key(1), state, clients, 1
        )
        states.append(jax.tree.map(np.asarray, state))
        infos.append(jax.tree.map(lambda leaf: leaf[0], info))
    return algorithm, states, infos


def test_two_clients_by_hand():
    """The sigmoid's slope at 0.6 is 0.24. The client at 3 does not change.

    The client at 0 is off by 3. Its scores fall by 0.4 · 3 · 2 · 0.24 = 0.576 and 0.288
    from 0.405, and the first weight is pruned. Both clients retain and use the second,
    which continues from 0.117, where the slope is 0.2491. In round 2 the client is off
    by 1: down by 0.0997.
    """
    algorithm, (first, second), (info, later) = two(2)
    want = [[0.0, 0.0], [-0.576, -0.288], [0.0, 0.0]]
    np.testing.assert_allclose(first.own.masks["w"], want, atol=1e-6)
    assert first.own.retained["w"][:2].tolist() == [[True, True], [False, True]]
    assert info["loss"] == (0 + 4.5) / 2 and info["used"] == 0.75
    assert info["bytes_up"] == 2 / 8 and info["bytes_down"] == 8
    want = [[0.0, 0.0], [-0.576, -0.288 - 0.099656], [0.0, 0.0]]
    np.testing.assert_allclose(second.own.masks["w"], want, atol=1e-6)
    assert later["loss"] == (0 + 0.5) / 2
    told = [
        algorithm.model(
            jax.random.key(0), second, jnp.int32(c), jnp.ones(1), jnp.ones(1, bool)
        )["w"].tolist()
        for c in (0, 1)
    ]
    assert told == [[2.0, 1.0], [0.0, 1.0]]


def test_a_pruned_weight_never_comes_back_and_half_of_the_bits_are_enough():
    """Three clients retain everything; one or two of them send a 1."""
    algorithm = federated.fedmask(
        lambda key: {"w": jnp.ones(3), "v": jnp.ones(1)},
        lambda p, x, key: 0 * x * jnp.sum(p["w"]),
        steps=Steps(num_steps=1),
        masked_layers=("w",),
        num_clients=2,
    )
    state = algorithm.init(jax.random.key(0), certainty=0.75)
    low = jnp.array([[-9.0, 0.0, -9.0], [-9.0, -9.0, 0.0]])
    retained = jnp.array([[True, True, True], [True, True, False]])
    own = state.own._replace(
        masks={"w": low}, retained={"w": retained}, last=jnp.zeros(2, jnp.int32)
    )
    clients = federated.stack([jnp.array([3.0]), jnp.array([0.0])])
    update = jax.jit(algorithm.update)
    state, info = update(jax.random.key(0), state._replace(own=own), clients)
    assert state.server.means["w"].tolist() == [0.0, 0.5, 0.0]
    assert state.server.shared["w"].tolist() == [True, True, False]
    assert float(info["used"]) == pytest.approx(1 / 6)
    told = [
        algorithm.model(
            jax.random.key(0), state, jnp.int32(c), jnp.ones(1), jnp.ones(1, bool)
        )["w"].tolist()
        for c in (0, 1)
    ]
    assert told == [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]


def test_who_is_not_of_the_cohort_keeps_its_masks(network, start, population):
    algorithm = federated.fedmask(
        start,
        network,
        steps=Steps(**OPTIONS),
        masked_layers=BOTH,
        num_clients=3,
        cohort_size=1,
    )
    state = algorithm.init(jax.random.key(0), learning_rate=1.0)
    state, _ = jax.jit(algorithm.update)(jax.random.key(1), state, population())
    assert sorted(state.own.last.tolist()) == [-1, -1, 0]
    shared = [bool(jnp.any(leaf)) for leaf in jax.tree.leaves(state.server.shared)]
    assert not any(shared)  # No two clients share bits.


def test_says_what_was_wrong(network, start):
    make = lambda names: federated.fedmask(
        start,
        network,
        steps=Steps(num_steps=1),
        masked_layers=names,
        num_clients=2,
    )
    with pytest.raises(ValueError, match="masked_layers must have at least one layer"):
        make(())
    with pytest.raises(ValueError, match=r"layers must be among .* got \['hand'\]"):
        make(("hand",)).init(jax.random.key(0))
