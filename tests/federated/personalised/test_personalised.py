"""Personalised algorithms against their papers' loops, by hand, and padded."""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import Layout, Population, RoundConfig, Steps
from jaxanon.federated.averaging import reference
from jaxanon.federated.engine import reference as loops
from jaxanon.federated.engine.reference import train_client
from jaxanon.federated.meta_learning import reference as meta_learning_reference
from jaxanon.federated.personalised import reference as personalised_reference

pytestmark = pytest.mark.slow

OPTIONS = {"num_steps": 2, "batch_size": 2}
HEAD = ("head",)
SIZES = (3, 1, 4)  # One client has fewer rows than a batch; one restarts its data.


class Case(NamedTuple):
    """An algorithm, its hyper-parameters, and how its loops are called."""

    make: Any  # (init_fn, loss_fn, *, steps, **how it is built)
    settings: dict
    hyper: dict
    loops: Any
    told: dict = {}  # noqa: RUF012
    model: Any = lambda params, own: own  # The client's prediction model.
    chunk: int | None = None


def with_personal_steps(make):
    """Returns an algorithm with as many personal steps as shared ones."""
    return lambda *args, **more: make(*args, personal_steps=more["steps"], **more)


def localized(key, params, loss_fn, clients, num_rounds, options, *, learning_rate):
    """Trains alone in a loop."""
    own = [params] * len(clients.mask)
    for t in range(num_rounds):
        for c, (own_key, rows, size) in enumerate(loops.round_of(key, t, clients)):
            own[c] = train_client(
                loss_fn, own_key, own[c], rows, size, learning_rate, **options
            )
    return None, own


def shared(params, own):
    """Returns the shared parameters, the model of a client without personal layers."""
    return params


def joined(params, own):
    """Returns the shared and personal layers together."""
    return params | own


CASES = {
    "fedprox": Case(
        federated.fedprox, {}, {"proximal_mu": 0.7}, reference.fedprox, model=shared
    ),
    "fedper": Case(
        *(
            federated.fedper,
            {"personal_layers": HEAD},
            {},
            personalised_reference.fedper,
            {"names": HEAD},
        ),
        *(joined, 1),
    ),
    "fedrep": Case(
        with_personal_steps(federated.fedrep),
        *(
            {"personal_layers": HEAD},
            {},
            personalised_reference.fedrep,
            {"names": HEAD},
            joined,
        ),
    ),
    "ditto": Case(
        with_personal_steps(federated.ditto),
        {},
        {"proximal_weight": 0.6},
        personalised_reference.ditto,
        chunk=2,
    ),
    "scaffold": Case(
        federated.scaffold, {}, {}, reference.scaffold, model=shared, chunk=1
    ),
    "pfedme": Case(
        federated.pfedme,
        {"personal_steps": 2},
        {"server_learning_rate": 0.2, "proximal_weight": 1.5, "mix": 0.8},
        personalised_reference.pfedme,
        {"personal_steps": 2},
    ),
    "per_fedavg": Case(
        federated.per_fedavg,
        {},
        {"adaptation_learning_rate": 0.2},
        meta_learning_reference.per_fedavg,
        model=None,  # By hand below.
        chunk=2,
    ),
    "localized": Case(federated.localized, {}, {}, localized, chunk=1),
}


@pytest.fixture(scope="module")
def made(network, start):
    """Returns an algorithm of ``CASES`` for ``num_clients`` clients."""

    def made(name, num_clients=3, **rounds):
        case = CASES[name]
        given = {"num_clients": num_clients, **rounds}
        return case.make(
            start, network, steps=Steps(**OPTIONS), **case.settings, **given
        )

    return made


@pytest.mark.parametrize("name", sorted(CASES))
def test_runs_side_by_side_on_padded_data_are_the_loops_in_float64(
    name, made, network, start, population, grown
):
    """Seeds and learning rates are one more axis.

    Padded rows and clients change nothing, and a client without rows keeps its state.
    """
    case = CASES[name]
    with jax.enable_x64(True):
        plain = population(SIZES)
        clients = grown(plain)
        layout = Layout(chunk_size=case.chunk)
        rounds = {"layout": layout, "weighting": "rows"}  # As in the loops.
        algorithm = made(name, len(clients.mask), **rounds)

        def run(seed, learning_rate):
            hyper = {"learning_rate": learning_rate} | case.hyper
            state = algorithm.init(jax.random.key(seed), **hyper)
            begun, key = state.own, jax.random.key(seed + 9)
            state, info = federated.simulate(algorithm, key, state, clients, 2)
            rows = jax.tree.map(lambda leaf: leaf[2], clients.rows)
            last = (jnp.int32(2), rows, clients.mask[2])
            model = algorithm.model(jax.random.key(5), state, *last)
            return state, begun, model, info

        sizes = [0.1, 0.2]
        together = jax.jit(jax.vmap(run))(jnp.arange(2), jnp.array(sizes))
        for i, learning_rate in enumerate(sizes):
            one = jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), together)
            state, begun, model, info = one
            told = {"learning_rate": learning_rate} | case.hyper | case.told
            given = (start(jax.random.key(i)), jax.jit(network), plain, 2, OPTIONS)
            params, own = case.loops(jax.random.key(i + 9), *given, **told)
            close = {"rtol": 1e-9, "atol": 1e-11}
            chex.assert_trees_all_close(state.params, params, **close)
            if own is not None:
                stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *own)
                three = jax.tree.map(lambda leaf: leaf[:3], state.own)
                chex.assert_trees_all_close(three, stacked, **close)
                rest = jax.tree.map(lambda leaf: leaf[3:], (state.own, begun))
                chex.assert_trees_all_equal(*rest)
            if case.model:
                wanted = case.model(params, own and own[2])
                chex.assert_trees_all_close(model, wanted, **close)
            assert info["loss"].shape == (2,)


