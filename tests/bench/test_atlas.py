"""Tests of the comparison with Atlas: arithmetic of its tables, and a smoke run."""

import json
import sys

import numpy as np
import pytest

from jaxanon import metrics


@pytest.fixture
def atlas(bench):
    return bench("atlas.command")


@pytest.fixture
def tables(bench):
    return bench("atlas.tables")


def made(question="methods", name="FedAvg", value=0.5, **more):
    row = {"question": question, "application": "A", "stands_for": "B", "seed": 0}
    row |= {"tuned": 0.1}
    row |= {"metric": "accuracy", "published": None, "name": name, "value": value}
    row |= {
        "spread": 0.1,
        "clients": 3,
        "epsilon": None,
        "spent": None,
        "kind": "noisy",
    }
    return row | more


def test_rows_that_do_not_tell_what_was_tuned_are_marked(tables, bench):
    new, old = made(value=0.75), made(name="FedPer", value=0.5)
    del old["tuned"]
    text = bench("atlas.page").markdown([new, old])
    assert "75.0 ± 10.0 |" in text and "50.0 ± 10.0 * |" in text
    assert tables.OLDER in text
    assert tables.OLDER not in bench("atlas.page").markdown([new])
    # Means over seeds and differences with such a row are marked, too.
    again = made(name="FedPer", value=0.7, seed=1)
    for rows in ([new, old, again], [new, again, old]):
        assert "60.0 ± 10.0 * |" in tables.methods_table(rows)
    rows = [made(name="Atlas, no noise", value=0.9), new, old]
    assert "| +15.0 | +40.0 * |" in tables.margins_table(rows)
    over = tables.over_table([made("clients"), old | {"clients": 5}], "clients")
    assert "| A | FedAvg | 50.0 |  |" in over and "| A | FedPer |  | 50.0 * |" in over


def test_bytes_count_every_round_at_what_was_sent_then(tables):
    marks = [(2, 0.4, 10, 20), (5, 0.6, 1, 2)]
    curve = [
        {"round": r, "value": v, "bytes_up": up, "bytes_down": down}
        for r, v, up, down in marks
    ]
    average = made("traffic", curve=curve, value=0.6)
    # 2 rounds of 30 bytes, then 3 rounds of 3.
    assert tables.bytes_until(average, 2) == 60
    assert tables.bytes_until(average, 5) == 69
    short = [{"round": 5, "value": 0.7, "bytes_up": 5, "bytes_down": 5}]
    other = made("traffic", "FedPer", 0.7, curve=short)
    never = made("traffic", "Atlas", 0.1, curve=[short[0] | {"value": 0.1}])
    lines = tables.traffic_table([average, other, never]).splitlines()
    # 50 of 69 bytes in total, and the same until FedAvg's score.
    assert lines[3] == "| A | FedPer | 0.0 | 70.0 | 0.72 | 0.72 |"
    assert lines[4].endswith("| never |") and lines[2].endswith("| 1.00 | 1.00 |")


def test_what_fedavg_needs_ends_where_it_first_does_as_well(tables):
    mark = lambda r, v: {"round": r, "value": v, "bytes_up": 1, "bytes_down": 1}
    average = made("traffic", value=0.6, curve=[mark(1, 0.7), mark(4, 0.6)])
    other = made("traffic", "Atlas", 0.6, curve=[mark(2, 0.6), mark(4, 0.6)])
    lines = tables.traffic_table([average, other]).splitlines()
    # FedAvg reaches its final score after one round, Atlas after two.
    assert lines[2].endswith("| 1.00 | 1.00 |")
    assert lines[3].endswith("| 1.00 | 2.00 |")


def test_what_is_published_and_spent_stands_beside(tables):
    rows = [
        made(value=0.2, epsilon=2.0, spent=1.9, holds=True, published=94),
        made(seed=1, value=0.4, epsilon=2.0, spent=1.9, holds=True, published=94),
        made(name="Atlas, as claimed", epsilon=2.0, spent=2.0, holds=False),
    ]
    first, second = tables.methods_table(rows).splitlines()[2:]
    assert first == "| FedAvg | ε 1.90 | 30.0 ± 10.0 (chapter: 94) |"
    assert second.startswith("| Atlas, as claimed | ε 2.00: no guarantee | 50.0")
    numbers = [made(value=0.25, metric="r2", spread=0.5)]
    assert "| 0.250 ± 0.500 |" in tables.methods_table(numbers)


