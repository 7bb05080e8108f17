"""Training with one person left out at a time, as one program."""

import chex
import jax
import jax.numpy as jnp
import known
import numpy as np
import pytest
import toy

import jaxanon as ja
from jaxanon.core import registry
from jaxanon.datasets import held_out
from jaxanon.datasets.spec import standardise, take
from jaxanon.sweeps import folds as sweeps_folds
from jaxanon.sweeps import program


@pytest.fixture(scope="module")
def data():
    """Returns five people with different numbers of windows."""
    whole = toy.data(per_subject=12, time=8)
    keep = np.ones(len(whole.train.windows), bool)
    keep[:4] = False
    return whole._replace(train=take(whole.train, keep))


def averaging(spec, **settings):
    """Moves its goal by the mean of the pooled standardized training windows."""

    def prepare(clients):
        rows = standardise(spec, clients.windows[clients.mask])
        return jnp.asarray(rows.mean(axis=(1, 2)) + clients.labels["subject"].max())

    def update(key, state, data):
        return known.build(spec, **settings).update(key, state, data.mean())

    return known.build(spec, **settings)._replace(prepare=prepare, update=update)


@pytest.fixture
def registered(monkeypatch):
    """Returns a function that registers the builder of the method "toy"."""

    def register(build):
        rebuild = lambda name, spec, config, recipe: build(spec)
        monkeypatch.setattr(registry, "rebuild", rebuild)
        names = registry.names
        more = lambda kind: (*names(kind), *["toy"] * (kind == "anonymizer"))
        monkeypatch.setattr(registry, "names", more)

    return register


def test_a_fold_standardizes_by_its_own_training_side(data):
    everyone = held_out.both_sides(data)
    assert len(everyone.windows) == len(data.train.windows) + len(data.test.windows)
    fold = held_out.leave_out(data.spec, everyone, 1, 100)
    assert set(fold.test.labels["subject"].tolist()) == {1}
    assert set(fold.train.labels["subject"].tolist()) == {0, 2, 3, 4}
    assert len(fold.train.windows) == 100 and len(fold.test.windows) == 12
    # Every window of the others occurs, and repetitions do not count in statistics.
    unique = np.unique(fold.train.windows.reshape(100, -1), axis=0)
    others = everyone.windows[everyone.labels["subject"] != 1]
    assert len(unique) == len(others)
    rows = standardise(data.spec, unique.reshape(others.shape))
    np.testing.assert_allclose(rows.mean((0, 1)), 0, atol=1e-5)
    np.testing.assert_allclose(rows.std((0, 1)), 1, rtol=1e-5)
    own = everyone.windows[everyone.labels["subject"] == 1]
    expected = (own - others.mean((0, 1))) / others.std((0, 1))
    found = standardise(data.spec, fold.test.windows)
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("layout", program.LAYOUTS)
def test_folds_train_as_alone_in_one_program(layout, data, registered, monkeypatch):
    registered(averaging)
    monkeypatch.setattr(sweeps_folds, "MOST", 3)
    method = averaging(data.spec)
    folds = sweeps_folds.plan(method, data)
    assert folds.people == (0, 1, 2, 3, 4) and folds.per_epoch == 3
    assert folds.count == 48 and folds.repeated == pytest.approx(4 / 48)
    before = program.num_compiled()
    groups = sweeps_folds.groups(folds, layout)  # Side by side, it compiles for memory.
    assert groups == [(0, 1, 2), (3, 4, 4)]
    options = {"seed": 3, "epochs": 2, "hyper": {"rate": 0.25}, "layout": layout}
    trained = [one for g in groups for one in sweeps_folds.train(folds, g, **options)]
    assert program.num_compiled() == before + 1
    assert [one.person for one in trained] == [0, 1, 2, 3, 4]
    for one in trained[:2]:
        alone = ja.train(
            method,
            folds.fold(one.person),
            epochs=2,
            seed=3,
            hyper={"rate": 0.25},
            progress=False,
        )
        chex.assert_trees_all_close(one.state, alone.state, rtol=1e-5)
        assert [row["round"] for row in one.history] == [3, 6]


def test_what_one_program_cannot_train_is_refused(data, registered):
    method = averaging(data.spec)
    with pytest.raises(ValueError, match="must be registered .*'toy'; register it"):
        sweeps_folds.plan(method, data)

    def of_statistics(spec, **settings):
        plain = known.build(spec)
        shift = sum(spec.mean)
        update = lambda key, state, data: plain.update(key, state, data + shift)
        return plain._replace(update=update)

    registered(of_statistics)
    with pytest.raises(ValueError, match="depends on the mean .*--test-people"):
        sweeps_folds.plan(of_statistics(data.spec), data)
    registered(known.build)
    one = data.train.labels["subject"] == 0
    alone = data._replace(train=take(data.train, one), test=take(data.train, one))
    with pytest.raises(ValueError, match="at least 2 people, got 1"):
        sweeps_folds.plan(known.build(data.spec), alone)


def test_memory_limits_folds_that_train_side_by_side(data, registered, monkeypatch):
    registered(averaging)
    folds = sweeps_folds.plan(averaging(data.spec), data)
    assert len(sweeps_folds.groups(folds, "vmap")) == 1
    # A fold needs its 48 numbers and a state of 20 bytes.
    monkeypatch.setattr(sweeps_folds.memory, "free", lambda: 700)
    assert len(sweeps_folds.groups(folds, "vmap")) > 1
    assert len(sweeps_folds.groups(folds, "scan")) == 1
    assert jax.tree.leaves(folds.prepare(folds.fold(0)))[0].shape == (48,)
