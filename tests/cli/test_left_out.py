"""``jaxanon evaluate --leave-one-out``: its arguments, tables and JSON."""

import json
from types import SimpleNamespace

import pytest

from jaxanon.cli import app
from jaxanon.cli import data as cli_data
from jaxanon.evaluation import left_out

SCORES = {"mean": 0.75, "std": 0.1, "interval": [0.5, 1.0], "balanced_accuracy": 0.7}
SCORES |= {"auc": 0.8, "intervals": None, "majority": 0.6, "not_measured": None}
PERSON = {"windows": 4, "diverged": False}
REPORT = {
    "attributes": {
        "act": {"goal": "high", "chance": 0.5, "unit": None, "scores": {"raw": SCORES}}
    },
    "persons": [
        {"subject": name, "scores": {"act": {"raw": {"accuracy": value}}}} | PERSON
        for name, value in (("ann", 0.5), ("bob", 1.0))
    ],
    "not_measured": {"subject": "a left-out person does not occur in training"},
    "repeated_fraction": 0.0,
}


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Returns the arguments of evaluations, which return ``REPORT``."""
    run = SimpleNamespace(folder=tmp_path, unfinished={"done": 1, "asked": 3})
    calls = []

    def evaluate(run, data, **options):
        calls.append((data, options["attackers"], options["seed"]))
        (tmp_path / left_out.FILE).write_text(json.dumps(REPORT))
        return REPORT

    monkeypatch.setattr(left_out, "leave_one_out", evaluate)
    monkeypatch.setattr(cli_data, "open_run", lambda folder: run)
    monkeypatch.setattr(cli_data, "recall", lambda run, **where: where["split_seed"])
    return calls


def test_tables_of_people_are_printed(asked, tmp_path, capsys):
    words = ["evaluate", str(tmp_path), "--leave-one-out", "--attacks", "tree,mlp"]
    assert app.main([*words, "--split-seed", "3"]) == 0
    assert asked == [(3, ("tree", "mlp"), 0)]
    shown = " ".join(capsys.readouterr().out.split())
    assert "Unfinished: 1 of 3 epochs" in shown
    assert "75.0 %" in shown and "50 to 100 %" in shown
    assert "ann" in shown and "Mean over 2 left-out people" in shown
    assert "subject: not measured, because a left-out person does not" in shown
    assert app.main(words) == 2  # The file exists.
    assert "exists; pass" in capsys.readouterr().err
    assert app.main([*words, "--overwrite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == REPORT
