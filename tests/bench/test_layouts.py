"""The layout benchmark runs, checks its own numbers, writes its rows."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "bench" / "layouts.py"


@pytest.mark.slow
def test_smoke(tmp_path):
    if not SCRIPT.exists():
        pytest.skip("the benchmarks are not beside the tests")
    out = tmp_path / "rows.json"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--smoke", "--json", str(out)],
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
