"""Personalised algorithms against their papers' loops, by hand, and padded."""

import functools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import Layout, Rounds, Steps
from jaxanon.federated import reference_personal as loops

pytestmark = pytest.mark.long

OPTIONS = {"num_steps": 3, "batch_size": 2}
HEAD = ("head",)


class Case(NamedTuple):
    """An algorithm, its hyper-parameters, and how its loops are called."""

    make: Any  # (init_fn, loss_fn, steps, **how it is built)
    settings: dict
    hyper: dict
    loops: Any = None
    told: dict = {}  # noqa: RUF012


def with_own_steps(make):
    """An algorithm whose own steps are as many as the shared ones."""
    return lambda *args, **more: make(*args, own_steps=args[2], **more)


CASES = {
    "fed_prox": Case(federated.fed_prox, {}, {"mu": 0.7}, loops.fed_prox),
    "fed_per": Case(
        federated.fed_per, {"own_layers": HEAD}, {}, loops.fed_per, {"names": HEAD}
    ),
    "fed_rep": Case(
        with_own_steps(federated.fed_rep),
        {"own_layers": HEAD},
        {},
        loops.fed_rep,
        {"names": HEAD},
    ),
    "ditto": Case(with_own_steps(federated.ditto), {}, {"pull": 0.6}, loops.ditto),
    "scaffold": Case(federated.scaffold, {}, {}, loops.scaffold),
    "p_fed_me": Case(
        federated.p_fed_me,
        {"own_steps": 2},
        {"server_step_size": 0.2, "pull": 1.5, "mix": 0.8},
        loops.p_fed_me,
        {"own_steps": 2},
    ),
    "per_fed_avg": Case(
        federated.per_fed_avg, {}, {"adaptation_step_size": 0.2}, loops.per_fed_avg
    ),
    "localized": Case(federated.localized, {}, {}),
}
ALL = pytest.mark.parametrize("name", sorted(CASES))


@pytest.fixture(scope="module")
def made(network, start):
    """An algorithm of ``CASES`` for so many clients."""

    def made(name, num_clients=3, steps=None, **rounds):
        case = CASES[name]
        steps = steps or Steps(**OPTIONS)
        given = {"num_clients": num_clients, "rounds": Rounds(**rounds)}
        return case.make(start, network, steps, **case.settings, **given)

    return made


@pytest.fixture(scope="module")
def ran(made):
    """Its state and what it told after rounds with these clients."""

    def ran(name, clients, num_rounds=2, **options):
        algorithm = made(name, len(clients.mask), **options)
        hyper = {"step_size": 0.1} | CASES[name].hyper
        state = algorithm.init(jax.random.key(0), **hyper)
        key = jax.random.key(1)
        return federated.simulate(algorithm, key, state, clients, num_rounds)

    return ran


@pytest.fixture(scope="module")
def expected(network, start, population):
    """What its loops come to."""

    @functools.cache
    def expected(name):
        case = CASES[name]
        params = start(jax.random.key(0))
        told = {"step_size": 0.1} | case.hyper | case.told
        key = jax.random.key(1)
        return case.loops(key, params, network, population(), 2, OPTIONS, **told)

    return expected


@pytest.mark.parametrize("chunk", [None, 1, 2])
@pytest.mark.parametrize("name", [name for name in sorted(CASES) if CASES[name].loops])
def test_agrees_with_the_loops_in_float64(name, chunk, ran, expected, population):
    with jax.enable_x64(True):
        state, _ = ran(name, population(), layout=Layout(chunk=chunk))
        params, own = expected(name)
        close = {"rtol": 1e-9, "atol": 1e-11}
        chex.assert_trees_all_close(state.params, params, **close)
        if own is not None:
            stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *own)
            chex.assert_trees_all_close(state.own, stacked, **close)


@ALL
def test_padded_rows_and_clients_change_nothing(name, made, ran, population, grown):
    plain, plain_info = ran(name, population())
    padded, padded_info = ran(name, grown(population()))
    close = {"rtol": 1e-5, "atol": 1e-6}
    chex.assert_trees_all_close(plain.params, padded.params, **close)
    chex.assert_trees_all_close(plain_info, padded_info, **close)
    three = jax.tree.map(lambda leaf: leaf[:3], padded.own)
    chex.assert_trees_all_close(plain.own, three, **close)
    untouched = made(name, 5).init(jax.random.key(0)).own
    last = jax.tree.map(lambda leaf: leaf[3:], (padded.own, untouched))
    chex.assert_trees_all_equal(*last)


@pytest.mark.parametrize("name", sorted({*CASES} - {"fed_prox", "per_fed_avg"}))
def test_who_is_not_of_the_cohort_keeps_what_it_had(name, made, ran, population):
    clients = population()
    state, _ = ran(name, clients, num_rounds=1, cohort_size=1)
    begun = made(name).init(jax.random.key(0)).own
    moved = [
        any(
            bool(jnp.any(new[c] != old[c]))
            for new, old in zip(*map(jax.tree.leaves, (state.own, begun)), strict=True)
        )
        for c in range(3)
    ]
    assert sum(moved) == 1


@ALL
def test_seeds_and_hyper_parameters_are_one_more_axis(name, made, population):
    algorithm, clients = made(name), population()

    def run(seed, step_size):
        state = algorithm.init(jax.random.key(seed), step_size=step_size)
        state, _ = algorithm.update(jax.random.key(seed + 9), state, clients)
        rows = jax.tree.map(lambda leaf: leaf[1], clients.rows)
        key = jax.random.key(5)
        return algorithm.model(key, state, jnp.int32(1), rows, clients.mask[1])

    seeds, sizes = jnp.array([0, 1]), jnp.array([0.1, 0.2])
    together, single = jax.jit(jax.vmap(run))(seeds, sizes), jax.jit(run)
    for i in range(2):
        alone = single(seeds[i], sizes[i])
        chex.assert_trees_all_close(
            jax.tree.map(lambda leaf, i=i: leaf[i], together), alone, rtol=1e-3
        )


