"""Smoke tests of benchmarks as documented, on sizes that take seconds."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from jaxanon import methods
from jaxanon.datasets import load


@pytest.mark.parametrize(
    "command, expected",
    [
        ("blinder.meta_gradient", "factored, 1 adversary steps"),
        ("kernels", "layer mean"),
        ("blinder", "Blinder, paper: exercise, anonymized"),
        ("dysan", "grid of 36, our schedule"),
        ("federated", "Atlas with noise, one device over FedAvg, one device"),
        ("sweep", "sweep over runs in fresh processes"),
        ("pfdrl --question speed", "energy.dqn over the plain loop"),
        ("devices --part overhead", "Blinder, 2 processes over one device"),
        ("devices --part stream", "clients on disk over in memory"),
        ("devices --part costs", "memory of a round, on paper over compiled"),
        ("edge --part windows", "obscurenet, int8 over float32"),
        ("edge --part choice", "choice among 3, int8, median"),
        ("edge --part privatehub", "privatehub, ONNX Runtime over JAX"),
        ("edge --part stream", "0.05 h at 200 Hz, memory grown by"),
    ],
)
def test_smoke(run_script, command, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    benchmark, *more = command.split()
    run_script(benchmark, "--smoke", "--json", "rows.json", *more)
    found = json.loads((tmp_path / "rows.json").read_text())
    assert all({"name", "value", "unit", "shapes", "device"} <= set(r) for r in found)
    assert expected in [row["name"] for row in found]


def test_blinder_has_every_setting_of_every_variant(bench):
    spec, variants = (
        load("smartwatch", private=["side"]).spec,
        bench("blinder.command").VARIANTS,
    )
    assert list(variants)[-1] == "paper"
    assert variants["paper"] == methods.recipes("blinder")["paper"].settings
    for settings in variants.values():
        config = methods.blinder(spec, **settings).config
        assert settings.items() <= vars(config).items()


def test_layouts_in_a_process_of_their_own(tmp_path):
    """It splits the processor before JAX is imported, and checks its own numbers."""
    bench, out = pathlib.Path(__file__).parents[2] / "bench", tmp_path / "rows.json"
    done = subprocess.run(
        [sys.executable, bench, "federated.layouts", "--smoke", "--json", out],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "all layouts end in the same weights" in done.stdout
    rows = json.loads(out.read_text())
    assert len(rows) == 9
    for row in rows:
        assert {"name", "value", "unit", "shapes", "device", "versions"} <= set(row)
        assert row["value"] > 0


def test_names_that_there_are_not_are_refused_with_those_there_are(run_script):
    assert "blinder, deeprotect" in run_script("--help")
    with pytest.raises(AssertionError, match="NAME must be one of anonymizers, .* no"):
        run_script("no.such")
