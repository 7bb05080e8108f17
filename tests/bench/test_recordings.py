"""The benchmark of imports checks the numbers that it reads, and runs."""

import importlib
import json

import numpy as np
import pytest


def test_smoke(run_script, tmp_path, monkeypatch):
    path = tmp_path / "rows.json"
    run_script("recordings", "--smoke", "--json", path)
    rows = {
        (row["name"], row["unit"]): row["value"] for row in json.loads(path.read_text())
    }
    for name in ("csv, table", "parquet, table", "csv, windows in a file"):
        assert rows[name, "M rows/s processor"] > 0


def test_another_number_is_found(bench, tmp_path):
    script = importlib.import_module("recordings")
    samples = script.write(tmp_path, 10)
    read = script.readers(tmp_path / "ann.csv", tmp_path)["table"]
    np.testing.assert_array_equal(read(), samples)
    with pytest.raises(AssertionError):
        script.measure(None, "csv", read, samples + 1)