QUADRATIC = functools.partial(lambda w, x, key: 0.5 * (w - x) ** 2)


def two(make, hyper, num_rounds=1, **settings):
    """State after rounds of two clients, at 4 and at 0, from 0, one step each."""
    algorithm = make(
        lambda key: jnp.zeros(()),
        QUADRATIC,
        Steps(num_steps=1),
        num_clients=2,
        **settings,
    )
    state = algorithm.init(jax.random.key(0), **hyper)
    clients = federated.stack([jnp.array([4.0]), jnp.array([0.0])])
    return federated.simulate(algorithm, jax.random.key(1), state, clients, num_rounds)[
        0
    ]


def test_scaffold_of_two_clients_by_hand():
    """Round 2 from 1: client 1's gradient -3, its control -4, everybody's -2: both go
    the same way, -3 + 4 - 2 = 1 - 0 - 2 = -1, by half of it. FedAvg goes there too, but
    the clients drift: to 2.5 and 0.5."""
    state = two(federated.scaffold, {"step_size": 0.5}, 2)
    assert state.params == 1.5
    # Each control is the gradient at 1, where the round began.
    np.testing.assert_array_equal(state.own, [-3.0, 1.0])
    assert state.server == -1.0


def test_ditto_of_two_clients_by_hand():
    """Round 2: the mean is 1. Own models 2 and 0 feel gradients -2 and 0, and pulls of
    1 x (2 - 1) and 1 x (0 - 1)."""
    state = two(
        federated.ditto,
        {"step_size": 0.5, "pull": 1.0},
        2,
        own_steps=Steps(num_steps=1),
    )
    assert state.params == 1.5
    np.testing.assert_array_equal(state.own, [2.5, 0.5])


def test_p_fed_me_of_two_clients_by_hand():
    """Own models 2 and 0 after a step; copies follow by 0.25 x 2 of the way, to 1 and
    0; the server takes half of their mean."""
    hyper = {"step_size": 0.5, "server_step_size": 0.25, "pull": 2.0, "mix": 0.5}
    state = two(federated.p_fed_me, hyper, own_steps=1)
    np.testing.assert_array_equal(state.own, [2.0, 0.0])
    assert state.params == 0.25


def test_fed_prox_of_two_clients_by_hand():
    """A step from where it began feels no penalty; two do: 2 - 0.5 (-2 + 0.5 x 2)."""
    make = lambda *args, **more: federated.fed_prox(
        *args[:2], Steps(num_steps=2), **more
    )
    assert two(make, {"step_size": 0.5, "mu": 0.5}).params == 1.25
    assert two(make, {"step_size": 0.5, "mu": 0.0}).params == 1.5


@pytest.mark.parametrize(("second_order", "want"), [(True, 0.5), (False, 1.0)])
def test_per_fed_avg_of_two_clients_by_hand(second_order, want):
    """After adapting by a half, gradients are -2 and 0; the chain rule halves them."""
    hyper = {"step_size": 1.0, "adaptation_step_size": 0.5}
    state = two(federated.per_fed_avg, hyper, second_order=second_order)
    assert state.params == want


def test_per_fed_avg_predicts_with_what_a_step_made():
    algorithm = federated.per_fed_avg(
        lambda key: jnp.zeros(()), QUADRATIC, Steps(num_steps=1), num_clients=2
    )
    state = algorithm.init(jax.random.key(0), adaptation_step_size=0.25)
    rows, mask = jnp.array([4.0, 9.0]), jnp.array([True, False])
    params = algorithm.model(jax.random.key(0), state, jnp.int32(0), rows, mask)
    assert params == 1.0


def test_says_what_was_wrong(made, network, start, population):
    with pytest.raises(ValueError, match="num_steps must be >= 1, got 0"):
        Steps(num_steps=0)
    with pytest.raises(ValueError, match=r"batch_size must be >= 1, or None.*got 0"):
        Steps(num_steps=1, batch_size=0)
    # A scan over jnp.arange(2.5) would take three steps, and say nothing.
    with pytest.raises(TypeError, match=r"num_steps must be whole, got 2\.5"):
        Steps(num_steps=2.5)
    with pytest.raises(TypeError, match=r"batch_size must be whole, got 1\.5"):
        Steps(num_steps=1, batch_size=1.5)
    with pytest.raises(TypeError, match=r"own_steps must be a Python int, got 1\.5"):
        steps = Steps(**OPTIONS)
        federated.p_fed_me(start, network, steps, own_steps=1.5, num_clients=3)
    with pytest.raises(ValueError, match=r"weighting must be one of.*got 'size'"):
        Rounds(weighting="size")
    with pytest.raises(ValueError, match="num_clients must be >= 1, got 0"):
        made("ditto", 0)
    wrong = federated.fed_per(
        start, network, Steps(**OPTIONS), own_layers=("haed",), num_clients=3
    )
    with pytest.raises(ValueError, match=r"no layers \['haed'\]; the model has"):
        wrong.init(jax.random.key(0))
    algorithm = made("scaffold", 4)
    state = algorithm.init(jax.random.key(0))
    with pytest.raises(ValueError, match="made for 4 clients, and the population has"):
        algorithm.update(jax.random.key(0), state, population())
    with pytest.raises(ValueError, match="own_steps must be >= 1, got 0"):
        federated.p_fed_me(start, network, Steps(**OPTIONS), own_steps=0, num_clients=3)