@pytest.mark.parametrize("name", ["fedper", "localized"])
def test_who_is_not_of_the_cohort_keeps_what_it_had(name, made, population):
    algorithm, clients = made(name, cohort_size=1), population()
    state = algorithm.init(jax.random.key(0), learning_rate=0.1)
    begun = jax.tree.map(np.asarray, state.own)
    state, _ = federated.simulate(algorithm, jax.random.key(1), state, clients, 1)
    moved = [
        any(
            (np.asarray(new)[c] != old[c]).any()
            for new, old in zip(*map(jax.tree.leaves, (state.own, begun)), strict=True)
        )
        for c in range(3)
    ]
    assert sum(moved) == 1


QUADRATIC = functools.partial(lambda w, x, key: 0.5 * (w - x) ** 2)


def two(make, hyper, num_rounds=1, start=0.0, loss=QUADRATIC, **settings):
    """Returns state and losses after rounds of one step each from 0.

    Two clients have the same weight: one at 4, with a row of padding, and one at 0. The
    third has neither rows nor weight.
    """
    if make is not federated.scaffold:  # The default.
        settings["weighting"] = "clients"
    algorithm = make(
        lambda key: jax.tree.map(jnp.float32, start),
        loss,
        **{"steps": Steps(num_steps=1)} | settings,
        num_clients=3,
    )
    state = algorithm.init(jax.random.key(0), **hyper)
    rows = jnp.array([[4.0, 9.0], [0.0, 0.0], [7.0, 7.0]])
    mask = jnp.array([[True, False], [True, True], [False, False]])
    clients = Population(rows, mask)
    return federated.simulate(algorithm, jax.random.key(1), state, clients, num_rounds)


@pytest.mark.parametrize(
    ("make", "step"), [(federated.localized, 0.5), (federated.scaffold, -1.0)]
)
def test_a_cohort_in_any_order_stores_each_state_at_its_client(make, step):
    """Twelve cohorts of two of three clients, at 1, 2 and 3, take one step from 0.

    The server's control is the mean of all controls, also of absent clients' zeros.
    """
    places = np.array([1.0, 2.0, 3.0], np.float32)
    clients = Population(jnp.array(places)[:, None], jnp.ones((3, 1), bool))
    settings = {"num_clients": 3, "cohort_size": 2, "weighting": "clients"}
    init_fn = lambda key: jnp.float32(0.0)
    algorithm = make(init_fn, QUADRATIC, steps=Steps(num_steps=1), **settings)
    state = algorithm.init(jax.random.key(0), learning_rate=0.5)
    keys = jax.random.split(jax.random.key(1), 12)
    after = jax.vmap(lambda key: algorithm.update(key, state, clients)[0])(keys)
    own = np.asarray(after.own)
    moved = own != 0
    assert (moved.sum(axis=1) == 2).all() and moved.any(axis=0).all()
    np.testing.assert_array_equal(own, np.where(moved, step * places, 0))
    if make is federated.scaffold:
        np.testing.assert_allclose(after.server, own.mean(axis=1), rtol=1e-6)


def test_scaffold_of_two_clients_by_hand():
    """Round 2 from 1: client 1's gradient is -3, its control -4, the mean -2.

    Both move the same way, by half of -3 + 4 - 2 = 1 - 0 - 2 = -1. FedAvg ends there
    too, but its clients drift: to 2.5 and 0.5.
    """
    state, info = two(federated.scaffold, {"learning_rate": 0.5}, 2)
    assert state.params == 1.5
    # Each control is the gradient at 1, where the round began.
    np.testing.assert_array_equal(state.own, [-3.0, 1.0, 0.0])
    assert state.server == -1.0
    np.testing.assert_array_equal(info["loss"], [4.0, 2.5])  # (8 + 0) / 2, 5 / 2.


def test_ditto_of_two_clients_by_hand():
    """Round 2: the mean is 1.

    Personal models 2 and 0 have gradients -2 and 0, and pulls of 1 x (2 - 1) and 1 x (0
    - 1).
    """
    state, info = two(
        federated.ditto,
        {"learning_rate": 0.5, "proximal_weight": 1.0},
        2,
        personal_steps=Steps(num_steps=1),
    )
    assert state.params == 1.5
    np.testing.assert_array_equal(state.own, [2.5, 0.5, 0.0])
    np.testing.assert_array_equal(info["loss"], [4.0, 2.5])
    np.testing.assert_array_equal(info["own loss"], [4.0, 1.0])


