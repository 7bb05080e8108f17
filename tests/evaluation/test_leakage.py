"""Membership inference against generators with and without memorized windows."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import methods
from jaxanon.attacks import nearness, score_membership
from jaxanon.core.method import Generation, Method, Schedule
from jaxanon.core.run import Run
from jaxanon.datasets import by_client, spec
from jaxanon.evaluation import leakage
from jaxanon.evaluation.anonymizers import evaluate
from jaxanon.federated.engine.algorithm import State


def state_of(trained):
    return State(jnp.int32(0), {"trained": jnp.array(trained)}, {}, {})


def generator(data, memory, *, losses=True):
    """Returns a run that generates stored windows and scores distances to them."""
    memory = jnp.asarray(memory)

    def sample(key, state, classes, samples=None):
        rows = jax.random.randint(key, (len(classes["activity"]),), 0, len(memory))
        return memory[rows]

    def explain(key, state, windows, labels):
        assert set(labels) == {"activity", "side", "subject"}
        gaps = jnp.mean((windows[:, None] - memory[None]) ** 2, axis=(2, 3))
        nothing = windows.mean((1, 2))
        near = jnp.where(state.params["trained"], gaps.min(axis=1), nothing)
        return {"now": near, "later": 2 * near}

    method = Method(
        *("memory", {}, data.spec, None),
        lambda key: state_of(False),
        *(None, Schedule(None, None), lambda key, state, windows: windows),
        generate=Generation(sample, losses=explain if losses else None),
    )
    return Run(method, state_of(True), data.spec, None, [], {})


def found(run, data, raw_classifiers):
    report = evaluate(
        run, data, raw_classifiers=raw_classifiers, attacks=("tree", "membership")
    )
    json.dumps(report, allow_nan=False)
    rows = report["attacks"]["membership"]
    assert all(row["attribute"] == "training window" for row in rows)
    return {(row["attacker"], row["variant"]): row["figures"] for row in rows}


@pytest.fixture(autouse=True)
def fewer_are_made(monkeypatch):
    monkeypatch.setattr(leakage, "NUM_SAMPLES", 400)


@pytest.mark.slow
def test_a_generator_that_copies_is_caught_by_all_that_is_asked(cases, raw_classifiers):
    data = cases.data()
    told = found(generator(data, data.train.windows), data, raw_classifiers)
    assert list(told) == [
        ("nearest synthetic window", "of 400"),
        ("its losses", "later"),
        ("its losses", "now"),
        ("its losses", "all of these"),
        ("untrained", "all of these"),
    ]
    *trained, untrained = told.values()
    for figures in trained:
        assert figures["AUC"] > 0.95 and figures["from"] > 0.9
        assert figures["found at 0.1 %"] > 0.9
    assert 0.3 < untrained["AUC"] < 0.7


@pytest.mark.slow
def test_a_generator_that_never_saw_them_tells_nothing(cases, raw_classifiers):
    data = cases.data()
    others = cases.part(2, (0, 1, 2), 8).windows  # Like those, but distinct from them.
    told = found(generator(data, others), data, raw_classifiers)
    assert len(told) == 5
    for figures in told.values():
        assert figures["from"] < 0.5 < figures["to"] and figures["AUC"] < 0.65


@pytest.mark.slow
def test_windows_that_only_said_when_to_stop_are_no_members(cases, raw_classifiers):
    data = cases.data()
    held = np.arange(len(data.train.windows)) % 2 == 0
    run = generator(data, data.train.windows[~held])
    mixed = found(run, data, raw_classifiers)["its losses", "now"]
    learned = lambda clients: (
        clients.mask
        & ~np.isin(clients.windows[..., 0, 0], data.train.windows[held, 0, 0])
    )
    generate = run.method.generate._replace(learned=learned)
    knows = dataclasses.replace(run, method=run.method._replace(generate=generate))
    told = found(knows, data, raw_classifiers)["its losses", "now"]
    assert mixed["AUC"] < 0.85 and told["AUC"] > 0.95


@pytest.mark.slow
def test_of_other_generators_what_they_make_is_all_there_is(cases, raw_classifiers):
    data = cases.data()
    run = generator(data, data.train.windows, losses=False)
    assert list(found(run, data, raw_classifiers)) == [
        ("nearest synthetic window", "of 400")
    ]
    with pytest.raises(
        TypeError, match="memory cannot compute losses of windows; train priv"
    ):
        run.window_losses(jax.random.key(0), data.test.windows, data.test.labels)


def test_losses_of_many_windows_are_those_of_each(cases, monkeypatch):
    data = cases.data()
    run = generator(data, data.train.windows[:5])
    whole = run.window_losses(jax.random.key(0), *data.test)
    monkeypatch.setattr(
        "jaxanon.core.run.BATCH", 40
    )  # The last part of 96 is not full.
    parts = run.window_losses(jax.random.key(0), *data.test)
    assert whole["now"].shape == (96,)
    np.testing.assert_allclose(parts["later"], whole["later"], rtol=1e-5)
    none = data.test.windows[:0], data.test.labels
    with pytest.raises(ValueError, match="windows must have at least 1 row, got 0"):
        run.window_losses(jax.random.key(0), *none)


def test_what_is_refused(cases, raw_classifiers):
    data = cases.data()
    run = generator(data, data.train.windows)
    mute = dataclasses.replace(run, method=run.method._replace(generate=None))
    with pytest.raises(
        ValueError, match="needs a run that generates windows, got 'memor"
    ):
        evaluate(mute, data, raw_classifiers=raw_classifiers, attacks=("membership",))
    with pytest.raises(ValueError, match=r"at least 2 test windows of .*, got 0"):
        other = cases.strangers()
        own = dataclasses.replace(run, spec=other.spec)
        evaluate(own, other, attacks=("membership",))


HUB = {"widths": (8, 16), "heads": 2, "batch_size": 24, "num_train_timesteps": 50}
HASTY = {"learning_rate": 3e-3, "condition_dropout": 0.0, "ema_decay": 0.98}


@pytest.mark.slow
def test_a_diffusion_that_learned_a_handful_by_heart_is_caught(cases):
    """It memorizes 24 windows.

    72 unseen windows are not distinguishable from 72 others.
    """
    data = cases.data()
    rows = np.sort(np.random.default_rng(0).permutation(96)[:24])
    few = data.train._replace(
        windows=data.train.windows[rows],
        labels={name: x[rows] for name, x in data.train.labels.items()},
    )
    method = methods.privatehub(data.spec, **HUB)
    prepared = method.prepare(by_client(few))
    step = lambda state, _: (method.update(jax.random.key(1), state, prepared)[0], None)
    learn = jax.jit(lambda state: jax.lax.scan(step, state, length=300)[0])
    state = learn(jax.jit(method.init)(jax.random.key(0), **HASTY))
    run = Run(method, state, data.spec, None, [], {})
    explain = lambda part: sum(run.window_losses(jax.random.key(2), *part).values())
    told, unseen = explain(data.train), explain(data.test)
    seen, others = told[rows], np.delete(told, rows)
    assert score_membership(-seen, -unseen).auc > 0.9
    told = score_membership(-others, -unseen)
    assert told.interval[0] < 0.5 < told.interval[1]
    made = run.sample(jax.random.key(3), {"activity": np.repeat([0, 1], 200)})
    standard = lambda windows: spec.standardise(data.spec, windows)
    near = lambda part: nearness(standard(part.windows), standard(made))
    assert score_membership(near(few), near(data.test)).auc > 0.7
