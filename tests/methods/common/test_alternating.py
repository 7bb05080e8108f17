"""Tests of component updates against hand arithmetic: inputs, order, step sizes."""

import dataclasses
import functools
from typing import Any, cast

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon import datasets
from jaxanon.methods.common import pool
from jaxanon.methods.common.alternating import BatchSource, Component, central
from jaxanon.training import trainer

pytestmark = pytest.mark.slow

SGD = {"optimizer": optax.identity()}


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings that have no effect."""

    learning_rate: float = 0.5


def _method(data, components, init=None, copies=None, draw=None, **more):
    draw = draw or (lambda key, data, copy: jnp.float32(3.0))
    room = BatchSource(lambda clients: clients, draw, lambda data: 1, 7, copies)
    return central(
        "turns",
        None,
        data.spec,
        room,
        init_fn=lambda key: init or {"a": jnp.float32(1.0), "b": jnp.float32(0.0)},
        components=components,
        hyper={"learning_rate": 0.5, "other": 0.25},
        **{"anonymize_fn": lambda key, params, windows: windows} | more,
    )


def _round(method, data=None, rounds=1):
    state = method.init(jax.random.key(0))
    update = jax.jit(method.update)
    for _ in range(rounds):
        state, info = update(jax.random.key(1), state, data)
    return state, info


def _towards(group, goal_fn):
    """Returns a component that moves to ``goal_fn(params, batch, given)``."""

    def loss_fn(key, params, hyper, batch, given):
        del key, hyper
        error = params[group] - goal_fn(params, batch, given)
        return 0.5 * error**2, ({f"{group} error": error}, {})

    return functools.partial(Component, (group,), loss_fn, **SGD)


def test_components_see_the_updates_of_earlier_ones(data):
    first = _towards("a", lambda params, batch, given: batch)()
    second = _towards("b", lambda params, batch, given: params["a"])
    state, info = _round(_method(data, (first, second(learning_rate="other"))))
    # a moves halfway from 1 to 3, then b a quarter of the way from 0 to a = 2.
    assert state.params == {"a": 2.0, "b": 0.5}
    assert info == {"a error": -2.0, "b error": -2.0}
    assert int(state.round) == 1


def test_a_component_updates_only_its_groups(data):
    # The loss also depends on b, which does not change.
    loss = lambda key, params, hyper, batch, given: (
        params["a"] + params["b"],
        ({}, {}),
    )
    state, _ = _round(_method(data, (Component(("a",), loss, **SGD),)))
    assert state.params == {"a": 0.5, "b": 0.0}


def test_steps_start_from_where_the_last_one_ended(data):
    component = _towards("a", lambda params, batch, given: batch)(steps=3)
    state, info = _round(_method(data, (component,)))
    assert state.params["a"] == 3 - 2 / 2**3
    assert info["a error"] == -2 / 2**2  # The last step.


GOAL = {"w": jnp.array([[1.0, -2.0], [0.5, 3.0]]), "b": jnp.array([4.0])}


def _quartic(key, params, hyper, batch, given):
    del key, hyper, batch, given
    errors = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 4), params["net"], GOAL)
    return errors["w"] + errors["b"], ({}, {})


def _by_optax(init, optimizer, steps):
    """Returns the parameters after plain Optax steps on ``_quartic``."""
    params, opt_state = init, optimizer.init(init)
    for _ in range(steps):
        gradient = jax.grad(lambda net: _quartic(0, {"net": net}, 0, 0, 0)[0])(params)
        updates, opt_state = optimizer.update(gradient, opt_state, params)
        params = optax.apply_updates(params, updates)
    return params


SCHEDULE = optax.linear_schedule(0.5, 0.0, transition_steps=4)


@pytest.mark.parametrize(
    ("plain", "given"),
    [
        (optax.adam(0.5), {}),
        (optax.lamb(0.1), {"optimizer": optax.lamb(0.1), "learning_rate": None}),
        (optax.lars(0.1), {"optimizer": optax.lars(0.1), "learning_rate": None}),
        (
            optax.lamb(0.5),
            {"optimizer": optax.chain(optax.lamb(1.0), optax.scale(-1.0))},
        ),
        (
            optax.adafactor(0.1, min_dim_size_to_factor=2),
            {
                "optimizer": optax.adafactor(0.1, min_dim_size_to_factor=2),
                "learning_rate": None,
            },
        ),
        (optax.adam(SCHEDULE), {"learning_rate": SCHEDULE}),
        (
            optax.lamb(SCHEDULE),
            {"optimizer": optax.lamb(SCHEDULE), "learning_rate": None},
        ),
    ],
    ids=["adam", "lamb", "lars", "hyper", "adafactor", "schedule", "lamb schedule"],
)
def test_every_optimizer_steps_as_in_optax(data, plain, given):
    init = {"w": jnp.full((2, 2), 0.5), "b": jnp.ones(1)}
    component = Component(("net",), _quartic, steps=3, **given)
    method = _method(data, (component,), init={"net": init})
    state, _ = _round(method, rounds=2)
    expected = _by_optax(init, plain, steps=6)
    chex.assert_trees_all_close(state.params["net"], expected, rtol=1e-5)


def test_lamb_on_one_vector_is_another_optimizer(data):
    init = {"w": jnp.full((2, 2), 0.5), "b": jnp.ones(1)}
    flat = _by_optax(init, optax.flatten(optax.lamb(0.1)), steps=3)
    by_layer = _by_optax(init, optax.lamb(0.1), steps=3)
    assert abs(flat["w"] - by_layer["w"]).max() > 0.01


def test_accumulate_sums_gradients(data):
    component = _towards("a", lambda params, batch, given: batch)(
        steps=2, accumulate=True
    )
    state, _ = _round(_method(data, (component,)))
    # First -2, to 2; then half of -2 + -1, to 3.5.
    assert state.params["a"] == 3.5


def test_given_is_computed_once_per_round(data):
    goal = lambda params, batch, given: given
    component = _towards("a", goal)(
        steps=2, given_fn=lambda key, params, hyper, batch: params["a"] + 4
    )
    state, _ = _round(_method(data, (component,)))
    assert state.params["a"] == 5 - 4 / 2**2  # The goal stays at 5.


def test_fresh_batches_differ_and_stale_ones_do_not(data):
    def seen(fresh):
        told = lambda key, params, hyper, batch, given: (
            params["a"] * batch,
            ({}, {"b": params["b"].at[0].set(batch).at[1].set(params["b"][0])}),
        )
        component = Component(("a",), told, steps=2, fresh=fresh, **SGD)
        init = {"a": jnp.float32(1.0), "b": jnp.zeros(2)}
        draw = lambda key, data, copy: jax.random.uniform(key)
        state, _ = _round(_method(data, (component,), init, draw=draw))
        return state.params["b"]

    last, before = seen(fresh=False)
    assert last == before > 0
    last, before = seen(fresh=True)
    assert last != before > 0


def test_a_component_is_inactive_before_its_round(data):
    late = _towards("a", lambda params, batch, given: batch)(
        when_fn=lambda number: number >= 2
    )
    method = _method(data, (late,))
    assert _round(method, rounds=2)[0].params["a"] == 1.0
    assert _round(method, rounds=3)[0].params["a"] == 2.0


def test_copies_train_side_by_side_on_draws_of_their_own(data):
    component = _towards("a", lambda params, batch, given: batch)()
    draw = lambda key, data, copy: 10.0 * copy
    state, info = _round(_method(data, (component,), copies=3, draw=draw))
    np.testing.assert_array_equal(state.params["a"], [0.5, 5.5, 10.5])
    assert info["a error"] == 1 - 10.0


def test_finish_fn_updates_a_group(data):
    component = _towards("a", lambda params, batch, given: batch)()
    finish = lambda key, state, data: {"b": state.params["a"] * 2}
    state, _ = _round(_method(data, (component,), finish_fn=finish))
    assert state.params == {"a": 2.0, "b": 4.0}


def test_windows_are_anonymized_in_physical_units(data):
    method = _method(data, ())._replace()
    state = method.init(jax.random.key(0))
    shown = method.anonymize(jax.random.key(1), state, data.test.windows)
    np.testing.assert_allclose(shown, data.test.windows, rtol=1e-4, atol=1e-4)


def test_a_learning_rate_must_be_known(data):
    component = Component(("a",), cast(Any, None), learning_rate="speed")
    with pytest.raises(ValueError, match=r"hyper must have 'speed', got .*'other'"):
        _method(data, (component,))


def test_progress_counts_windows(data):
    component = _towards("a", lambda params, batch, given: batch)()
    method = _method(data, (component,))
    assert (method.schedule.work_per_round(None), method.schedule.unit) == (
        7,
        "windows",
    )


def test_pool_draws_each_class_from_its_own(data):
    clients = datasets.by_client(data.train)
    seen = pool.pool(data.spec, clients, by_class=True)
    windows = np.asarray(data.train.windows)
    mean, std = (np.float32(x) for x in (data.spec.mean, data.spec.std))
    np.testing.assert_allclose(
        np.sort(np.ravel(seen.windows)), np.sort(np.ravel((windows - mean) / std)), 1e-6
    )
    public = data.spec.public
    for label in range(data.spec.num_classes(public)):
        batch = jax.jit(pool.draw, static_argnums=2)(
            jax.random.key(label), seen, 200, jnp.int32(label)
        )
        assert set(batch.labels[public].tolist()) == {label}
        own = np.flatnonzero(np.asarray(seen.labels[public]) == label)
        # 200 draws cover nearly all of a few dozen windows.
        assert len(np.unique(batch.index)) > 0.8 * len(own) * (
            1 - np.exp(-200 / len(own))
        )
        np.testing.assert_array_equal(batch.windows, seen.windows[batch.index])
    everything = pool.draw(jax.random.key(9), seen, 500)
    assert set(everything.labels[public].tolist()) == set(
        range(data.spec.num_classes(public))
    )


def _left(clients, public, count):
    """Gives public class 1 ``count`` windows, class 2 two, and class 0 the rest."""
    labels = np.zeros_like(clients.labels[public])
    labels.flat[np.flatnonzero(clients.mask)[:count]] = 1
    labels.flat[np.flatnonzero(clients.mask)[count : count + 2]] = 2
    return clients._replace(labels=clients.labels | {public: labels})


@pytest.mark.parametrize("count", [0, 1])
def test_a_class_with_fewer_than_two_windows_is_refused(data, count):
    public = data.spec.public
    clients = _left(datasets.by_client(data.train), public, count)
    name = data.spec.classes[public][1]
    message = rf"at least two training windows .*, but \['{name}'\] have fewer"
    with pytest.raises(ValueError, match=message):
        pool.pool(data.spec, clients, by_class=True)
    assert pool.pool(data.spec, clients).counts[1] == count


def test_a_class_of_two_windows_is_enough(data):
    clients = _left(datasets.by_client(data.train), data.spec.public, 2)
    found = pool.pool(data.spec, clients, by_class=True)
    assert found.counts[1:].tolist() == [2, 2]


def test_a_run_that_diverges_names_its_own_learning_rate(data):
    def loss_fn(key, params, hyper, batch, given):
        return params["a"] ** 2, ({"square": params["a"] ** 2}, {})

    method = _method(data, (Component(("a",), loss_fn, **SGD),))
    with pytest.raises(FloatingPointError, match=r"lower learning_rate"):
        trainer.train(
            method._replace(config=Config()),
            data,
            epochs=60,
            hyper={"learning_rate": 1e3},
            progress=False,
        )


def test_a_generator_has_no_anonymize(data):
    assert _method(data, (), anonymize_fn=None).anonymize is None