def test_fedrep_of_two_clients_by_hand():
    """Heads move halfway to 4 and to 0, shared layers half of the rest."""
    state, info = two(
        federated.fedrep,
        {"learning_rate": 0.5},
        start={"w": 0.0, "v": 0.0},
        loss=lambda p, x, key: QUADRATIC(p["w"] + p["v"], x, key),
        personal_layers=("v",),
        personal_steps=Steps(num_steps=1),
    )
    np.testing.assert_array_equal(state.own["v"], [2.0, 0.0, 0.0])
    assert state.params["w"] == 0.5
    assert info["own loss"].tolist() == [4.0] and info["loss"].tolist() == [1.0]


def test_pfedme_of_two_clients_by_hand():
    """Personal models are 2 and 0 after a step.

    Copies follow by 0.25 x 2 of the distance, to 1 and 0; the server takes half of
    their mean.
    """
    hyper = {
        "learning_rate": 0.5,
        "server_learning_rate": 0.25,
        "proximal_weight": 2.0,
        "mix": 0.5,
    }
    state, info = two(federated.pfedme, hyper, personal_steps=1)
    np.testing.assert_array_equal(state.own, [2.0, 0.0, 0.0])
    assert state.params == 0.25 and info["loss"].tolist() == [4.0]


@pytest.mark.parametrize(("mu", "want"), [(0.5, 1.25), (0.0, 1.5)])
def test_fedprox_of_two_clients_by_hand(mu, want):
    """The penalty is 0 in the first step; after two: 2 - 0.5 (-2 + 0.5 x 2)."""
    hyper = {"learning_rate": 0.5, "proximal_mu": mu}
    state, info = two(federated.fedprox, hyper, steps=Steps(num_steps=2))
    assert state.params == want
    # 8 and 2 for the first client, and 0 for the other.
    assert info["loss"].tolist() == [2.5]


@pytest.mark.parametrize(("second_order", "want"), [(True, 0.5), (False, 1.0)])
def test_per_fedavg_of_two_clients_by_hand(second_order, want):
    """After adapting by a half, gradients are -2 and 0; the chain rule halves them."""
    hyper = {"learning_rate": 1.0, "adaptation_learning_rate": 0.5}
    state, info = two(federated.per_fedavg, hyper, second_order=second_order)
    assert state.params == want and info["loss"].tolist() == [1.0]


def test_per_fedavg_predicts_with_what_a_step_made():
    algorithm = federated.per_fedavg(
        lambda key: jnp.zeros(()), QUADRATIC, steps=Steps(num_steps=1), num_clients=2
    )
    state = algorithm.init(jax.random.key(0), adaptation_learning_rate=0.25)
    rows, mask = jnp.array([4.0, 9.0]), jnp.array([True, False])
    params = algorithm.model(jax.random.key(0), state, jnp.int32(0), rows, mask)
    assert params == 1.0


def test_says_what_was_wrong(made, network, start, population):
    with pytest.raises(ValueError, match="num_steps must be >= 1, got 0"):
        Steps(num_steps=0)
    with pytest.raises(ValueError, match="batch_size must be >= 1, got 0; None takes"):
        Steps(num_steps=1, batch_size=0)
    # A scan over jnp.arange(2.5) would silently take three steps.
    with pytest.raises(TypeError, match=r"num_steps must be whole, got 2\.5"):
        Steps(num_steps=2.5)
    with pytest.raises(TypeError, match=r"batch_size must be whole, got 1\.5"):
        Steps(num_steps=1, batch_size=1.5)
    with pytest.raises(
        TypeError, match=r"personal_steps must be a Python int, got 1\.5"
    ):
        steps = Steps(**OPTIONS)
        federated.pfedme(start, network, steps=steps, personal_steps=1.5, num_clients=3)
    with pytest.raises(ValueError, match=r"weighting must be one of.*got 'size'"):
        RoundConfig(weighting="size")
    with pytest.raises(ValueError, match="num_clients must be >= 1, got 0"):
        made("ditto", 0)
    wrong = federated.fedper(
        start, network, steps=Steps(**OPTIONS), personal_layers=("haed",), num_clients=3
    )
    with pytest.raises(ValueError, match=r"layers must be among .* got \['haed'\]"):
        wrong.init(jax.random.key(0))
    algorithm = made("scaffold", 4)
    state = algorithm.init(jax.random.key(0))
    with pytest.raises(ValueError, match="population must have 4 clients"):
        algorithm.update(jax.random.key(0), state, population())
    with pytest.raises(ValueError, match="personal_steps must be >= 1, got 0"):
        federated.pfedme(
            start, network, steps=Steps(**OPTIONS), personal_steps=0, num_clients=3
        )
