"""The recipes of CONTRIBUTING.md work as printed."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("kernels", "datasets", "federated", "recordings")
MOST_LINES = 15
BLOCK = re.compile(r"^```(python|diff)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks():
    """Returns ``(kind, text)`` of every recipe's blocks."""
    path = ROOT / "CONTRIBUTING.md"
    if not path.exists():
        pytest.skip("the sources are not beside the tests; only a checkout has both")
    return BLOCK.findall(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """Returns a copy of the sources with all recipes applied, to import from."""
    blocks = _blocks()
    place = tmp_path_factory.mktemp("changed")
    package = place / "jaxanon"
    _copy(ROOT / "jaxanon", package)
    for folder in FOLDERS:
        _copy(ROOT / folder, package / folder)
    where = lambda name: package / name.removeprefix("jaxanon/")
    for kind, text in blocks:
        if kind == "python":
            name, body = text.split("\n", 1)
            path = where(name.removeprefix("# "))
            path.parent.mkdir(exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(body)
        else:
            _apply(text, where)
    return place


def _copy(source, target):
    for path in source.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())


def _apply(text, where):
    """Inserts the lines with a plus below the line that precedes them."""
    path, at = None, 0
    for line in text.splitlines():
        if line.startswith("--- "):
            path = where(line[4:])
            continue
        lines = path.read_text().splitlines()
        if line[0] == "+":
            at += 1
            lines.insert(at, line[1:])
            path.write_text("\n".join(lines) + "\n")
        else:
            assert lines.count(line[1:]) == 1, f"{path.name} has no one {line[1:]!r}"
            at = lines.index(line[1:])


def test_recipes_are_short():
    for _, text in _blocks():
        # The name of the file as well.
        assert len(text.splitlines()) <= MOST_LINES + 1, text


PROGRAM = """
import pathlib, sys

import jax, numpy as np
import jaxanon as ja
from jaxanon import attacks, kernels, learners, methods
from jaxanon.evaluation import attackers
from jaxanon.kernels.power import reference

assert ja.__file__.startswith(sys.argv[1]), ja.__file__
windows = jax.random.normal(jax.random.key(0), (3, 5, 2))
told = kernels.mean_power(windows)
np.testing.assert_allclose(told, reference.mean_power(windows), rtol=1e-6)
assert "mean_power" in kernels.__all__

files = pathlib.Path(sys.argv[2], "gaits")
files.mkdir()
for number, person in enumerate(("anna", "ben")):
    for gait, rate in (("walk", 2), ("run", 5)):
        rows = np.sin(np.arange(2000) * rate / 8) + 0.1 * number
        np.savetxt(files / f"{person}-{gait}.csv", rows)
data = ja.load("gaits", source=files, data_dir=sys.argv[2])
assert data.spec.classes["gait"] == ("walk", "run")
assert data.spec.classes["subject"] == ("anna", "ben")
assert set(data.test.labels["gait"]) == {0, 1}

noisy = ja.train(methods.build("noisy", data.spec), data, epochs=1, progress=False)
moved = noisy.anonymize(jax.random.key(1), data.test.windows) - data.test.windows
assert abs(np.std(moved / data.spec.std) - 0.5) < 0.05
assert attackers.choose(["neighbours"]).attackers == ("neighbours",)
walks, runs = (data.test.windows[data.test.labels["gait"] == k] for k in (0, 1))
shown = np.concatenate([walks, runs])
labels = np.repeat([0, 1], [len(walks), len(runs)])
read = attacks.ATTACKERS["neighbours"].fit(jax.random.key(2), shown, labels, 2)
assert np.mean(read(shown).argmax(1) == labels) > 0.9

made = learners.build("half_way", data.spec, filters=(4,), local_steps=2)
run = ja.train(made, data, epochs=3, progress=False)
first, last = (run.history[k]["losses"]["loss"] for k in (0, -1))
assert last < first
print("all of it")
"""


@pytest.mark.slow
def test_recipes_work(changed, tmp_path):
    command = [sys.executable, "-P", "-c", PROGRAM, str(changed), str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(changed)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all of it\n")
