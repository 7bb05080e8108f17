"""What is not at hand is left out of a comparison, and what is damaged is not."""

import argparse
import sys

import pytest


def test_of_atlas(bench, monkeypatch, tmp_path, capsys):
    atlas = bench("atlas")
    monkeypatch.setattr(sys, "argv", ["atlas", "--smoke", "--folder", str(tmp_path)])
    monkeypatch.setattr(atlas.ja, "load", raising(FileNotFoundError("nowhere")))
    atlas.main()
    assert "Smartwatch is left out: nowhere" in capsys.readouterr().out
    monkeypatch.setattr(atlas.ja, "load", raising(ValueError("a file is damaged")))
    with pytest.raises(ValueError, match="a file is damaged"):
        atlas.main()


def test_of_pfdrl(bench, monkeypatch):
    streets = bench("_pfdrl_streets")
    missing, damaged = FileNotFoundError("nowhere"), ValueError("a file is damaged")
    monkeypatch.setattr(streets.energy, "load_homes", raising(missing))
    with pytest.warns(UserWarning, match="tracebase is left out: nowhere"):
        assert streets.every(False, "tracebase", 0) == []
    monkeypatch.setattr(streets.energy, "load_homes", raising(damaged))
    with pytest.raises(ValueError, match="a file is damaged"):
        streets.every(False, "tracebase", 0)


def test_answers_of_before_stay(bench, tmp_path):
    answers = bench("_answers")
    rows = [
        {"question": "q", "place": place, "x": ["a", "b"], "seed": seed, "value": 1.0}
        for place in ("room A", "room B")
        for seed in (0, 1)
    ]
    path = tmp_path / "found.json"
    asked = lambda json, smoke=False: argparse.Namespace(json=json, smoke=smoke)
    for args in (asked(None), asked(path)):
        assert answers.with_earlier(args, rows) == rows
    answers.keep(path, rows)
    anew = [rows[1] | {"value": 2.0}, rows[0] | {"seed": 2}]
    assert answers.with_earlier(asked(path), anew) == [rows[0], *rows[2:], *anew]
    assert answers.with_earlier(asked(path, smoke=True), anew) == anew


def raising(error):
    """A function that raises it, whatever it is given."""

    def raise_it(*given, **settings):
        raise error

    return raise_it
