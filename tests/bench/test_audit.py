"""Tests of the audit benchmark: curves, tables, page, and a smoke run."""

import json

import numpy as np
import pytest


@pytest.fixture
def page(bench):
    return bench("audit.page")


def members(learner, view="each", claimed=None, examples="own"):
    return {
        **{"kind": "members", "learner": learner, "view": view, "claimed": claimed},
        **{"examples": examples, "statistic": "updates", "auc": 0.75, "counted": 1.5},
        "true_positives": {"0.001": 0.0, "0.01": 0.125, "0.1": 0.5},
        "roc": [[0.0, 0.5], [0.25, 1.0]],
        "provable": 5.25,
        "accuracy": 0.5,
    }


def mechanism(name, claimed, counted, holds):
    found = {"claimed": claimed, "counted": counted, "holds": holds}
    return {"kind": "mechanisms", "name": name} | found


@pytest.fixture
def rows():
    rebuilt = {
        **{"kind": "inversion", "learner": "FedAvg", "noise_multiplier": None},
        **{"claimed": None, "correlation": 0.9, "snr_db": 7.25},
        **{"window": [0.0, 1.0, 0.0], "rebuilt": [0.1, 0.9, 0.2]},
    }
    return [
        mechanism("honest", 2.0, 1.5, True),
        mechanism("less than it says", 2.0, 3.0, False),
        mechanism("surprising", 2.0, 3.0, True),
        mechanism("with bugs", 2.0, 1.5, True)
        | {"planted": {"noise × 0.5": 2.5, "one left bare": 7.0}},
        members("fedavg"),
        members("fedavg", view="mean", examples="wrong"),
        members("atlas", claimed=4.0),
        rebuilt,
        rebuilt | {"learner": "FedSGD-LDP", "noise_multiplier": 0.5, "claimed": 7.58},
    ]


def test_tables_say_what_was_found(page, rows):
    told = page.markdown(rows)
    assert "| honest | 2.00 | 1.50 | no more than claimed |" in told
    assert "| less than it says | 2.00 | 3.00 | claim broken |" in told
    assert "| surprising | 2.00 | 3.00 | claim broken, unlike expected |" in told
    assert "| with bugs | 2.00 | 1.50 | 2.50 |  | 7.00 |" in told
    want = "| fedavg | the mean | none | windows of a wrong label | updates | 0.750 | "
    assert want + "12.5 % | 50.0 % | 1.50 | 5.25 | 50.0 % |" in told
    assert "| FedAvg | none, not clipped | none | 0.900 | 7.2 dB |" in told
    assert "| FedSGD-LDP | 0.5 | 7.6 | 0.900 | 7.2 dB |" in told
    assert page.markdown([]).strip() == ""
    assert page.line(rows[0]).startswith("mechanisms: honest, 2.00, 1.50")


def test_the_page_and_the_figure(page, rows, tmp_path):
    path = tmp_path / "deep" / "rows.json"
    page.write(path, rows)
    assert json.loads(path.read_text()) == rows
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert ">less than it says</td>" in path.with_suffix(".html").read_text()
    assert path.with_suffix(".md").read_text() == page.markdown(rows)
    page.write(path, rows[:1])


def test_the_corners_of_a_curve(bench):
    """(0, 0), (0, 1/2), (1/4, 1/2), (1/4, 1), (1, 1): corners before a right turn."""
    false = np.array([0.0, 0.0, 0.25, 0.25, 1.0])
    true = np.array([0.0, 0.5, 0.5, 1.0, 1.0])
    told = bench("audit.membership").corners(false, true)
    np.testing.assert_array_equal(told, [[0.0, 0.25, 1.0], [0.5, 1.0, 1.0]])


def test_what_was_rebuilt_is_shown_where_it_is_nearest(bench):
    window = np.random.default_rng(0).normal(size=(5, 2))
    told = bench("audit.inversion").rescaled(window, 3 - 0.5 * window)
    np.testing.assert_allclose(told, window, atol=1e-9)


def test_windows_that_move_are_rebuilt_and_the_channel_that_does_is_shown(bench):
    inversion = bench("audit.inversion")
    scale = np.array([0.0, 1.0, 2.0, 3.0, 0.0, 4.0])[:, None, None]
    windows = scale * np.sin(np.arange(8.0))[:, None] * np.array([0.5, 1.0])
    assert inversion.moving(windows, 1).tolist() in ([2], [3])
    told = inversion.shown_of(windows[1], -windows[1])
    np.testing.assert_allclose(told["window"], np.sin(np.arange(8.0)), atol=1e-3)
    np.testing.assert_allclose(told["rebuilt"], -np.sin(np.arange(8.0)), atol=1e-3)


def test_smoke(run_script, tmp_path):
    rows = tmp_path / "rows.json"
    run_script("audit", "--smoke", "--json", rows)
    found = json.loads(rows.read_text())
    told = [row for row in found if row["kind"] == "mechanisms"]
    honest, broken, of_weight, planted = told
    assert planted["counted"] <= planted["claimed"] < min(planted["planted"].values())
    assert of_weight["counted"] > of_weight["claimed"] and not of_weight["holds"]
    assert honest["counted"] <= honest["claimed"] and broken["auc"] == 1.0
    told = [row for row in found if row["kind"] == "members"]
    assert {row["learner"] for row in told} == {"fedsgd_ldp"}
    assert {row["statistic"] for row in told} == {"updates", "outputs"}
    for row in told:
        assert 0 <= row["auc"] <= 1 and row["counted"] <= row["provable"]
    rebuilt = [row for row in found if row["kind"] == "inversion"]
    assert [row["noise_multiplier"] for row in rebuilt] == [0.0]
