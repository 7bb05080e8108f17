"""Federated meta-learning: the server's side, on losses computed by hand."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon import federated
from jaxanon.federated import fed_maml
from jaxanon.kernels import Objective, Phase

pytestmark = pytest.mark.slow

TARGETS = jnp.array([1.0, 3.0, 8.0])  # One client each.


def loss(name):
    return lambda params, target: 0.5 * (params[name]["w"] - target) ** 2


def graded(name):
    return lambda params, target: (loss(name)(params, target), {name: target})


def build(**options):
    options = {
        "hyper": {"server_learning_rate": 1.0, "inner": 0.5},
        "server_optimizer": optax.sgd(1.0),
        **options,
    }
    return fed_maml(
        lambda key: {"model": {"w": jnp.zeros(())}, "adversary": {"w": jnp.zeros(())}},
        lambda key, client, data: (data[client], data[client], jnp.ones(())),
        lambda hyper: [Phase(("model",), loss("model"), hyper["inner"])],
        lambda hyper: [
            Objective(("model",), graded("model")),
            Objective(("adversary",), graded("adversary")),
        ],
        **options,
    )


def one_round(algorithm, **hyper):
    state = algorithm.init(jax.random.key(0), **hyper)
    return jax.jit(algorithm.update)(jax.random.key(1), state, TARGETS)


def test_a_round_is_one_step_along_the_mean_meta_gradient():
    # Adapted w' = w - 0.5 (w - t): the gradient is 0.25 (w - t), on average 0.25 * 4;
    # the adversary has no inner step: w - t, 4 on average.
    state, info = one_round(build())
    np.testing.assert_allclose(state.params["model"]["w"], 1.0, rtol=1e-6)
    np.testing.assert_allclose(state.params["adversary"]["w"], 4.0, rtol=1e-6)
    np.testing.assert_allclose(info["model"], 4.0, rtol=1e-6)
    assert int(state.round) == 1 and state.average is None
    state, _ = one_round(build(), inner=0.0, server_learning_rate=0.5)
    np.testing.assert_allclose(state.params["model"]["w"], 2.0, rtol=1e-6)


def test_groups_may_take_steps_of_their_own_length():
    lengths = lambda hyper: {"adversary": 0.1 * hyper["server_learning_rate"]}
    state, _ = one_round(build(learning_rates_fn=lengths))
    np.testing.assert_allclose(state.params["adversary"]["w"], 0.4, rtol=1e-6)
    np.testing.assert_allclose(state.params["model"]["w"], 1.0, rtol=1e-6)


def test_adversaries_train_on_alone_while_the_others_rest():
    alone = lambda hyper: Objective(("adversary",), graded("adversary"))
    half = lambda hyper: {"adversary": 0.5}
    state, _ = one_round(build(alone_fn=alone, alone_rounds=2, learning_rates_fn=half))
    # Three steps, each halfway to the mean target 4: 4 (1 - 1/8).
    np.testing.assert_allclose(state.params["adversary"]["w"], 3.5, rtol=1e-6)
    np.testing.assert_allclose(state.params["model"]["w"], 1.0, rtol=1e-6)


def test_the_running_mean_follows_its_recurrence():
    algorithm = build(ema_decay=0.5, hyper={"server_learning_rate": 0.5, "inner": 0.0})
    state = algorithm.init(jax.random.key(0))
    update, mean, w = jax.jit(algorithm.update), 0.0, 0.0
    for round_ in range(12):
        state, _ = update(jax.random.key(1), state, TARGETS)
        w += 0.5 * (4 - w)
        keep = min(0.5, (1 + round_) / (10 + round_))
        mean = keep * mean + (1 - keep) * w
        np.testing.assert_allclose(state.average["model"]["w"], mean, rtol=1e-5)


def test_without_phases_it_is_fedsgd():
    square = lambda w, x, key: 0.5 * (w - x) ** 2
    plain = federated.fedsgd(
        lambda key: jnp.zeros(()), square, server_optimizer=optax.adam(0.1)
    )
    clients = federated.stack([np.array([t]) for t in TARGETS])
    expected = plain.init(jax.random.key(0))
    algorithm = build(server_optimizer=optax.adam(0.1))
    state = algorithm.init(jax.random.key(0))
    plainly, meta_learned = jax.jit(plain.update), jax.jit(algorithm.update)
    for _ in range(3):
        expected, _ = plainly(jax.random.key(1), expected, clients)
        state, _ = meta_learned(jax.random.key(1), state, TARGETS)
    chex.assert_trees_all_close(
        state.params["adversary"]["w"], expected.params, rtol=1e-5
    )


def test_a_cohort_stays_for_its_rounds():
    algorithm = build(cohort_size_fn=lambda num: 1, rounds_per_cohort=3)
    update = jax.jit(algorithm.update)
    state, seen = algorithm.init(jax.random.key(0)), []
    for _ in range(12):
        state, info = update(jax.random.key(4), state, TARGETS)
        seen.append(float(info["model"]))
    cohorts = np.reshape(seen, (4, 3))
    assert (cohorts == cohorts[:, :1]).all() and len(set(cohorts[:, 0])) > 1


def test_first_order_leaves_the_inner_step_out_of_the_derivative():
    # w' - t at w' = 0.5 t, whose derivative by w counts as 1: -2 on average.
    state, _ = one_round(build(second_order=False))
    np.testing.assert_allclose(state.params["model"]["w"], 2.0, rtol=1e-6)


def test_every_client_and_every_round_has_draws_of_its_own():
    def draw(key, client, data):
        support, query = jax.random.uniform(key, (2,))
        own = len(TARGETS) * jax.nn.one_hot(client, len(TARGETS))
        return support, (own, query), jnp.ones(())

    def show(params, drawn):
        # From w = 0, half a step gives half the support, which is all that w depends
        # on.
        own, query = drawn
        w = params["model"]["w"]
        return w, {"support": 2 * w * own, "query": query * own}

    algorithm = fed_maml(
        lambda key: {"model": {"w": jnp.zeros(())}},
        draw,
        lambda hyper: [Phase(("model",), loss("model"), 0.5)],
        lambda hyper: [Objective(("model",), show)],
        hyper={"server_learning_rate": 0.0},
        server_optimizer=optax.sgd(1.0),
    )
    update = jax.jit(algorithm.update)
    state, seen = algorithm.init(jax.random.key(0)), []
    for _ in range(3):
        state, info = update(jax.random.key(1), state, TARGETS)
        seen.append((info["support"], info["query"]))
    # Rounds, support and query, clients: no number is repeated.
    assert np.shape(seen) == (3, 2, 3) and np.min(seen) > 0
    assert len(np.unique(seen)) == 18


def test_rows_of_a_list_come_again_and_nothing_else_does():
    def draw(key, client, data, rows_key):
        drawn = jax.random.uniform(rows_key), jax.random.uniform(key)
        own = len(TARGETS) * jax.nn.one_hot(client, len(TARGETS))
        return data[client], (own, *drawn), jnp.ones(())

    def show(params, drawn):
        own, rows, noise = drawn
        return params["model"]["w"], {"rows": rows * own, "noise": noise * own}

    def alone(params, drawn):  # Its gradient depends on the drawn rows.
        return params["adversary"]["w"] * drawn[1], {}

    algorithm = fed_maml(
        lambda key: {"model": {"w": jnp.zeros(())}, "adversary": {"w": jnp.zeros(())}},
        draw,
        lambda hyper: [],
        lambda hyper: [Objective(("model",), show)],
        hyper={"server_learning_rate": 0.0},
        server_optimizer=optax.sgd(1.0),
        rounds_per_list=2,
        learning_rates_fn=lambda hyper: {"adversary": 1.0},
        alone_fn=lambda hyper: Objective(("adversary",), alone),
        alone_rounds=1,
    )
    update = jax.jit(algorithm.update)
    state, rows, noise = algorithm.init(jax.random.key(0)), [], []
    for _ in range(4):
        before = state.params["adversary"]["w"]
        state, info = update(jax.random.key(1), state, TARGETS)
        drawn_alone = before - state.params["adversary"]["w"]
        rows.append([*info["rows"], drawn_alone])
        noise.append(info["noise"])
    np.testing.assert_allclose(rows[:2], rows[2:], rtol=1e-5)
    assert len(np.unique(np.round(rows, 4))) == 2 * 4 and len(np.unique(noise)) == 12
    # A client that trains alone draws different rows from those of the round.
    apart = [each[3] for each in rows[:2]]
    together = [np.mean(each[:3]) for each in rows[:2]]
    assert np.min(abs(np.subtract.outer(apart, together))) > 1e-3


def test_says_what_was_wrong():
    with pytest.raises(
        ValueError, match="must have 'server_learning_rate'.*learning rate"
    ):
        build(hyper={"inner": 0.1})
    with pytest.raises(ValueError, match="rounds_per_list must be >= 1, got 0"):
        build(rounds_per_list=0)
    with pytest.raises(ValueError, match=r"ema_decay must be in \[0, 1\), got 1\.0"):
        build(ema_decay=1.0)
    with pytest.raises(
        TypeError, match=r"hyper-parameters must be among .* got \['outer'\]"
    ):
        build().init(jax.random.key(0), outer=1.0)
