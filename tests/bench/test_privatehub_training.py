"""Tests that training for PrivateHub's comparison continues saved runs."""

import argparse
import sys
from unittest import mock

import jax
import numpy as np
import pytest

from jaxanon import datasets, methods
from jaxanon.core.run import Run
from jaxanon.methods.common import alternating

pytestmark = pytest.mark.usefixtures("built_plainly")


@pytest.fixture
def runs(bench):
    return bench("privatehub.runs")


@pytest.fixture
def work(bench):
    return bench("privatehub.jobs")


@pytest.fixture
def place(bench):
    return bench("privatehub.places").simulated()


def test_what_was_trained_before_is_what_training_begins_with(runs, work, place):
    settings, _ = work.settings("privatehub", place, ("c",), True)
    method = methods.build("privatehub", place.data.spec, **settings)
    other = method.init(jax.random.key(5))
    begun = runs.beginning_with(method, other.params, 7)
    state = begun.init(jax.random.key(0), learning_rate=0.5)
    assert float(state.hyper["learning_rate"]) == 0.5 and int(state.round) == 7
    same = jax.tree.map(np.array_equal, state.params, other.params)
    assert all(jax.tree.leaves(same))


@pytest.fixture
def counted(runs, monkeypatch):
    """Replaces training: all weights become the number of rounds; records the start."""
    begun = []

    def fit(method, data, epochs, seed, folder=None):
        key = jax.random.key(seed)
        first = int(jax.jit(lambda key: method.init(key).round)(key))
        begun.append((folder.name, epochs, first))
        rounds = epochs * method.schedule.rounds_per_epoch(
            method.prepare(datasets.by_client(data.train))
        )
        more = rounds - first
        state = jax.eval_shape(method.init, key)  # Initializing networks is slow.
        params = jax.tree.map(lambda x: np.full(x.shape, rounds, x.dtype), state.params)
        state = state._replace(params=params, round=np.int32(rounds))
        config = {"settings": {"classes_to_hide": ["c"]}, "epochs": epochs}
        return Run(method, state, data.spec, None, [{"seconds": 1.0 * more}], config)

    monkeypatch.setattr(runs, "fit", fit)
    return begun


@pytest.mark.parametrize("name", ["PrivateHub", "TimeGAN"])
def test_pre_training_serves_all_choices_of_what_to_hide(
    bench, work, place, counted, tmp_path, name
):
    two = place._replace(choices={"c": ("c",), "d": ("d",)})
    answers = bench("privatehub.answers")
    for choice in two.choices:
        job = work.Job("methods", name, choice, name)
        run, told = answers.Asked(two, job, 0, True, tmp_path).run()
        assert told["hidden"] == [choice]
        # Both runs together have as many rounds as a single run.
        assert told["training_s"] == told["rounds"] == int(run.state.round)
    before, first, again, second = counted
    assert before == again and before[0].startswith(f"simulated-pre-training-{name}")
    assert before[2] == 0 < first[2] == second[2] and first[1] > before[1]
    assert first[0] != second[0]
    # Methods that hide from the start have no pre-training.
    job = work.Job("methods", "Conditional GAN", "c", "Conditional GAN")
    answers.Asked(two, job, 0, True, tmp_path).run()
    assert len(counted) == 5 and counted[-1][2] == 0


def test_other_settings_and_other_windows_are_told_apart(work, place, monkeypatch):
    digest = lambda where, hidden=("c",): work.digest(work.OURS, where, hidden, True)
    first = digest(place)
    assert first == digest(place) != digest(place, ("d",))
    train = place.data.train
    train = train._replace(windows=train.windows + 1)
    other = place._replace(data=place.data._replace(train=train))
    assert digest(other) != first
    with monkeypatch.context() as patched:  # Optimizer states do not affect answers.
        patched.setattr(alternating.optax, "flatten", lambda optimizer: optimizer)
        assert digest(place) == first
    monkeypatch.setitem(work.SMOKE_STEPS["privatehub"], "pretraining", 60)
    assert digest(place) != first
    assert work.digest(work.RAW, place, (), True) != first


def test_seeds_are_counted_from_the_first(bench, work, tmp_path, monkeypatch):
    module, asked = bench("privatehub.command"), []
    monkeypatch.setattr(module, "answer", lambda *given: asked.append(given[3]))
    call = ["privatehub.py", "--smoke", "--folder", str(tmp_path)]
    call += ["--question", "quality", "--first", "2", "--seeds", "3"]
    monkeypatch.setattr(sys, "argv", call)
    module.main()
    assert sorted(set(asked)) == [2, 3, 4] and len(asked) == 3 * len(work.METHODS)


def test_outdated_answers_go_and_figures_of_no_place_stay(bench, work, place):
    module, choice = bench("privatehub.command"), next(iter(place.choices))
    hidden = place.choices[choice]
    of = lambda digest: {"place": place.name, "choice": choice, "digest": digest}
    own = {"question": "methods", "method": work.OURS, "name": work.OURS}
    kept = of(work.digest(work.OURS, place, hidden, True)) | own
    elsewhere = kept | {"place": "not at hand"}
    speed = {"question": "speed", "name": "windows, rewriting", "value": 10.0}
    anew = kept | {"name": work.ANEW}  # Has the digest of the other way to rewrite.
    blind = kept | {"question": "missing", "name": "a and b"}  # Regenerated, too.
    rows = [kept, kept | {"digest": "of before"}, anew, blind, speed, elsewhere]
    args = argparse.Namespace(smoke=True, case=None)
    with mock.patch.object(module.places, "every", lambda *_: [place]):
        assert module.up_to_date(rows, args) == [kept, speed, elsewhere]


def test_what_is_trained_once_also_makes_all_anew(bench, runs, work, place, tmp_path):
    """With its own settings: a window preserves only its class."""
    settings, _ = work.settings("privatehub", place, ("c",), True)
    method = methods.build("privatehub", place.data.spec, **settings)
    run = Run(method, method.init(jax.random.key(0)), place.data.spec, None, [], {})
    answers = bench("privatehub.answers")
    jobs = {job.name: job for job in work.jobs("methods", place, True)}
    assert jobs[work.ANEW].method == work.OURS and len(jobs) == 1 + len(work.METHODS)
    used = []
    with (
        mock.patch.object(answers.Asked, "run", lambda self: (run, {})),
        mock.patch.object(runs, "rewritten", lambda run, *_: used.append(run)),
        mock.patch.object(answers.Asked, "concealed", lambda self, made: {}),
        mock.patch.object(runs, "retrained", lambda run, *_: used.append(run)),
        mock.patch.object(answers, "_streams", lambda *_: {}),
    ):
        asked = lambda name: answers.concealing(
            answers.Asked(place, jobs[name], 0, True, tmp_path)
        )
        assert "way" not in asked(work.OURS)
        assert asked(work.ANEW)["way"] == work.WAYS[work.ANEW]
    before, again, after, attacked = used
    assert before is again is run and after is attacked
    assert after.method.config.strength == 1 > run.method.config.strength
    # Settings in the state change, too; otherwise they would stay as trained.
    assert (
        float(after.state.hyper["guidance_scale"])
        == 6
        != run.method.config.guidance_scale
    )
    assert after.state.params is run.state.params
