"""The comparison with PFDRL: its jobs, the arithmetic of its tables, a smoke run."""

import functools
import json
import os
from unittest import mock

import jax
import numpy as np
import pytest

from jaxanon import energy


@pytest.fixture
def runs(bench):
    return bench("pfdrl.runs")


@pytest.fixture
def tables(bench):
    return bench("pfdrl.tables")


@pytest.fixture
def goals(bench):
    return bench("pfdrl.goals")


def mark(day, saved, off=0.0, optimal=1.0):
    return {"day": day, "saved": saved, "switched_off": off, "optimal": optimal}


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
    # By what is had in the end, of which the last mark may fall short: never.
    assert runs.settled(curve((1, 0.9), (2, 0.5)), last={"saved": 0.8}) == 0


def test_switching_everything_off_is_not_settled_with_care(runs):
    curve = [mark(1, 1.0, off=1.0, optimal=0.97), mark(3, 0.96, 0.02), mark(9, 1.0)]
    assert runs.settled(curve) == 1
    assert runs.settled(curve[:1] + curve[2:], careful=True) == 9
    assert runs.settled(curve, careful=True) == 9  # 2 % off is more than 0 and 1.
    curve[1]["switched_off"] = 0.01
    assert runs.settled(curve, careful=True) == 3
    curve[1]["optimal"] = 0.94
    assert runs.settled(curve, careful=True) == 9
    # A day without standby has nothing to save.
    assert runs.settled([mark(1, None), mark(2, 1.0)], careful=True) == 1


def test_shares_and_errors_by_hand(runs):
    one = lambda x: np.full((1, 1), x)
    tested = {
        "saved_wh": one(9.0), "standby_wh": one(10.0), "switched_off": one(1.0),
        "dimmed": one(0.0), "in_use": one(50.0), "optimal": one(58.0),
        "minutes": one(2.0), "load": np.array([[[4.0, 8.0]]]),
        "forecast": np.array([[[3.0, 8.0]]]), "held": np.array([[[4.0, 4.0]]]),
    }  # fmt: skip
    found = runs.shares(tested | {"minutes": one(60.0)})
    assert found == {
        "saved": 0.9, "switched_off": 0.02, "dimmed": 0.0, "optimal": 58 / 60
    }  # fmt: skip
    assert runs.forecasts(tested) == {
        "accuracy": 0.875, "mae": 0.5, "rmse": 0.5**0.5, "mase": 0.25,
        "mase_median": 0.25,
    }  # fmt: skip
    # Two devices, of which the second errs as much as holding does, and one not there.
    three = {name: np.concatenate([x] * 3, axis=1) for name, x in tested.items()}
    three["forecast"][0, 1] = [4.0, 4.0]
    three["minutes"][0, 2], three["forecast"][0, 2] = 0, 1e6
    assert (
        runs.forecasts(three)["mase_median"] == runs.forecasts(three)["mase"] == 0.625
    )
    held = runs.forecasts(tested, "held")
    assert held["mase"] == 1 and held["rmse"] == 8**0.5 and held["accuracy"] == 0.75


def test_accuracies_by_hour_and_how_many_reach_each(runs):
    # A day of a device of 10 W: right in its first hour, half too little in all others.
    load = np.full((24, 1, 60), 10.0)
    forecast = np.where(np.arange(24) == 0, 10.0, 5.0)[:, None, None] * np.ones(60)
    tested = {"minutes": np.full((24, 1), 60.0), "load": load, "forecast": forecast}
    found = runs.accuracies(tested)
    assert found["accuracy_by_hour"] == [1.0] + [0.5] * 23
    share = [0.0] * 10 + [round(23 / 24, 5)] * 10 + [1.0]
    assert found["accuracy_cdf"] == share


def test_tables_average_seeds_and_keep_the_order_of_the_chapter(tables):
    rows = [made(saved=0.9), made(saved=1.0, seed=1, days=9), made(name="Local")]
    first, second = tables.control_table(rows).splitlines()[2:]
    assert first.startswith("| A | Local | 1 | 90.00 |  | 0.10 | 0.00 | 99.00 | 4")
    assert second.startswith("| A | PFDRL | 2 | 95.00 | ± 7.07 |")
    assert "| 4–9 | not kept | 24.0 | 12.00 | 9.00 |" in second
    # Rows with a curve tell days with care, those on disk as well.
    curve = [mark(1, 1.0, off=1.0), mark(4, 1.0)]
    (line,) = tables.control_table([made(curve=curve, days=1)]).splitlines()[2:]
    assert "| 1 | 4 | 24.0 |" in line


