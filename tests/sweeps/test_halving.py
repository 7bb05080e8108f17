"""Successive halving: which members stop, when, and why."""

import json

import chex
import jax.numpy as jnp
import known
import numpy as np
import pytest
import toy
from one_by_one import one_by_one

from jaxanon.evaluation import anonymizers
from jaxanon.sweeps import halving, program, scheduler
from jaxanon.sweeps.halving import DIVERGED, Score
from jaxanon.sweeps.runner import sweep
from jaxanon.sweeps.summary import table

IDLE = 1.0  # At this goal, windows are unchanged.
# Goals without the gender information, and without the activity information.
CLEAN, WRONG = 2.0, 3.0


@pytest.fixture(scope="module")
def data():
    return toy.data()


def front(spec, **settings):
    """A method with a known Pareto front: its goal determines what windows reveal.

    Gender is their amplitude, activity their frequency (the order of the samples).
    """

    def anonymize(key, state, windows):
        middle = jnp.mean(windows, 1, keepdims=True)
        spread = jnp.maximum(jnp.std(windows, 1, keepdims=True), 1e-6)
        clean = (windows - middle) / spread + 10.0
        goal = state.hyper["goal"]
        wrong = jnp.sort(windows, 1)
        rest = jnp.where(goal == WRONG, wrong, windows)
        return jnp.where(goal == CLEAN, clean, rest)

    return known.build(spec, **settings)._replace(anonymize=anonymize)


def quick(method, data, **options):
    return sweep(method, data, **{"epochs": 4, "progress": False, **options})


def test_held_out_windows_are_training_s_and_of_everybody(data):
    held = halving.hold_out(data)
    rows = {row.tobytes() for row in data.train.windows}
    sides = [{row.tobytes() for row in part.windows} for part in held[1:]]
    assert sides[0] | sides[1] <= rows and not sides[0] & sides[1]
    assert not (sides[0] | sides[1]) & {row.tobytes() for row in data.test.windows}
    assert set(held.test.labels["subject"]) == set(data.train.labels["subject"])
    # 30 % of every class of every person, rounded: at most half a window off.
    groups = len({*zip(*data.train.labels.values(), strict=True)})
    share = 0.3 * len(data.train.windows)
    assert abs(len(held.test.windows) - share) <= groups / 2


def test_many_windows_are_thinned(data, monkeypatch):
    monkeypatch.setattr(halving, "MAX_WINDOWS", 7)
    held = halving.hold_out(data)
    assert len(held.train.windows) == len(held.test.windows) == 7


@pytest.mark.slow
def test_a_setting_that_another_beats_in_both_is_stopped(data):
    grid = {"goal": [IDLE, CLEAN, WRONG]}
    found = quick(front, data, grid=grid, num_seeds=2, halving_factor=2)
    # One of 3 settings may stop after 2 of 4 epochs, and the wrong one is dominated.
    assert [one.stopped for one in found.members] == [None] * 4 + [2] * 2
    assert [int(run.state.round) for run in found.runs] == [12] * 4 + [6] * 2
    assert [len(run.history) for run in found.runs] == [4] * 4 + [2] * 2
    assert found.runs[4].unfinished == {"done": 2.0, "asked": 4}
    whole = quick(front, data, grid={"goal": [IDLE, CLEAN]}, num_seeds=2)
    for one, other in zip(found.runs, whole.runs, strict=False):
        chex.assert_trees_all_close(one.state, other.state, rtol=1e-6)
    assert [row["stopped"] for row in found.summary] == [None, None, 2]
    shown = table(found.summary).columns
    assert [column.header for column in shown] == ["goal", "loss", "stopped"]
    assert list(shown[-1].cells) == ["-", "-", "epoch 2"]


@pytest.mark.slow
def test_what_is_kept_and_leaked_is_what_windows_tell(data):
    held = halving.hold_out(data)
    raw_classifiers = halving.train_classifiers(held)
    grid = {"goal": [IDLE, CLEAN, WRONG]}
    runs = quick(front, data, grid=grid, epochs=1).runs
    idle, clean, wrong = (
        halving.score_member(run, held, raw_classifiers, 0) for run in runs
    )
    assert idle.utility > 0.9 and idle.leaked[0] > 0.9
    assert clean.leaked[0] < 0.7 and clean.utility > wrong.utility + 0.2
    assert wrong.leaked[0] > 0.9
    assert halving.beats(clean, wrong) and not halving.beats(idle, clean)
    lost = quick(front, data, grid={"goal": [1e30]}, epochs=1).runs[0]
    assert halving.score_member(lost, held, raw_classifiers, 0) is None


