"""``jaxanon export``: from a run's folder to files that a device reads."""

import numpy as np
import pytest

from jaxanon import edge
from jaxanon.cli import app
from jaxanon.edge import command

pytest.importorskip("jax2onnx", reason="needs the extra `export`")

pytestmark = pytest.mark.slow


def test_a_run_becomes_files_that_the_runtime_reads(folder, file, tmp_path, capsys):
    path, who, rows = (tmp_path / name for name in ("phone.onnx", "who.onnx", "r.csv"))
    words = ["export", str(folder), "--output", str(path), "--attackers", str(who)]
    words += ["--samples", str(rows), "--dataset", str(file)]
    assert app.main(words) == 0
    said = capsys.readouterr().out
    model = edge.load(path)
    digest = (tmp_path / "phone.onnx.sha256").read_text().split()[0]
    assert f"SHA-256: {digest}" in said
    assert "100.0 % of them agree within 0.001" in said
    window = np.load(file)["windows"][0].astype(np.float32)
    assert model.anonymize(window).shape == window.shape
    reads = edge.load_attackers(who)(window)
    assert len(reads) == 3
    safe = tmp_path / "safe.csv"
    run = ["run", str(path), "--input", str(rows), "--output", str(safe)]
    assert command.main(run) == 0
    given = np.loadtxt(rows, delimiter=",", skiprows=1)
    kept = [line for line in safe.read_text().splitlines() if line[0].isdigit()]
    made = np.array([line.split(",") for line in kept])
    np.testing.assert_allclose(made[:, 0].astype(float), given[:, 0], atol=1e-6)
    assert set(made[:, 1]) == {""}  # No gap.
    assert not np.isin(made[:, 2:].astype(np.float32), np.float32(given[:, 1:])).any()


def test_a_wearer_s_own_windows_change_the_model(folder, file, tmp_path):
    first, second = tmp_path / "all.onnx", tmp_path / "mine.onnx"
    assert app.main(["export", str(folder), "--output", str(first)]) == 0
    own = ["--finetune-data", str(file), "--finetune-rounds", "2"]
    assert app.main(["export", str(folder), "--output", str(second), *own]) == 0
    assert first.read_bytes() != second.read_bytes()


def test_what_is_refused(folder, tmp_path, refused):
    path = tmp_path / "phone.onnx"
    said = refused("export", folder, "--output", path, "--format", "tflite")
    assert "format must be one of" in said
    path.write_text("mine")
    assert "pass overwrite=True (--overwrite)" in refused(
        "export", folder, "--output", path
    )
    assert path.read_text() == "mine"
    there = ["--attackers", path]  # Refused before anything is written.
    said = refused("export", folder, "--output", tmp_path / "other.onnx", *there)
    assert "phone.onnx exists" in said and [*tmp_path.iterdir()] == [path]