def test_persistence_stands_below_the_forecasters(tables):
    held = {"mase": 1.0, "mase_median": 1.0, "mae": 4.0, "rmse": 8.0, "accuracy": 0.8}
    rows = [made("forecasts", name, held=held) for name in ("LSTM", "LR")]
    lines = tables.forecast_table(rows).splitlines()[2:]
    assert [line.split(" | ")[1] for line in lines] == ["LR", "LSTM", "persistence"]
    held = "| A | persistence | 1 | 1.000 | 1.000 | 4.00 | 8.00 | 80.0 |"
    assert lines[-1] == held and lines[0].endswith("| 90.0 |")
    # Step sizes stand there where one row tells of any.
    rows[1]["forecaster_learning_rate"] = 1e-3
    lr, lstm, last = tables.forecast_table(rows).splitlines()[2:]
    assert lr.endswith("| 90.0 | 0.001 |") and lstm.endswith("| 90.0 | not kept |")
    assert last == f"{held}  |"


def test_numbers_stand_in_order_and_budgets_beside_them(tables):
    more = {"epsilon_device": 4.28, "epsilon_home": 15.1}
    rows = [made("privacy", "z = 10", x=10.0, **more)]
    rows += [made("privacy", "none", x=0.0, epsilon_device=None, epsilon_home=None)]
    first, second = tables.privacy_table(rows).splitlines()[2:]
    assert first.startswith("| A | none | ∞ | ∞ | 90.00 |")
    assert second.startswith("| A | z = 10 | 4.28 | 15.1 | 90.00 |")


def test_graphs_tell_whom_devices_hear(tables):
    rows = [made("graphs", "ring", heard=1.5, hear_nobody=3, devices=8)]
    rows.append(made("graphs", "nobody", devices=8))
    ring, nobody = tables.graph_table(rows).splitlines()[2:]
    assert ring.endswith("| 9.00 | 1.5 | 3 | 8 |")
    assert nobody.endswith("| 9.00 | not kept | not kept | 8 |")


def test_new_homes_that_never_get_there_are_told(tables):
    reached = {"days": [3, 5], "final": [0.9, 1.0], "by_day": [0.5]}
    alone = reached | {"days": [7, 0]}
    row = made("joining", newcomers=2, joined=reached, alone=alone)
    (line,) = tables.joining_table([row]).splitlines()[2:]
    assert (
        line
        == "| A | PFDRL | 2 | 4 | 5 | not kept | not kept | never | not kept | 95.0 |"
    )
    # One that joins and never gets there makes the slowest "never", not a 0.
    curves = [[mark(1, 1.0, off=0.5), mark(2, 1.0)], [mark(1, 1.0), mark(2, 1.0)]]
    more = {"curves": curves, "last": [mark(0, 1.0), mark(0, 1.0)], "days": [0, 5]}
    row = made("joining", newcomers=2, joined=reached | more, alone=alone | more)
    (line,) = tables.joining_table([row]).splitlines()[2:]
    assert line == "| A | PFDRL | 2 | never | never | 1.5 | 2 | never | 1.5 | 95.0 |"


def test_what_must_be_reached_is_told_with_what_is(goals):
    curve = lambda day: [mark(1, 0.2), mark(day, 0.99)]
    rows = [made(saved=0.96, optimal=0.99, curve=curve(4))]
    rows += [made(saved=0.98, optimal=0.995, seed=1, curve=curve(6))]
    rows += [made(name="FRL", curve=curve(5)), made(name="Local", saved=0.98)]
    text = goals.table(rows)
    line = lambda begin: next(x for x in text.splitlines() if begin in x)
    assert line("standby energy").endswith("| >= 95 % | 97.00 ± 1.41 % | holds |")
    assert line("switched off").endswith("| <= 1 % | 0.10 ± 0.00 % | holds |")
    assert line("best action").endswith("| 99.25 ± 0.35 % | holds |")
    assert line("with care").endswith("| 5.0 ± 1.4; FRL 5.0 ± 0.0 | holds |")
    assert line("deviation").endswith("98.00 ± 0.00 % | holds |")  # 97 + 1.4 >= 98.
    assert line("LSTM").endswith("| not run |")
    assert line("30 days").endswith("| not run |")
    rows[0]["curve"] = curve(9)
    assert "does not hold" in goals.table(rows)
    errors = {"LR": 0.9, "SVM": 0.8, "BP": 0.6, "LSTM": 0.7}
    rows = [made("forecasts", name, mase=x) for name, x in errors.items()]
    assert "BP 0.600 ± 0.000 | does not hold |" in goals.table(rows)
    assert (
        "BP 0.600" in goals.table(rows) and goals.table(rows[1:]).count("not run") > 9
    )


def test_speed_is_held_against_what_is_asked(bench, goals):
    rows = [bench("pfdrl.speed").row("30 days", 601.0, "s", "<= 600", "all")]
    text = goals.table(rows)
    assert "| 30 days | <= 600 | 601 s (all) | does not hold |" in text
    assert "| over Stable-Baselines3 | >= 50 x |  | not run |" in text
    assert "30 days of a neighborhood" not in text


def test_figures_wait_for_rows_that_have_them(bench):
    page = bench("pfdrl.page")
    rows = [made("forecasts", "LR"), made("forecasts", "BP")]
    assert page.accuracy_cdf(rows) is None and page.accuracy_by_hour(rows) is None
    rows[0] |= {"accuracy_cdf": [0.0, 0.5, 1.0], "accuracy_by_hour": [0.5] * 24}
    drawn = page.accuracy_cdf(rows), page.accuracy_by_hour(rows), page.money(rows)
    assert all(each.png.startswith(b"\x89PNG") for each in drawn)