def test_a_killed_sweep_decides_as_it_did(data, tmp_path, monkeypatch):
    calls, real = [], program.run_members

    def killed(shared, seeds, states, *, first, last, show_row):
        calls.append((first, last, len(seeds)))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(shared, seeds, states, first=first, last=last, show_row=show_row)

    monkeypatch.setattr(program, "run_members", killed)
    options = {
        "grid": {"goal": [CLEAN, WRONG]},
        "halving_factor": 2,
        "output_dir": tmp_path / "kept",
    }
    with pytest.raises(KeyboardInterrupt):
        quick(front, data, **options)
    (rung,) = json.loads((options["output_dir"] / "sweep.json").read_text())["rungs"]
    assert rung["epoch"] == 2
    assert [row["stopped"] for row in rung["settings"]] == [False, True]
    assert rung["settings"][1]["settings"] == {"goal": WRONG}
    # It continues without another comparison, and evaluates the remaining members.
    monkeypatch.setattr(scheduler, "_compare", None)
    monkeypatch.setattr(anonymizers, "train_raw_classifiers", lambda data: None)
    kept = {"attribute": "activity", "anonymized": {"accuracy": 0.5}}
    report = {"utility": kept, "intrusive": {}, "reidentification": {}}
    fake = one_by_one(lambda *_, **__: report)
    monkeypatch.setattr(anonymizers, "evaluate_each", fake)
    found = quick(front, data, resume=True, evaluate=True, **options)
    assert calls == [(0, 6, 2), (6, 12, 1), (6, 12, 1)]
    assert [one.stopped for one in found.members] == [None, 2]
    assert found.reports == (report, None)
    assert [row["diverged"] for row in found.summary] == [0, 0]
    shown = [list(column.cells) for column in table(found.summary).columns]
    assert shown[1:] == [["50.0", "-"], ["-", "epoch 2"]]
    assert int(found.runs[1].state.round) == 6
    told = json.loads((options["output_dir"] / "sweep.json").read_text())
    assert told["rungs"] == [rung] and told["members"][1]["stopped"] == 2
    with pytest.raises(ValueError, match="another sweep: halving was 2 there and is 3"):
        quick(front, data, resume=True, **options | {"halving_factor": 3})


def points(*pairs):
    return {i: Score(kept, (leaked,)) for i, (kept, leaked) in enumerate(pairs)}


def test_no_setting_of_the_front_is_stopped_and_no_more_than_may_be():
    # Each preserves and leaks more than the previous one: all are on the front.
    line = points((0.1, 0.1), (0.5, 0.5), (0.9, 0.9))
    assert halving.settings_to_stop(line, 10) == []
    # Equal in one of the two is not dominated.
    assert halving.settings_to_stop(points((0.9, 0.5), (0.9, 0.6), (0.8, 0.5)), 3) == []
    chain = points((0.9, 0.1), (0.8, 0.2), (0.7, 0.3), (0.6, 0.4), (0.5, 0.5))
    # A third of 5 settings, rounded up, is 2, so the 3 most dominated ones stop.
    assert sorted(halving.settings_to_stop(chain, 3)) == [2, 3, 4]
    assert sorted(halving.settings_to_stop(chain, 2)) == [3, 4]


def test_a_setting_is_beaten_in_every_private_attribute():
    better = Score(0.9, (0.2, 0.5))
    assert halving.beats(better, Score(0.8, (0.3, 0.6)))
    assert not halving.beats(better, Score(0.8, (0.3, 0.4)))


def test_who_diverged_is_beaten_by_all_others():
    assert halving.mean_score([None, None]) == DIVERGED
    scores = points((0.1, 1.0), (0.2, 0.9)) | {2: DIVERGED, 3: DIVERGED}
    assert sorted(halving.settings_to_stop(scores, 2)) == [2, 3]
    assert halving.settings_to_stop({0: DIVERGED, 1: DIVERGED}, 2) == []


def test_settings_are_compared_when_their_last_phase_has_begun():
    # 27 / 9 = 3 and 27 / 3 = 9; 8 settings leave nothing for a third.
    assert halving.rungs(27, 3, 9) == [3, 9]
    assert halving.rungs(27, 3, 8) == [9]
    assert halving.rungs(27, 3, 9, min_epochs=4) == [9]
    assert halving.rungs(27, 3, 9, min_epochs=28) == []
    assert halving.rungs(5, 2, 100) == [2, 3]  # 5/4 and 5/2, rounded up.
    assert halving.rungs(1, 2, 100) == []


@pytest.mark.slow
def test_members_that_learned_nothing_are_told_of_and_cost_the_others_nothing(data):
    asked = []

    def check_history(history, *, ended):
        asked.append((history[-1]["epoch"], ended))
        if ended:
            raise ValueError("nothing was learned.")

    method = front(data.spec)
    schedule = method.schedule._replace(check_history=check_history)
    method = method._replace(schedule=schedule)
    with pytest.warns(UserWarning, match="nothing was learned") as told:
        found = quick(
            method, data, grid={"goal": [IDLE, CLEAN, WRONG]}, halving_factor=3
        )
    ends = [i for i, run in enumerate(found.runs) if run.history[-1]["epoch"] == 4]
    said = [str(one.message) for one in told]
    assert said == [f"member {i}: nothing was learned." for i in ends]
    assert len(found.runs) == 3 > len(ends) > 0
    # A rung is not an end: stages that begin there still train.
    assert {ended for epoch, ended in asked if epoch < 4} == {False}
    assert {ended for epoch, ended in asked if epoch == 4} == {True}


def test_a_class_that_nobody_could_compare_is_refused_before_training(data, tmp_path):
    """A woman has two windows: the last is held out, and one remains for training."""
    gender = np.ones_like(data.train.labels["gender"])
    first = np.flatnonzero(data.train.labels["subject"] == 0)
    gender[first[[0, -1]]] = 0
    labels = data.train.labels | {"gender": gender}
    rare = data._replace(train=data.train._replace(labels=labels))
    method = front(data.spec)
    message = "gender class 0 has one training window, .* Or disable halving"
    with pytest.raises(ValueError, match=message):
        quick(
            method,
            rare,
            grid={"goal": [IDLE, CLEAN]},
            halving_factor=2,
            output_dir=tmp_path / "a",
        )
    assert not (tmp_path / "a").exists()
