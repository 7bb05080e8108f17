"""Contract of every anonymizer and learner, with the smallest settings of each."""

import dataclasses
import functools
import pickle

import chex
import jax
import numpy as np
import pytest
import smallest
import toy

from jaxanon import datasets
from jaxanon.core import registry
from jaxanon.core.method import Method, Prediction, Schedule

SETTINGS = smallest.ANONYMIZERS | smallest.LEARNERS
NAMES = (*registry.names("anonymizer"), *registry.names("learner"))
FAST = ("cae", "fedavg", "orf")  # These compile instantly.
EACH = pytest.mark.parametrize("name", NAMES)
RUNNING = pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in FAST else pytest.mark.slow) for n in NAMES],
)


def _data():
    """Returns the toy data with a fourth class, split from the third."""
    data = toy.data(per_subject=12, time=32)
    names = data.spec.classes | {"activity": ("a", "b", "c", "d")}

    def part(windows):
        activity = windows.labels["activity"].copy()
        activity[np.flatnonzero(activity == 2)[::2]] = 3
        return windows._replace(labels=windows.labels | {"activity": activity})

    spec = dataclasses.replace(data.spec, classes=names)
    return data._replace(spec=spec, train=part(data.train), test=part(data.test))


DATA = _data()


@functools.cache
def built(name):
    """Returns the method, and the output of ``prepare`` for the toy data."""
    method = registry.build(name, DATA.spec, **SETTINGS[name])
    return method, method.prepare(datasets.by_client(DATA.train))


def described(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)


def test_all_are_here():
    assert sorted(SETTINGS) == sorted(NAMES)
    kinds = {kind: len(registry.names(kind)) for kind in ("anonymizer", "learner")}
    assert kinds == {"anonymizer": 25, "learner": 18}


@EACH
def test_core_and_capabilities(name):
    method, data = built(name)
    assert isinstance(method, Method) and method.name == name
    assert type(method.config) is registry.entry(name).config
    assert method.spec == DATA.spec
    assert all(map(callable, (method.prepare, method.init, method.update)))
    assert isinstance(method.schedule, Schedule)
    assert method.schedule.rounds_per_epoch(data) >= 1
    assert method.schedule.work_per_round(data) >= 1
    learns = registry.entry(name).kind == "learner"
    assert (method.predict is not None) == learns
    assert (method.anonymize is None) == learns
    assert not learns or isinstance(method.predict, Prediction)
    names = {*method.adjustable.hyper}
    state = jax.eval_shape(method.init, jax.random.key(0))
    assert state.round.shape == () and state.round.dtype == np.int32
    assert names <= set(state.hyper)


@EACH
def test_a_pickled_method_is_built_again(name):
    method, _ = built(name)
    again = pickle.loads(pickle.dumps(method))
    assert (again.name, again.spec, again.config) == (name, method.spec, method.config)
    mine, other = (jax.eval_shape(m.init, jax.random.key(0)) for m in (method, again))
    assert described(mine) == described(other)
    has = [[field is None for field in m] for m in (method, again)]
    assert has[0] == has[1]


@RUNNING
def test_rounds_keep_the_state_s_form_and_go_on_from_a_stored_one(name):
    method, data = built(name)
    key = jax.random.key(1)
    state, update = jax.jit(method.init)(jax.random.key(0)), jax.jit(method.update)
    first, _ = update(key, state, data)
    assert described(first) == described(state)
    straight, info = update(key, first, data)
    assert int(straight.round) == 2
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(info))
    # A checkpoint stores only numbers, which another process restores.
    leaves, form = jax.tree.flatten(first)
    stored = jax.tree.unflatten(form, [np.array(leaf) for leaf in leaves])
    resumed, _ = update(key, stored, data)
    chex.assert_trees_all_equal(straight, resumed)
    changed = [
        not np.array_equal(one, other)
        for one, other in zip(
            jax.tree.leaves(state.params), jax.tree.leaves(straight.params), strict=True
        )
    ]
    # These share no learned layers: sums, personal models, masks over fixed weights.
    assert name in ("orf", "localized", "fedmask") or any(changed)


@RUNNING
def test_anonymize_keeps_shape_and_type_and_learners_predict(name):
    method, data = built(name)
    windows, key = DATA.test.windows[:3], jax.random.key(2)
    state = jax.jit(method.init)(jax.random.key(0))
    if method.anonymize is None:
        layers = method.predict.model(key, state, data, 0)
        told = method.predict.network.apply(layers, windows)
        assert told.shape == (3, 4) and np.isfinite(told).all()
        return
    safe = jax.jit(method.anonymize)(key, state, windows)
    assert safe.shape == windows.shape and safe.dtype == np.float32
    assert np.isfinite(safe).all()
