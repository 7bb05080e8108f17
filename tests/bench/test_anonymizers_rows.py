"""Rows of the table of anonymizers: what they keep, and what they are compared with."""

import json
import math
import types

import pytest

from jaxanon.evaluation.summary import aggregate


def scored(accuracy, balanced, chance=0.5):
    return {
        "accuracy": accuracy,
        "balanced_accuracy": balanced,
        "macro_f1": balanced,
        "chance": chance,
        "majority": 0.75,
    }


def reported(attackers, senders):
    """A report on rooms, as far as a row reads it."""
    both = dict.fromkeys(("raw", "anonymized"), scored(0.875, 0.8125))
    attackers = {name: scored(*pair) for name, pair in attackers.items()}
    senders = {name: scored(*pair, 0.125) for name, pair in senders.items()}
    return {
        "utility": both,
        "intrusive": {"gender": both},
        "reidentification": {"gender": {"attackers": attackers}},
        "linkage": {"unseen_subjects": True, "attackers": senders} if senders else None,
        "distortion": {"warping": {"mean": 2.0}},
        "mutual_information": {"gender": {"anonymized": 0.25}},
        "attacks": {},
    }


@pytest.fixture
def row(bench):
    """``(reports, further)`` as a row of rooms."""

    def make(reports, *further, case="rooms", system="ORF"):
        spec = types.SimpleNamespace(public="activity", private=("gender",))
        part = types.SimpleNamespace(windows=[0])
        data = types.SimpleNamespace(spec=spec, train=part, test=part)
        stages = ("seeds", "attackers", "attacks")
        kept = [aggregate(reports), *further]
        kept = {
            stage: {"report": one, "seconds": {}, "seeds": list(range(len(reports)))}
            for stage, one in zip(stages, kept, strict=False)
        }
        entries = bench("anonymizers.entries")
        case = entries.CASES[0]._replace(name=case)
        make = bench("anonymizers.rows").row
        return make(case, entries.ENTRIES[system], "", data, kept, {"epochs": 1})

    return make


def test_a_row_keeps_accuracies_of_retrained_attackers(row):
    first = reported({"mlp": (0.5, 0.25), "tree": (0.75, 0.5)}, {})
    second = reported({"mlp": (0.75, 0.25), "tree": (0.75, 1.0)}, {})
    further = reported({"mlp": (0.0, 0.0), "svm": (0.625, 0.125)}, {})
    found = row([first, second], further)
    deviation = 100 * math.sqrt(2 * 0.125**2)
    assert found["retrained_accuracy"] == {
        "mlp": pytest.approx([62.5, deviation]),  # Of both seeds, not of the further.
        "tree": [75.0, 0.0],
        "svm": [62.5, None],
    }
    assert found["retrained_balanced"]["svm"] == [12.5, None]
    assert found["worst"] == "tree"


def test_a_row_keeps_by_whom_senders_are_told(row):
    # By balanced accuracy, whatever the plain one is.
    senders = {"mlp": (0.875, 0.25), "forest": (0.5, 0.375)}
    assert row([reported({}, senders)])["linkage"] == {
        "unseen_subjects": True,
        "attacker": "forest",
        "accuracy": [50.0, None],
        "balanced_accuracy": [37.5, None],
        "chance": [12.5, None],
    }
    assert row([reported({}, {})])["linkage"] is None


def test_chance_and_majority_stand_beside_private_figures(bench, row):
    module = bench("anonymizers.rows")
    found = row([reported({"mlp": (0.5, 0.5)}, {"mlp": (0.5, 0.5)})])
    named = dict(zip(module.HEADER, module.cells(found), strict=True))
    assert named["private, balanced"] == "81.2"
    assert named["chance / majority"] == "50.0 / 75.0"
    # Of people never seen in training there are no judges.
    del found["chance"], found["majority"]
    named = dict(zip(module.HEADER, module.cells(found), strict=True))
    assert named["chance / majority"] == ""
    case = bench("anonymizers.page").sections([found])[2]
    assert "who sent it</td>" in case.html()


def test_rows_of_before_are_compared_with_what_is_published_now(bench, row, tmp_path):
    module = bench("anonymizers.rows")
    found = row([reported({}, {})], case="MotionSense", system="AAE")
    assert found["published"]["reidentified"] == 93.7
    # Of two papers, each beside what it says.
    assert found["published"]["source"].startswith("Yang and Ardakanian 2023")
    again = found["published"]["reidentified_source"]
    assert again == "Hajihassani et al. 2021, section 6.3.2"
    assert module.cells(found)[-2:] == ("92.8 / 78.2 (93.7)", "worse")
    assert found["reason"].startswith("Activity 87.50 is 3.34 short of 90.84. Private")
    old = found | {"published": None, "verdict": "better", "reason": "forgotten"}
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([old]))
    assert module.together(path, [], []) == [found]
    # Nothing is published of it, and yet there is something to know.
    found = row([reported({}, {})], case="MotionSense", system="MSDA")
    assert "published" not in found and found["reason"].startswith("Trained for 1 ")


def test_what_differs_is_said_with_by_how_much(bench):
    published = bench("anonymizers.published")
    told = published.Published(90.0, 60.0, "a paper", reason="Of {epochs}.", epochs=9)
    said = lambda *figures, **more: published.differs(
        told._replace(**more), *figures, epochs=3
    )
    trained = "Trained for 3 epochs, the released program for 9. Of 3."
    assert said(90, 60) == ""
    assert said(90, 40) == "" and said(99, 60) == trained
    assert said(87.5, 60) == f"Activity 87.50 is 0.50 short of 88. {trained}"
    assert said(90, 65.5) == f"Private 65.50 is 0.50 over 65. {trained}"
    assert said(90, 30) == f"Private 30.00 is 25.00 under 55. {trained}"
    # What is hidden better than published is no reason to be worse.
    assert said(80, 50) == f"Activity 80.00 is 8.00 short of 88. {trained}"
    assert said(90, 10, inverted=True) == trained
    assert said(90, 54, hides=False) == f"Private 54.00 is 1.00 under 55. {trained}"
    assert said(0, 65, activity=None) == ""
    assert said(90, 66, epochs=3) == "Private 66.00 is 1.00 over 65. Of 3."
    assert published.verdict(told._replace(private=None), 0, 0) == ""
