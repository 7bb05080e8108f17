"""The front of Blinder's weights: what is asked of the sweep, and the rows of it."""

import json
import sys
import types

import pytest


@pytest.fixture
def front(bench):
    return bench("front")


def member(beta):
    return types.SimpleNamespace(settings={"beta": beta})


def warping(mean):
    return {"distortion": {"warping": {"mean": mean}}}


def test_a_row_for_every_figure_and_the_figure_beside(front, monkeypatch, tmp_path):
    asked = {}

    def sweep(method, data, **options):
        asked.update(options, method=method)
        options["out"].mkdir()
        (options["out"] / "front.png").write_bytes(b"drawn")
        scores = {"exercise accuracy": {"mean": 0.9, "std": 0.01}}
        summary = [
            {"settings": {"beta": 0.5}, "seeds": 2, "scores": scores},
            {"settings": {"beta": 2.0}, "seeds": 2, "scores": {}},
        ]
        members = [member(0.5), member(0.5), member(2.0), member(2.0)]
        reports = (warping(10.0), warping(20.0), None, None)
        return types.SimpleNamespace(summary=summary, members=members, reports=reports)

    rows = tmp_path / "rows.json"
    words = ["front.py", "--smoke", "--json", str(rows)]
    monkeypatch.setattr(sys, "argv", [*words, "--folder", str(tmp_path / "kept")])
    monkeypatch.setattr(front.ja, "sweep", sweep)
    monkeypatch.setattr(front.blinder, "load", lambda smoke: "data")
    front.main()
    assert asked["grid"] == front.GRID_SMOKE and asked["guided"] and asked["resume"]
    assert asked["evaluate"] and asked["attacks"] == ("forest",)
    told = {row["name"]: row["value"] for row in json.loads(rows.read_text())}
    assert told["beta 0.5: exercise accuracy"] == 90.0
    assert told["beta 0.5: warping"] == 15.0
    assert not any(name.startswith("beta 2") for name in told)
    assert (tmp_path / "rows.png").read_bytes() == b"drawn"
