"""Exported attackers: they infer what the windows contain, with a confidence."""

import json

import numpy as np
import pytest

pytest.importorskip("jax2onnx", reason="needs the extra `export`")

from jaxanon import edge, exporting


class Hides:
    """Anonymizer that sets the amplitude, which reveals the gender, to one."""

    def __init__(self, spec):
        self.spec = spec

    def anonymize(self, key, windows):
        away = windows - 10
        return np.float32(10 + away / np.abs(away).max(axis=(1, 2), keepdims=True))


@pytest.fixture(scope="module")
def told(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("who") / "who.onnx"
    pieces = []
    exporting.export_attackers(
        Hides(data.spec), data, path, progress=lambda *row: pieces.append(row)
    )
    return path, pieces


@pytest.mark.slow
def test_they_read_raw_windows_and_not_anonymized_ones(told, data):
    path, pieces = told
    assert [row[:2] for row in pieces] == [(0, 3), (1, 3), (2, 3)]
    read = edge.load_attackers(path)
    windows, labels = data.test.windows[:40], data.test.labels
    safe = Hides(data.spec).anonymize(None, windows)

    def right(output, windows):
        said = np.stack([read(window)[output] for window in windows])
        np.testing.assert_allclose(said.sum(axis=1), 1, rtol=1e-5)
        attribute = output.split()[1].rstrip(",")
        return np.mean(said.argmax(axis=1) == labels[attribute][:40])

    assert right("public activity, raw", windows) > 0.9
    assert right("private gender, raw", windows) > 0.7
    assert right("public activity, raw", safe) > 0.7
    assert right("private gender, anonymized", safe) < 0.65


@pytest.mark.slow
def test_what_is_told_of_them(told, data):
    onnx = pytest.importorskip("onnx")
    (entry,) = onnx.load(told[0]).metadata_props
    facts = json.loads(entry.value)
    assert facts["kind"] == "attackers"
    assert [(row["role"], row["trained_on"]) for row in facts["inferences"]] == [
        ("public", "raw"),
        ("private", "raw"),
        ("private", "anonymized"),
    ]
    assert facts["inferences"][1]["classes"] == ["f", "m"]


@pytest.mark.slow
def test_nothing_is_replaced_without_being_asked(told, data):
    with pytest.raises(FileExistsError, match=r"who.onnx exists; pass overwrite"):
        exporting.export_attackers(Hides(data.spec), data, told[0])


def test_a_name_of_another_format_is_refused_before_anything_is_learned(data, tmp_path):
    with pytest.raises(ValueError, match="got 'who.tflite' for onnx"):
        exporting.export_attackers(Hides(data.spec), data, tmp_path / "who.tflite")
    assert not list(tmp_path.iterdir())
