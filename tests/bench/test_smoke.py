"""Benchmarks run as they are documented, on sizes that take seconds."""

import json
import pathlib
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).parents[2] / "bench"


@pytest.mark.parametrize(
    "script, expected",
    [
        ("meta.py", "factored, 1 adversary steps"),
        ("kernels.py", "layer mean"),
        ("blinder.py", "Blinder, guided: exercise, anonymized"),
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
def test_smoke(script, expected, tmp_path):
    rows = tmp_path / "rows.json"
    script, *more = script.split()
    command = [sys.executable, str(BENCH / script), "--smoke", "--json", str(rows)]
    done = subprocess.run(
        [*command, *more], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(rows.read_text())
    assert all({"name", "value", "unit", "shapes", "device"} <= set(r) for r in found)
    assert expected in [row["name"] for row in found]
