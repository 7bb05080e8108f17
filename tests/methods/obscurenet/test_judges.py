"""Tests of attribute classifiers that are trained jointly with other models."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxanon import datasets
from jaxanon.core.programs import rounds_program
from jaxanon.methods.common import pool
from jaxanon.methods.common.alternating import BatchSource, Component, central
from jaxanon.methods.obscurenet import autoencoders

HYPER = {"classifier_learning_rate": 2e-3, "learning_rate": 0.5}


@pytest.fixture(scope="module")
def alone(data):
    return autoencoders.attribute_classifiers(data.spec, 64, HYPER)


@pytest.fixture(scope="module")
def seen(alone, data):
    return alone.prepare(datasets.by_client(data.train))


def _counter(data):
    """Two copies of a number that moves halfway to the copy's index."""

    def loss_fn(key, params, hyper, batch, given):
        return 0.5 * (params["a"] - batch) ** 2, ({"far": params["a"] - batch}, {})

    draw = lambda key, data, copy: 4.0 * copy
    room = BatchSource(
        lambda clients: pool.pool(data.spec, clients), draw, lambda _: 3, 7, 2
    )
    return central(
        "counter",
        None,
        data.spec,
        room,
        init_fn=lambda key: {"a": jax.random.normal(key)},
        components=(Component(("a",), loss_fn, optimizer=optax.identity()),),
        hyper=HYPER,
        anonymize_fn=lambda key, params, windows: windows,
    )


def test_they_learn_every_attribute_of_windows_unseen(alone, seen, data):
    state = alone.init(jax.random.key(0))
    state, info, _ = rounds_program(alone.update)(jax.random.key(1), state, seen, 150)
    assert info.keys() == {"activity classifier", "gender classifier"}
    mean, std = np.float32(data.spec.mean), np.float32(data.spec.std)
    windows = (data.test.windows - mean) / std
    found = autoencoders.predict(data.spec, state.params, windows)
    for name, least in (("activity", 0.9), ("gender", 0.75)):
        assert np.mean(found[name] == data.test.labels[name]) > least, name


def test_both_learn_as_they_would_alone(alone, seen, data):
    counter = _counter(data)
    both = autoencoders.train_jointly(counter, alone)
    assert both.name == "counter" and both.schedule.rounds_per_epoch(seen) == 3
    state = both.init(jax.random.key(0))
    assert state.params["a"].shape == (2,)  # One per copy, and one set of classifiers.
    widths = {leaf.ndim for leaf in jax.tree.leaves(state.params["classifiers"])}
    assert widths == {1, 2}
    after, info = jax.jit(both.update)(jax.random.key(1), state, seen)
    assert int(after.round) == 1
    np.testing.assert_allclose(
        after.params["a"], (state.params["a"] + jnp.array([0.0, 4.0])) / 2
    )
    assert info.keys() == {"far", "activity classifier", "gender classifier"}

    own = {"classifiers": state.params["classifiers"]}
    moments = {"classifiers": state.opt_state["classifiers"]}
    _, key = jax.random.split(jax.random.fold_in(jax.random.key(1), 0))
    single, _ = jax.jit(alone.update)(
        key, state._replace(params=own, opt_state=moments), seen
    )
    chex.assert_trees_all_close(
        single.params["classifiers"], after.params["classifiers"], rtol=1e-5, atol=1e-7
    )
    moved = jax.tree.map(
        lambda old, new: bool(jnp.any(old != new)),
        own["classifiers"],
        after.params["classifiers"],
    )
    assert all(jax.tree.leaves(moved))


def test_a_hyper_parameter_that_neither_has_is_refused(alone, data):
    both = autoencoders.train_jointly(_counter(data), alone)
    with pytest.raises(TypeError, match=r"classifier_learning_rate.* got \['speed'\]"):
        both.init(jax.random.key(0), speed=1.0)