def test_what_all_had_at_the_first_budget_stands_in_the_curve(tables):
    rows = [made(name="Atlas", epsilon=2.0, value=0.6)]
    rows += [made("epsilon", "Atlas", 0.4, epsilon=1.0)]
    rows += [made(name="Atlas, no noise", value=0.9), made(name="Ditto")]
    asked = tables.asked(rows, "epsilon")
    assert tables.line(asked, "Atlas", "epsilon") == ([1.0, 2.0], [0.4, 0.6])
    assert [row["name"] for row in asked if row.get("reference")] == ["Atlas, no noise"]
    assert tables.asked(rows, "clients") == []


def test_newcomers_are_counted_one_by_one(tables):
    row = made("joining", joined=[0.5, 0.9, 0.4], alone=[0.5, 0.6, 0.5], value=0.6)
    last = tables.joining_table([row]).splitlines()[-1]
    assert last == "| A | FedAvg | 0 | 53.3 | 60.0 | 2 of 3 |"


def test_margins_are_differences_of_means_over_seeds(tables, bench):
    rows = [made(name="Atlas", value=0.5), made(name="Atlas", value=0.7, seed=1)]
    rows += [made(name="LDP-FL", value=0.2)]
    rows += [made(name="Atlas", value=0.3, metric="r2", application="C")]
    rows += [made(name="LDP-FL", value=0.4, metric="r2", application="C")]
    cells = lambda line: [cell.strip() for cell in line.strip("|").split("|")]
    head, _, *lines = map(cells, tables.margins_table(rows).splitlines())
    told = [[(of, x) for of, x in zip(head, line, strict=True) if x] for line in lines]
    assert told == [
        [("data", "A"), ("Atlas − LDP-FL", "+40.0")],
        [("data", "C"), ("Atlas − LDP-FL", "-0.100")],
    ]
    rows.append(made("joining", joined=[1], alone=[1]))
    _, *found = bench("atlas.page").sections(rows)
    assert found[1].title == tables.DIFFERENCES and len(found) == 3


def test_work_for_a_gpu_has_to_be_asked_for(bench):
    named = {
        each.name: each.only_named for each in bench("atlas.applications").APPLICATIONS
    }
    assert [name for name, only in named.items() if only] == ["Photographs"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*delta")
def test_smoke(atlas, tmp_path, monkeypatch, capsys):
    rows = tmp_path / "rows.json"
    words = [
        "atlas",
        "--smoke",
        "--json",
        str(rows),
        "--folder",
        str(tmp_path / "f"),
    ]
    words += ["--only", "localized;FedAvg;Atlas, no noise"]
    monkeypatch.setattr(sys, "argv", words)
    atlas.main()
    told = capsys.readouterr().out
    assert "## New clients (figure 3.12)" in told
    found = json.loads(rows.read_text())
    assert {row["question"] for row in found} == {
        *("methods", "joining", "traffic", "clients")
    }
    assert all(0 <= row["value"] <= 1 and row["seconds"] > 0 for row in found)
    for question in ("methods", "joining", "traffic", "clients"):
        assert (tmp_path / f"rows_{question}.png").stat().st_size > 5000
    assert "no worse off than alone" in (tmp_path / "rows.html").read_text()
    atlas.main()  # All answers are saved: nothing is trained again.
    again = capsys.readouterr().out
    assert "tuned" not in again and json.loads(rows.read_text()) == found
    elsewhere = ["--folder", str(tmp_path / "g"), "--learning-rates", str(rows)]
    elsewhere += ["--question", "methods", "--only", "localized"]
    monkeypatch.setattr(sys, "argv", [*words, *elsewhere])
    atlas.main()
    taken = capsys.readouterr().out
    assert "methods: localized (" in taken and "localized tuned" not in taken


def test_only_applications_that_a_question_was_asked_of_are_in_its_answer(tables):
    """Atlas at ε = 2 is in the first table of both applications, the curve in one."""
    first = [made(name="Atlas", epsilon=2.0, application=name) for name in "AB"]
    rows = [*first, made("epsilon", "Atlas", epsilon=1.0)]
    found = tables.asked(rows, "epsilon")
    assert [(row["application"], row["epsilon"]) for row in found] == [
        ("A", 1.0),
        ("A", 2.0),
    ]


def test_predictions_that_are_not_finite_are_told_from_other_refusals(
    atlas, monkeypatch
):
    """A diverging learning rate is skipped, but another error is raised."""
    own = object.__new__(atlas.Bench)

    def refused(message):
        def evaluate(run, data):
            raise ValueError(message)

        monkeypatch.setattr(atlas.federated, "evaluate", evaluate)

    with pytest.raises(ValueError, match="must be finite") as told:
        metrics.errors(np.zeros(2), np.array([np.nan, 0.0]))
    refused(str(told.value))
    with pytest.raises(FloatingPointError, match="what is predicted is not finite"):
        own.scores(None, None)
    refused("data.test must hold a window")
    with pytest.raises(ValueError, match="must hold a window"):
        own.scores(None, None)
