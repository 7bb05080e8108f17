"""Benchmarks run as they are documented, on sizes that take seconds."""

import json

import pytest

from jaxanon import methods
from jaxanon.datasets import load


@pytest.mark.parametrize(
    "script, expected",
    [
        ("meta.py", "factored, 1 adversary steps"),
        ("kernels.py", "layer mean"),
        ("blinder.py", "Blinder, paper: exercise, anonymized"),
        ("dysan.py", "grid of 36, our schedule"),
        ("federated.py", "Atlas with noise, one device over FedAvg, one device"),
        ("sweep.py", "sweep over runs in fresh processes"),
        ("pfdrl.py --question speed", "energy.dqn over the plain loop"),
        ("devices.py --part overhead", "Blinder, 2 processes over one device"),
        ("devices.py --part stream", "clients on disk over in memory"),
        ("devices.py --part costs", "memory of a round, on paper over compiled"),
        ("edge.py --part windows", "obscurenet, int8 over float32"),
        ("edge.py --part choice", "choice among 3, int8, median"),
        ("edge.py --part privatehub", "privatehub, ONNX Runtime over JAX"),
        ("edge.py --part stream", "0.05 h at 200 Hz, memory grown by"),
    ],
)
def test_smoke(run_script, script, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script, *more = script.split()
    run_script(script, "--smoke", "--json", "rows.json", *more)
    found = json.loads((tmp_path / "rows.json").read_text())
    assert all({"name", "value", "unit", "shapes", "device"} <= set(r) for r in found)
    assert expected in [row["name"] for row in found]


def test_blinder_has_every_setting_of_every_variant(bench):
    spec, variants = (
        load("smartwatch", private=["side"]).spec,
        bench("blinder").VARIANTS,
    )
    assert list(variants)[-1] == "paper" and not variants["paper"]
    for settings in variants.values():
        config = methods.blinder(spec, **settings).config
        assert settings.items() <= vars(config).items()
