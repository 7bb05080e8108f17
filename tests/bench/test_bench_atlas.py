"""The comparison with Atlas: who takes part, and the arithmetic of its tables."""

import dataclasses
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxanon as ja
from jaxanon import datasets, learners, metrics
from jaxanon.datasets import Data, Spec, Windows


@pytest.fixture
def atlas(bench):
    return bench("atlas")


@pytest.fixture
def tables(bench):
    return bench("_atlas_tables")


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
    text = bench("_atlas_page").markdown([new, old])
    assert "75.0 ± 10.0 |" in text and "50.0 ± 10.0 * |" in text
    assert tables.OLDER in text
    assert tables.OLDER not in bench("_atlas_page").markdown([new])
    # So are means over seeds, and differences, that such a row is part of.
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
    # 50 bytes of 69, all in all and to where FedAvg ends.
    assert lines[3] == "| A | FedPer | 0.0 | 70.0 | 0.72 | 0.72 |"
    assert lines[4].endswith("| never |") and lines[2].endswith("| 1.00 | 1.00 |")


def test_what_fedavg_needs_ends_where_it_first_does_as_well(tables):
    mark = lambda r, v: {"round": r, "value": v, "bytes_up": 1, "bytes_down": 1}
    average = made("traffic", value=0.6, curve=[mark(1, 0.7), mark(4, 0.6)])
    other = made("traffic", "Atlas", 0.6, curve=[mark(2, 0.6), mark(4, 0.6)])
    lines = tables.traffic_table([average, other]).splitlines()
    # After one round FedAvg is where it ends; Atlas took two.
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


def test_margins_are_differences_of_means_over_seeds(tables):
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
    found = list(tables.every([*rows, made("joining", joined=[1], alone=[1])]))
    assert found[1] == tables.DIFFERENCES and len(found) == 3


def test_what_diverged_goes_on_with_the_next_lower_step_size(atlas, bench):
    entry = bench("_applications").ENTRIES["DP-FedAvg"]
    assert (entry.tuned, entry.scale) == ("server_step_size", 0.1)
    one = atlas.Bench.__new__(atlas.Bench)
    one.application = bench("_applications").APPLICATIONS[0]
    grid = [0.002, 0.005, 0.01, 0.03, 0.1]
    np.testing.assert_allclose(one.step_sizes(entry), grid)
    assert one.lower(entry, 0.01) == pytest.approx(0.005)
    with pytest.raises(FloatingPointError, match="DP-FedAvg diverges at every"):
        one.lower(entry, 0.002)


def people(count):
    subject = np.repeat(np.arange(count), 4).astype(np.int32)
    x = np.arange(count * 4, dtype=np.float32)[:, None, None] * np.ones((1, 2, 1))
    act = np.tile([0, 0, 1, 1], count).astype(np.int32)
    windows = Windows(x.astype(np.float32), {"subject": subject, "act": act})
    names = {"act": ("sit", "walk"), "subject": tuple("abcdefgh"[:count])}
    spec = Spec(
        **{"name": "toy", "preset": "raw", "channels": ("x",), "units": ("g",)},
        **{"rate_hz": 1.0, "time": 2, "public": "act", "private": ("subject",)},
        **{"classes": names, "mean": (0.0,), "std": (1.0,), "split": "given"},
    )
    return Data(spec, windows, windows)


def test_some_people_are_a_data_set_of_their_own(bench):
    chosen = bench("_atlas_people").of_people(people(4), np.array([1, 3]))
    assert chosen.spec.classes["subject"] == ("b", "d")
    assert chosen.train.labels["subject"].tolist() == [0] * 4 + [1] * 4
    # Windows 4 to 7 and 12 to 15.
    assert chosen.spec.mean == (9.5,) and chosen.spec.std[0] ** 2 == 17.25
    some = bench("_atlas_people").some
    assert some(people(4), 9, 0).spec == people(4).spec
    assert len(some(people(4), 3, 0).spec.classes["subject"]) == 3


def test_step_sizes_are_chosen_on_the_last_of_every_class(bench):
    data = bench("_atlas_people").fifth_apart(people(2))
    assert data.train.windows[:, 0, 0].tolist() == [0, 2, 4, 6]
    assert data.test.windows[:, 0, 0].tolist() == [1, 3, 5, 7]


