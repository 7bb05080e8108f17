"""``jaxanon train pfdrl`` and ``evaluate`` of its runs, and what they refuse."""

import json

import numpy as np
import pytest

from jaxanon import energy
from jaxanon.cli import app
from jaxanon.energy import PFDRLSettings
from jaxanon.training import run_folder

SIZES = {"homes": 2, "devices": 2, "days": 2, "test_days": 1}
SETTINGS = PFDRLSettings(
    **SIZES, joining=1, forecaster="lr", hidden_sizes=(6,), alpha=1,
    forecaster_steps=1, gamma_hours=2.0, drop_probability=0.2,
    max_age=1, graph="k-regular", degree=1,
)  # fmt: skip
WORDS = (
    "--dataset simulated --homes 2 --devices 2 --days 2 --test-days 1 --joining 1 "
    "--forecaster lr --hidden-sizes 6 --alpha 1 --forecaster-steps 1 --gamma-hours 2 "
    "--drop-probability 0.2 "
    "--max-age 1 --graph k-regular --degree 1 --seed 3"
).split()

pytestmark = pytest.mark.slow


def test_a_street_is_trained_and_evaluated(tmp_path, capsys):
    out = str(tmp_path / "shell")
    assert app.main(["train", "pfdrl", *WORDS, "--output-dir", out]) == 0
    told = capsys.readouterr().out
    assert "3 homes (1 join later), 2 devices each; 2 training days" in told
    assert "day 2/2  saved_share" in told and f"Next: jaxanon evaluate {out}" in told
    # What the shell trains is what Python trains of these: energy/test_method.py.
    homes = energy.load_homes("simulated", homes=3, devices=2, days=2, test_days=1)
    run = run_folder.open_run(out)
    assert run.method.config == SETTINGS and run.config["seed"] == 3
    found = run_folder.fingerprint(homes, run.method)
    assert run.config["data"]["fingerprint"] == found
    lines = (tmp_path / "shell" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["round"] for line in lines] == [1, 2]
    assert app.main(["evaluate", out]) == 0
    assert "held-out day, 2 homes saved" in capsys.readouterr().out
    for words, message in (
        (["evaluate", out], "report.json exists; pass overwrite=True"),
        (["personalize", out], "a run of pfdrl, which has no windows"),
        (
            ["evaluate", out, "--attacks", "mlp"],
            "--attacks applies to windows, and pfdrl has none",
        ),
        (
            ["train", "pfdrl", *WORDS, "--source", "x", "--output-dir", f"{out}-2"],
            "source must be None for 'simulated'",
        ),
        (
            ["sample", out, "--label", "x", "--output", "x.npz"],
            "a run of pfdrl, which has no windows; use",
        ),
        (["train", "pfdrl", *WORDS, "--output-dir", out], "already holds a run"),
        (
            ["train", "pfdrl", "--dataset", "none", "--output-dir", f"{out}-2"],
            "got 'none'",
        ),
        (["train", "pdfrl"], "scaffold. Controllers: pfdrl."),
    ):
        assert app.main(words) == 2
        assert message in " ".join(capsys.readouterr().err.split())


def test_a_file_of_one_s_own_is_found_again(tmp_path, capsys, monkeypatch):
    """Two days of a television that stands by, from another folder than it lies in."""
    minute = np.arange(2880)
    power = np.where(minute % 1440 > 1200, 90.0, 3.0)
    columns = {"home": ["a"] * 2880, "device": ["tv"] * 2880}
    np.savez(tmp_path / "mine.npz", **columns, minute=minute, power=power)
    monkeypatch.chdir(tmp_path)
    words = "--dataset mine.npz --days 1 --test-days 1 --forecaster lr".split()
    words += ["--hidden-sizes", "6"]
    words += "--alpha 1 --forecaster-steps 1 --output-dir run".split()
    assert app.main(["train", "pfdrl", *words]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert app.main(["evaluate", str(tmp_path / "run")]) == 0
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["per_month"][0]["month"] == "1970-01"
    assert report["example"]["date"] == "1970-01-02"
    np.savez(tmp_path / "mine.npz", **columns, minute=minute, power=power + 1)
    capsys.readouterr()
    assert app.main(["evaluate", str(tmp_path / "run"), "--overwrite"]) == 2
    assert "homes must be those that the run in" in capsys.readouterr().err
