"""``jaxanon anonymize`` of recordings: the shell's side of ``tests/streaming``."""

import numpy as np
import pytest

from jaxanon.cli import app


@pytest.fixture
def walk(tmp_path):
    """A recording of 60 rows with the channels of the run, called 0 and 1."""
    samples = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    rows = [f"{t / 50:.2f},{x},{y},slow" for t, (x, y) in enumerate(samples)]
    path = tmp_path / "walk.csv"
    path.write_text("\n".join(["time,0,1,mood", *rows, "oh"]) + "\n")
    return path


def test_recordings_come_back_with_a_summary(
    folder, walk, tmp_path, capsys, opened_once
):
    words = ["anonymize", folder, "--input", walk, "--output-dir", tmp_path / "safe"]
    words += ["--seed", 3, "--carry", "mood"]
    assert app.main([str(word) for word in words]) == 0
    shown = capsys.readouterr().out
    for part in (
        "[1/1] walk.csv: compiling",
        "Not read: 1 malformed row",
        "Rows arrive at 50 Hz and are put on a grid of 50 Hz.",
        "Warning: Exact times and gaps can identify",
        f"1 recording anonymized: {tmp_path / 'safe'}",
    ):
        assert part in shown
    safe = (tmp_path / "safe" / "walk.csv").read_text().splitlines()
    raw = walk.read_text().splitlines()[:-1]
    pick = lambda lines: [(line.split(",")[0], line.split(",")[-1]) for line in lines]
    assert pick(safe) == pick(raw)
    assert not {row.split(",")[1] for row in safe[1:]} & {
        row.split(",")[1] for row in raw[1:]
    }
    again = [*words[:-4], "--overwrite", "--time", "relative", "--seed", 3]
    assert app.main([str(word) for word in again]) == 0
    shown = capsys.readouterr().out
    assert "Dropped columns: mood" in shown and "can identify" not in shown


def test_inputs_and_outputs_must_fit(folder, walk, tmp_path, refused, opened_once):
    windows = tmp_path / "in.npy"
    np.save(windows, np.zeros((2, 8, 2), np.float32))
    error = lambda *words: refused("anonymize", folder, "--input", *words)
    safe = ("--output-dir", tmp_path / "safe")
    assert "requires --output-dir" in error(walk)
    assert "recordings require --output-dir" in error(walk, "--output", "x.npy")
    assert "requires --output FILE.npy" in error(windows, *safe)
    assert "got 2 files" in error(windows, walk, *safe)
    npy = ("--output", tmp_path / "out.npy")
    assert "--carry applies to recordings" in error(windows, *npy, "--carry", "mood")
    assert "does not exist" in error(tmp_path / "none.csv", *safe)
    assert "columns ['time', 'mood']" in error(walk, *safe, "--time-column", "when")
    assert not (tmp_path / "safe").exists() or not list((tmp_path / "safe").iterdir())