def test_step_sizes_of_noisy_methods_are_chosen_for_each_budget_and_number(
    atlas, bench, tmp_path
):
    """Steps of 0.3 diverge, so that longer ones are not tried."""
    applications = bench("_applications")
    own, calls = object.__new__(atlas.Bench), []
    own.application, own.smoke = applications.APPLICATIONS[0], False
    own.data, own.folder = people(5), tmp_path

    def train(entry, data, seed, step_size, more):
        everybody = len(np.unique(data.train.labels["subject"]))
        calls.append((entry.name, everybody, step_size, more))
        if step_size >= 0.3:
            raise FloatingPointError
        return step_size

    own.train, own.scores = train, lambda run, data: {"value": run}
    size = lambda name, *at: own.step_size(applications.ENTRIES[name], *at)
    assert size("Atlas, as claimed", 3, 0.5) == 0.1
    tried = [("Atlas", 3, each, {"epsilon": 0.5}) for each in (0.02, 0.05, 0.1, 0.3)]
    assert calls == tried
    assert size("Atlas", 3, 0.5) == 0.1 and len(calls) == 4  # It is known.
    assert size("Atlas") == size("FedAvg", 3, 0.5) == 0.1
    assert {(name, n, *more) for name, n, _, more in calls[4:]} == {
        *(("Atlas", 5), ("FedAvg", 5))
    }
    kept = {path.name for path in (tmp_path / "tuned").iterdir()}
    assert kept == {"Atlas-3-0.5.json", "Atlas.json", "FedAvg.json"}
    assert bench("_atlas_people").number_of_first(people(10)) == 7


def test_a_last_fit_is_steps_on_a_client_s_own_windows(bench):
    """Of a softmax regression from zeros: one step of its gradient, by hand."""
    data = people(2)
    linear = {"model": "mlp", "hidden": (), "batch": 8, "local_steps": 1}
    learner = learners.build("fedavg", data.spec, step_size=0.5, **linear)
    run = ja.train(learner, data, epochs=1, progress=False)
    zeros = jax.tree.map(jnp.zeros_like, run.state.params)
    run = dataclasses.replace(run, state=run.state._replace(params=zeros))
    prepared = learner.prepare(datasets.by_client(data.train))
    fitted = bench("_last_fit").fitted(run, 1, 0.1).method
    for client in range(2):
        layers = fitted.model(jax.random.key(0), run.state, prepared, client)
        x = np.asarray(prepared.rows["x"])[client].reshape(4, 2)
        off = 0.5 - np.eye(2)[[0, 0, 1, 1]]
        found = {leaf.shape: leaf for leaf in jax.tree.leaves(layers)}
        np.testing.assert_allclose(found[2, 2], -0.1 * x.T @ off / 4, rtol=1e-4)
        np.testing.assert_allclose(found[2,], -0.1 * off.mean(axis=0), atol=1e-7)


def test_work_for_a_gpu_has_to_be_asked_for(bench):
    named = {each.name: each.only_named for each in bench("_applications").APPLICATIONS}
    assert [name for name, only in named.items() if only] == ["Photographs"]


@pytest.mark.filterwarnings("ignore:.*delta")
def test_smoke(atlas, tmp_path, monkeypatch, capsys):
    rows = tmp_path / "rows.json"
    words = [
        "atlas.py",
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
    atlas.main()  # Everything is there: nothing is trained a second time.
    again = capsys.readouterr().out
    assert "tuned" not in again and json.loads(rows.read_text()) == found


def test_only_applications_that_a_question_was_asked_of_are_in_its_answer(tables):
    """Atlas at ε = 2 is in both applications' first tables, the curve in one."""
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
    """So that a step size which diverges is left out, and a mistake is not."""
    own = object.__new__(atlas.Bench)

    def refused(message):
        def evaluate(run, data):
            raise ValueError(message)

        monkeypatch.setattr(atlas.learned, "evaluate", evaluate)

    with pytest.raises(ValueError, match="must be finite") as told:
        metrics.errors(np.zeros(2), np.array([np.nan, 0.0]))
    refused(str(told.value))
    with pytest.raises(FloatingPointError, match="what is predicted is not finite"):
        own.scores(None, None)
    refused("data.test must hold a window")
    with pytest.raises(ValueError, match="must hold a window"):
        own.scores(None, None)
