"""Names that are not words, from recordings to the runtime of devices."""

import csv
import json
import shlex

import numpy as np
import pytest

from jaxanon.cli import app
from jaxanon.edge import command

pytestmark = pytest.mark.slow

LENGTH, RATE_HZ = 16, 50


def recorded(folder, channel, label):
    """Writes two people's recordings: walking, then running after a gap."""
    for person, phase in (("ann", 0.0), ("bob", 1.0)):
        with (folder / f"{person}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["time", channel, label])
            for start, hertz, act in ((0, 2.0, "walk"), (100, 4.0, "run")):
                for i in range(10 * RATE_HZ):
                    t = i / RATE_HZ
                    x = np.sin(2 * np.pi * hertz * t + phase) + 0.02 * np.sin(t**1.7)
                    rows.writerow([f"{start + t:.2f}", f"{x:.5f}", act])
    (folder / "people.csv").write_text("subject,sex\nann,f\nbob,m\n")


def imported(folder, channel, label):
    """Imports the recordings from the shell's words; returns the data file."""
    recorded(folder, channel, label)
    mine = folder / "mine.npz"
    words = ["datasets", "import", str(folder / "ann.csv"), str(folder / "bob.csv")]
    words += ["--channels", channel, "--units", "g", "--time", "time"]
    words += ["--labels", label, "--people", str(folder / "people.csv")]
    assert app.main([*words, "--length", str(LENGTH), "--output", str(mine)]) == 0
    return mine


def suggested(said):
    """Returns the words of the next command that ``train`` printed."""
    line = next(line for line in said.splitlines() if line.startswith("Next: "))
    program, *words = shlex.split(line.removeprefix("Next: "))
    assert program == "jaxanon"
    return words


@pytest.fixture
def training(train_words):
    """``(file, out, public)`` to the words of a training of ``train_words``."""

    def words(file, out, public):
        words = train_words(file, out)
        words[words.index("--public") + 1] = public
        words[words.index("--private") + 1] = "sex"
        return words

    return words


def test_a_channel_with_a_comma_reaches_the_device(training, tmp_path, capsys):
    pytest.importorskip("jax2onnx", reason="needs the extra `export`")
    mine = imported(tmp_path, "acc, x", "act")
    assert np.load(mine)["channels"].tolist() == ["acc, x"]
    out = tmp_path / "my run; 'red'"
    capsys.readouterr()
    assert app.main(training(mine, out, "act")) == 0
    assert suggested(capsys.readouterr().out)[:2] == ["evaluate", str(out)]
    model, samples, safe = (tmp_path / x for x in ("m.onnx", "raw.csv", "safe.csv"))
    words = ["export", str(out), "--output", str(model), "--samples", str(samples)]
    assert app.main(words) == 0
    with samples.open(newline="") as file:
        assert next(csv.reader(file)) == ["time", "acc, x [g]"]
    words = ["run", str(model), "--input", str(samples), "--output", str(safe)]
    assert command.main(words) == 0
    with safe.open(newline="") as file:
        header, *rows = csv.reader(line for line in file if line[0] != "#")
    assert header[-1] == "acc, x [g]" and len(rows) >= LENGTH


@pytest.mark.parametrize("label", ["activity / label", "x/../../escaped"])
def test_an_attribute_with_slashes_stays_in_the_run(label, training, tmp_path, capsys):
    mine = imported(tmp_path, "x", label)
    out = tmp_path / "runs" / "mine"
    assert app.main(training(mine, out, label)) == 0
    outside = {path for path in tmp_path.rglob("*") if out not in path.parents}
    words = suggested(capsys.readouterr().out)
    assert app.main([*words, "--attacks", "tree"]) == 0
    assert label in capsys.readouterr().out
    assert {path for path in tmp_path.rglob("*") if out not in path.parents} == outside
    assert (
        json.loads((out / "report.json").read_text())["utility"]["attribute"] == label
    )
    figures = [
        path
        for path in out.rglob("*.svg")
        if "label" in path.name or "escaped" in path.name
    ]
    assert figures and all(path.parent in (out, out / "figures") for path in figures)
