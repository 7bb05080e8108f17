"""Scores of people who were left out of training, one at a time."""

import json

import numpy as np
import pytest
import toy
from hasty import hasty

import jaxanon as ja
from jaxanon.cli import leave_one_out as tables
from jaxanon.datasets.spec import take
from jaxanon.evaluation import intervals
from jaxanon.evaluation import left_out as module


@pytest.fixture(scope="module")
def data():
    """Returns five people with different numbers of windows."""
    whole = toy.data(per_subject=24, time=8)
    keep = np.ones(len(whole.train.windows), bool)
    keep[:6] = False
    return whole._replace(train=take(whole.train, keep))


def rows_of(right, genders, activities=(0, 1), windows=4):
    """Returns rows of people of whom so many windows are right, in both attributes."""
    rows = {}
    for person, (number, gender) in enumerate(zip(right, genders, strict=True)):
        truth = {"gender": np.full(windows, gender), "activity": np.arange(windows) % 2}
        wrong = np.arange(windows) >= number
        evidence = {
            name: {kind: np.eye(3 if name == "activity" else 2)[truth[name] ^ wrong]}
            for name, kind in (("activity", module.RAW), ("gender", module.SAFE))
        }
        rows[person] = {
            "windows": windows,
            "diverged": False,
            "truth": truth,
            "evidence": evidence,
        }
    return rows


def test_means_and_intervals_by_hand(data):
    names = ["activity", "gender"]
    rows = rows_of([4, 2, 3, 1], [0, 0, 1, 1])
    found = module._summary(data.spec, names, rows)
    scores = found["attributes"]["gender"]["scores"][module.SAFE]
    assert scores["mean"] == 0.625
    assert scores["std"] == pytest.approx(np.std([1, 0.5, 0.75, 0.25], ddof=1))
    assert scores["interval"] == intervals.student(0.625, [1, 0.5, 0.75, 0.25])
    # Recalls are 6/8 and 4/8; the jackknife is over persons.
    assert scores["balanced_accuracy"] == 0.625 and scores["not_measured"] is None
    low, high = scores["intervals"]["balanced_accuracy"]
    assert low < 0.625 < high
    assert found["attributes"]["gender"]["chance"] == 0.5
    assert [person["scores"]["gender"][module.SAFE] for person in found["persons"]] == [
        {"accuracy": value} for value in (1.0, 0.5, 0.75, 0.25)
    ]


def test_what_few_people_cannot_say(data, capsys):
    rows = rows_of([4, 2, 3], [0, 1, 1])
    rows[3] = {"windows": 4, "diverged": True, "truth": rows[0]["truth"]}
    found = module._summary(data.spec, ["activity", "gender"], rows)
    scores = found["attributes"]["gender"]["scores"][module.SAFE]
    assert scores["not_measured"] == "class 'f' has 1 test person (at least 2)"
    assert scores["balanced_accuracy"] is None and scores["intervals"] is None
    assert found["attributes"]["activity"]["scores"][module.RAW]["not_measured"] is None
    assert found["not_measured"] == {"diverged": ["3"]}
    tables.show(found | {"repeated_fraction": 0.05})
    shown = " ".join(capsys.readouterr().out.split())
    assert "training diverged without 3" in shown and "At most 5.0 % of" in shown
    assert "not measured, because class 'f' has 1 test person" in shown
    two = module._summary(data.spec, ["gender"], rows_of([4, 2], [0, 1]))
    assert two["attributes"]["gender"]["scores"][module.SAFE]["interval"] is None


def test_arguments_are_checked(data):
    run = ja.train(ja.methods.orf(data.spec), data, epochs=1, progress=False)
    with pytest.raises(ValueError, match=r"must be retrained attackers.*\['stream'\]"):
        module.leave_one_out(run, data, attackers=["stream"])
    with pytest.raises(ValueError, match="data must be"):
        module.leave_one_out(run, toy.data(time=16))


@pytest.mark.slow
def test_an_anonymizer_is_trained_and_tested_without_each(data, tmp_path):
    run = ja.train(ja.methods.orf(data.spec), data, epochs=1, progress=False)
    said = []
    with hasty():
        found = module.leave_one_out(
            run,
            data,
            attackers=["tree"],
            output_dir=tmp_path,
            progress=lambda done, total, what: said.append((done, total)),
        )
    assert json.loads((tmp_path / module.FILE).read_text()) == found
    assert found["programs"] == 1 and said == [(0, 2), (1, 2)]
    assert [person["subject"] for person in found["persons"]] == list("01234")
    assert [person["windows"] for person in found["persons"]] == [18, 24, 24, 24, 24]
    scores = found["attributes"]["activity"]["scores"]
    assert set(scores) == {module.RAW, module.SAFE}
    assert scores[module.RAW]["mean"] > 0.6  # Of three classes, after 50 steps.
    assert set(found["attributes"]["gender"]["scores"]) == {
        *(module.RAW, module.SAFE, "tree retrained")
    }


@pytest.mark.slow
def test_a_learner_predicts_who_was_left_out(data):
    method = ja.learners.build(
        "fedavg", data.spec, model="mlp", hidden_sizes=(8,), local_steps=4
    )
    run = ja.train(method, data, epochs=1, progress=False)
    found = module.leave_one_out(run, data)
    assert found["programs"] == 1 and found["repeated_fraction"] == 0
    assert set(found["attributes"]) == {"activity"}
    scores = found["attributes"]["activity"]["scores"][module.PREDICTED]
    assert 0 <= scores["mean"] <= 1 and len(scores["interval"]) == 2
    with pytest.raises(ValueError, match="attacks must be None for a learner"):
        module.leave_one_out(run, data, attackers=["tree"])
