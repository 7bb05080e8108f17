"""The comparison with PFDRL: its jobs, the arithmetic of its tables, a smoke run."""

import json
import subprocess
import sys

import numpy as np
import pytest

from jaxanon import energy


@pytest.fixture
def runs(bench):
    return bench("_pfdrl_runs")


@pytest.fixture
def tables(bench):
    return bench("_pfdrl_tables")


def made(question="methods", name="PFDRL", saved=0.9, **more):
    row = {"question": question, "place": "A", "name": name, "x": None, "seed": 0}
    row |= {"saved": saved, "switched_off": 0.001, "dimmed": 0.0, "optimal": 0.99}
    row |= {"mase": 0.5, "mase_median": 0.7, "mae": 2.0, "rmse": 4.0}
    row |= {"accuracy": 0.9, "days": 4}
    row |= {"by_hour": [1.0] * 24, "fixed_cents": 12.0, "variable_cents": 9.0}
    return row | more


def test_settled_is_the_day_after_which_it_never_falls_again(runs):
    curve = lambda *each: [{"day": d, "saved": s} for d, s in each]
    assert runs.settled(curve((1, 0.95), (2, 1.0))) == 1  # 95 % of 1.
    assert runs.settled(curve((1, 0.96), (3, 0.5), (5, 0.8), (9, 0.8))) == 5
    assert runs.settled(curve((1, 0.0), (7, 0.0))) == 1


def test_shares_and_errors_by_hand(runs):
    one = lambda x: np.full((1, 1), x)
    tested = {
        "saved_wh": one(9.0), "standby_wh": one(10.0), "switched_off": one(1.0),
        "dimmed": one(0.0), "in_use": one(50.0), "optimal": one(58.0),
        "minutes": one(60.0), "forecast_accuracy": one(45.0),
        "forecast_error": one(30.0), "forecast_square": one(240.0),
        "held_error": one(60.0), "held_accuracy": one(30.0), "held_square": one(960.0),
    }  # fmt: skip
    found = runs.shares(tested)
    assert found == {
        "saved": 0.9, "switched_off": 0.02, "dimmed": 0.0, "optimal": 58 / 60
    }  # fmt: skip
    assert runs.forecasts(tested) == {
        "accuracy": 0.75, "mae": 0.5, "rmse": 2.0, "mase": 0.5, "mase_median": 0.5
    }  # fmt: skip
    # Two devices, of which the second errs as much as holding does.
    both = {name: np.concatenate([x, x], axis=1) for name, x in tested.items()}
    both["forecast_error"] = np.array([[30.0, 60.0]])
    assert runs.forecasts(both)["mase_median"] == runs.forecasts(both)["mase"] == 0.75
    held = runs.forecasts(tested, "held")
    assert held["mase"] == 1 and held["rmse"] == 4 and held["accuracy"] == 0.5


def test_tables_average_seeds_and_keep_the_order_of_the_chapter(tables):
    rows = [made(saved=0.9), made(saved=1.0, seed=1, days=9), made(name="Local")]
    first, second = tables.control_table(rows).splitlines()[2:]
    assert first.startswith(
        "| A | Local | 1 | 90.00 | ± 0.00 | 0.10 | 0.00 | 99.00 | 4"
    )
    assert second.startswith("| A | PFDRL | 2 | 95.00 | ± 7.07 |")
    assert "| 4–9 | 24.0 | 12.00 | 9.00 |" in second


def test_persistence_stands_below_the_forecasters(tables):
    held = {"mase": 1.0, "mase_median": 1.0, "mae": 4.0, "rmse": 8.0, "accuracy": 0.8}
    rows = [made("forecasts", name, held=held) for name in ("LSTM", "LR")]
    lines = tables.forecast_table(rows).splitlines()[2:]
    assert [line.split(" | ")[1] for line in lines] == ["LR", "LSTM", "persistence"]
    assert lines[-1] == "| A | persistence | 1 | 1.000 | 1.000 | 4.00 | 8.00 | 80.0 |"


def test_numbers_stand_in_order_and_budgets_beside_them(tables):
    more = {"epsilon_device": 4.28, "epsilon_home": 15.1}
    rows = [made("privacy", "z = 10", x=10.0, **more)]
    rows += [made("privacy", "none", x=0.0, epsilon_device=None, epsilon_home=None)]
    first, second = tables.privacy_table(rows).splitlines()[2:]
    assert first.startswith("| A | none | ∞ | ∞ | 90.00 |")
    assert second.startswith("| A | z = 10 | 4.28 | 15.1 | 90.00 |")


def test_new_homes_that_never_get_there_are_told(tables):
    reached = {"days": [3, 5], "final": [0.9, 1.0], "by_day": [0.5]}
    alone = reached | {"days": [7, 0]}
    row = made("joining", newcomers=2, joined=reached, alone=alone)
    (line,) = tables.joining_table([row]).splitlines()[2:]
    assert line == "| A | PFDRL | 2 | 4 | 5 | never | 95.0 |"


def test_every_question_has_jobs_whose_settings_there_are(bench):
    work = bench("_pfdrl_jobs")
    init = {*energy.pfdrl.__globals__["HYPER"]}
    for question in work.QUESTIONS:
        for smoke in (True, False):
            jobs = work.jobs(question, smoke)
            assert len(jobs) >= 2 or question == "privacy"
            assert len({job.name for job in jobs}) == len(jobs)
            for job in jobs:
                assert isinstance(work.config(job, smoke), energy.PFDRLConfig)
                assert set(work.hyper(job, smoke)) <= init
    names = [job.name for job in work.jobs("methods", False)]
    assert names == ["Local", "Cloud", "FL", "FRL", "PFDRL"]


def test_a_smoke_run_writes_tables_and_figures_and_goes_on(bench, tmp_path):
    bench("pfdrl")
    script = bench("pfdrl").__file__
    out = tmp_path / "out" / "pfdrl.json"
    call = [sys.executable, script, "--smoke", "--question", "gamma"]
    call += ["--folder", str(tmp_path / "runs"), "--json", str(out)]
    subprocess.run(call, check=True, capture_output=True)
    rows = json.loads(out.read_text())
    assert [row["x"] for row in rows] == [12, 24] and rows[0]["place"] == "simulated"
    assert 0 <= rows[0]["saved"] <= 1 and len(rows[0]["by_day"]) == 2
    assert out.with_name("pfdrl_gamma.png").stat().st_size > 5000
    assert "Q-networks, γ" in out.with_suffix(".md").read_text()
    assert "<img" in out.with_suffix(".html").read_text()
    # What is there is not done again.
    kept = sorted((tmp_path / "runs" / "gamma").glob("*.json"))
    row = json.loads(kept[0].read_text())
    kept[0].write_text(json.dumps(row | {"saved": 0.125}))
    subprocess.run(call, check=True, capture_output=True)
    assert 0.125 in [row["saved"] for row in json.loads(out.read_text())]
