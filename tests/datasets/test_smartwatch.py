"""The smartwatch recordings: from seglearn's file to both sides of a split."""

import ast
import importlib.util
import pathlib

import numpy as np
import pytest

from jaxanon.datasets import by_client, load
from jaxanon.datasets.smartwatch import description


def test_the_file_that_seglearn_carries():
    data = load("smartwatch")
    spec = data.spec
    assert (spec.public, spec.private, spec.split) == (
        "exercise",
        ("side",),
        "time_block",
    )
    assert [spec.num_classes(a) for a in ("exercise", "side", "subject")] == [7, 2, 10]
    assert (spec.rate_hz, spec.time, len(spec.channels)) == (50.0, 128, 6)
    for side in data[1:]:
        assert side.windows.dtype == np.float32 and side.windows.shape[1:] == (128, 6)
        for attribute, names in spec.classes.items():
            assert set(side.labels[attribute].tolist()) == set(range(len(names)))
    assert by_client(data.train).windows.shape[0] == 10
    # A wrist at rest feels 1 g: the unit of acceleration is right.
    lengths = np.linalg.norm(data.train.windows[..., :3], axis=-1)
    assert 0.9 < np.median(lengths) < 1.1


def test_statistics_are_of_the_training_rows(watch_file):
    data = load("smartwatch", source=watch_file)
    watch = np.load(watch_file, allow_pickle=True).item()
    # 600 rows: 30 % test, and the 128 rows before them are the gap.
    rows = np.concatenate([x[: 420 - 128] for x in watch["X"]]).astype(np.float32)
    np.testing.assert_allclose(
        data.spec.mean, rows.mean(axis=0, dtype=float), rtol=1e-9
    )
    np.testing.assert_allclose(data.spec.std, rows.std(axis=0, dtype=float), rtol=1e-6)
    # By hand: starts 0, 16, ... 160 of 292 rows give 11, and 0, 16, 32, 48 of 180 give
    # 4.
    assert [len(side.windows) for side in data[1:]] == [28 * 11, 28 * 4]


def test_windows_carry_the_labels_of_their_recording(watch_file):
    data = load("smartwatch", source=watch_file, split="subject")
    watch = np.load(watch_file, allow_pickle=True).item()
    where = zip(watch["X"], watch["y"], watch["side"], watch["subject"], strict=True)
    for rows, exercise, side, subject in where:
        part = (
            data.train if subject == data.train.labels["subject"][0] + 1 else data.test
        )
        first = rows[:128].astype(np.float32)
        (index,) = np.flatnonzero((part.windows == first).all(axis=(1, 2)))
        found = [part.labels[a][index] for a in ("exercise", "side", "subject")]
        assert found == [exercise, side, subject - 1]


def test_says_where_the_file_should_be(monkeypatch, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"must be the file .*gone.npy, which does not"
    ):
        load("smartwatch", source=tmp_path / "gone.npy")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="run `pip install seglearn`"):
        description.locate(None, tmp_path)


class Code:
    """Object that writes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return open, (self.marker, "w")


def test_a_pickle_of_unknown_content_runs_no_code(tmp_path):
    marker = tmp_path / "marker"
    np.save(tmp_path / "watch.npy", np.array(Code(marker)), allow_pickle=True)
    with pytest.raises(ValueError, match=r"watch.npy must be watch_dataset.npy of seg"):
        load("smartwatch", source=tmp_path / "watch.npy")
    assert not marker.exists()


RUNS_CODE = {"pickle", "cPickle", "dill", "joblib", "marshal", "shelve", "cloudpickle"}


def _could_run_code(tree):
    """Yields readers that run, or might run, code from a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            names = {module.split(".")[0], *(name.name for name in node.names)}
            yield from names & RUNS_CODE
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("eval", "exec", "__import__"):
                yield called
            if called in ("np.load", "numpy.load"):
                safe = [word for word in node.keywords if word.arg == "allow_pickle"]
                if not (safe and ast.unparse(safe[0].value) == "False"):
                    yield ast.unparse(node)


@pytest.mark.parametrize("name", ["", ".datasets", ".federated", ".kernels"])
def test_no_other_reader_unpickles(name):
    (folder, *_) = importlib.import_module(f"jaxanon{name}").__path__
    paths = [*pathlib.Path(folder).rglob("*.py")]
    found = {
        (path.name, what)
        for path in paths
        for what in _could_run_code(ast.parse(path.read_text(encoding="utf-8")))
    }
    own = "np.load(io.BytesIO(content), allow_pickle=True)"  # After its SHA-256.
    builder = "smartwatch_dataset_builder.py"  # Also below an installed jaxanon.
    there = any(path.name == builder for path in paths)
    assert found == ({(builder, own)} if there else set())
    assert there or name != ".datasets"
    old = "import pickle\nnp.load(x)\nnp.load(x, allow_pickle=True)\neval('1')"
    assert len([*_could_run_code(ast.parse(old))]) == 4


def test_refuses_another_file(tmp_path, watch_file, save_watch):
    path = tmp_path / "watch.npy"
    path.write_bytes(watch_file.read_bytes()[:5000])
    with pytest.raises(ValueError, match=r"must be watch_dataset.npy .*\(SHA-256 "):
        load("smartwatch", source=path)
    np.save(path, np.zeros(3))
    with pytest.raises(ValueError, match=r"must be watch_dataset.npy .*\(SHA-256 "):
        load("smartwatch", source=path)
    watch = np.load(watch_file, allow_pickle=True).item()
    save_watch(path, watch | {"y_labels": ["other"]})
    with pytest.raises(
        ValueError, match=r"must hold the exercises .*, got \['other'\]"
    ):
        load("smartwatch", source=path)
    watch["X"][3][5, 2] = np.inf
    save_watch(path, watch)
    with pytest.raises(
        ValueError, match=r"of smartwatch .* must be finite, got NaN or infinity"
    ):
        load("smartwatch", source=path)