def test_every_job_starts(bench):
    work, streets = bench("pfdrl.jobs"), bench("pfdrl.homes")
    homes = streets.neighborhood(streets.place("simulated", 0, **streets.SMOKE))
    for question in work.QUESTIONS:
        for smoke in (True, False):
            jobs = work.jobs(question, smoke)
            assert len(jobs) >= 2
            assert len({job.name for job in jobs}) == len(jobs)
            for job in jobs:
                config, hyper = work.config(job, smoke), work.hyper(job, smoke)
                begin = functools.partial(energy.pfdrl(config).init, **hyper)
                jax.eval_shape(begin, jax.random.key(0), homes)
                layers = len((*config.hidden_sizes, "worths"))
                assert hyper.get("alpha", 6) <= layers
    names = [job.name for job in work.jobs("methods", False)]
    assert names == ["Local", "Cloud", "FL", "FRL", "PFDRL"]
    # All kinds of forecasters choose from the same step sizes.
    assert {job.rates for job in work.jobs("forecasts", False)} == {work.RATES}


def test_more_noise_is_a_smaller_epsilon_and_homes_have_more(bench, place):
    work, script = bench("pfdrl.jobs"), bench("pfdrl.command")
    none, *noisy = (
        script.budgets(work.config(job, True), place)
        for job in work.jobs("privacy", False)
    )
    assert none == {"epsilon_device": None, "epsilon_home": None}
    devices, homes = (
        [each[f"epsilon_{of}"] or np.inf for each in noisy] for of in ("device", "home")
    )
    assert devices == sorted(devices, reverse=True) and 0 < devices[-1] < 20
    assert homes[-1] > devices[-1]


@pytest.fixture
def one_core(monkeypatch):
    """Half the programs."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture
def place(bench):
    return bench("pfdrl.homes").place("simulated", 0, homes=2, days=2, test_days=1)


def test_learning_rates_are_chosen_without_held_out_days(bench, one_core, place):
    work, rates = bench("pfdrl.jobs"), bench("pfdrl.runs")
    job = work.jobs("forecasts", True)[0]
    config, hyper = work.config(job, True), work.hyper(job, True)
    found = rates.chosen(place, config, hyper, 0, (1e-9, 5e-3))
    by_rate = found["mase_by_rate"]
    assert found["forecaster_learning_rate"] == float(min(by_rate, key=by_rate.get))
    assert len(set(by_rate.values())) == 2
    # Other held-out days change nothing.
    other = place.power.copy()
    other[:, 2 * 1440 :] = 1000.0
    again = rates.chosen(place._replace(power=other), config, hyper, 0, (1e-9, 5e-3))
    assert again == found


def test_new_homes_are_kept_day_by_day(bench, one_core, place, tmp_path):
    work, script = bench("pfdrl.jobs"), bench("pfdrl.command")
    job = work.jobs("joining", True)[-1]
    script.answer(tmp_path, place, job, 0, True)
    (row,) = script.found_in(tmp_path)
    joined = row["joined"]
    assert row["newcomers"] == 1 and [len(c) for c in joined["curves"]] == [2]
    assert joined["curves"][0][1]["saved"] == pytest.approx(
        joined["by_day"][1], abs=1e-5
    )
    assert joined["last"][0]["saved"] == pytest.approx(joined["final"][0], abs=1e-6)
    assert row["heard"] == 1 and row["hear_nobody"] == 0
    assert "days of a new home" in bench("pfdrl.goals").table([row])


@pytest.mark.slow
def test_a_smoke_run_writes_tables_and_figures_and_goes_on(
    run_script, one_core, tmp_path
):
    out = tmp_path / "out" / "pfdrl.json"
    call = ["pfdrl", "--smoke", "--question", "gamma"]
    call += ["--folder", tmp_path / "runs", "--json", out]
    run_script(*call)
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
    run_script(*call)
    assert 0.125 in [row["saved"] for row in json.loads(out.read_text())]


def test_homes_without_standby_save_no_share_of_it(bench):
    """And are no dot of the figure: 0 % would say that they failed to."""
    saved, standby = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[4.0, 0.0]] * 2)
    shares = bench("pfdrl.runs").shares_of_homes(saved, standby)
    assert shares == [0.375, None]
    row = {"question": "methods", "place": "street", "name": "PFDRL", "x": None}
    rows = [row | {"by_home": shares}, row | {"by_home": [0.625, None]}]
    page = bench("pfdrl.page")
    with mock.patch.object(page, "picture", lambda drawn, caption: drawn):
        drawn = page.by_home(rows)
    (axis,) = drawn.axes
    assert axis.patches[0].get_height() == 50
    assert axis.lines[-1].get_ydata().tolist() == [37.5, 62.5]
