"""A model file is loaded completely or rejected, and matches ONNX Runtime."""

import hashlib
import json
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from jaxanon import edge
from jaxanon.edge.model import refuse_drawing

WINDOW = np.arange(16, dtype=np.float32).reshape(8, 2)


def test_a_model_says_what_it_is(models, tmp_path):
    model = edge.load(str(models.one_op(tmp_path / "a.onnx", "Neg")))
    wanted = edge.Signature(8, ("acc x", "acc y"), ("g", "g"), 50.0)
    assert model.signature == wanted
    assert model.card == "# A card" and model.epsilon is None
    assert model.metadata["method"] == "blinder"
    found = model.anonymize(WINDOW)
    np.testing.assert_array_equal(found, -WINDOW)
    assert found.dtype == np.float32
    with pytest.raises(ValueError, match="window must be float.8, 2., got shape .8,."):
        model.anonymize(WINDOW[:, 0])


def drawing(models, path, law="integers", **parameters):
    """Saves a model that adds its draw to the window."""
    draw = {"name": "draw 0", "law": law, "shape": [1, 8, 2], **parameters}
    nodes = [
        models.node("Cast", "draw 0", output="cast", to=TensorProto.FLOAT),
        models.node("Add", "windows", "cast"),
    ]
    return models.save(path, nodes, models.described(draws=[draw]))


def test_draws_are_new_for_each_window_or_given(models, tmp_path):
    path = drawing(models, tmp_path / "a.onnx", low=0, high=1 << 20)
    model = edge.load(path)
    first, second = model.anonymize(WINDOW), model.anonymize(WINDOW)
    assert (first >= WINDOW).all() and (first != second).any()
    given = np.full((1, 8, 2), 3, np.int32)
    found = model.anonymize(WINDOW, {"draw 0": given})
    np.testing.assert_array_equal(found, WINDOW + 3)


@pytest.mark.parametrize("law", ["normal", "uniform", "gumbel", "discrete laplace"])
def test_every_law_goes_into_a_graph(models, tmp_path, law):
    scale = {"scale": 1000} if law == "discrete laplace" else {}
    model = edge.load(drawing(models, tmp_path / "a.onnx", law, **scale))
    assert len(np.unique(model.anonymize(WINDOW) - WINDOW)) > 10


def test_the_digest_is_the_file_s_beside_or_the_one_given(models, tmp_path):
    path = models.one_op(tmp_path / "a.onnx")
    beside = tmp_path / "a.onnx.sha256"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert beside.read_text().split() == [digest, "a.onnx"]
    beside.unlink()
    with pytest.raises(
        FileNotFoundError, match="a.onnx.sha256 of .* does not exist; copy"
    ):
        edge.load(path)
    edge.load(path, digest.upper())
    with pytest.raises(ValueError, match="digest must begin with the 64 hex"):
        edge.load(path, "1234")
    beside.write_text("")
    with pytest.raises(ValueError, match="a.onnx.sha256 must begin with the 64 hex"):
        edge.load(path)
    beside.write_text("0" * 64 + "  a.onnx\n")
    edge.load(path, digest)  # The argument takes precedence.
    with pytest.raises(ValueError, match="000000000000... of a.onnx.sha256, got"):
        edge.load(path)


def test_a_truncated_or_tampered_file_is_refused(models, tmp_path):
    path = models.one_op(tmp_path / "a.onnx")
    data = path.read_bytes()
    changed = bytearray(data)
    changed[len(data) // 2] ^= 1
    for other in data[:-1], b"", bytes(changed), data + b"\n":
        path.write_bytes(other)
        with pytest.raises(ValueError, match="truncated, modified or replaced"):
            edge.load(path)


def test_what_is_no_model_is_refused_whatever_its_digest(models, tmp_path):
    path = tmp_path / "a.onnx"
    path.write_bytes(b"no ONNX")
    digest = hashlib.sha256(b"no ONNX").hexdigest()
    with pytest.raises(ValueError, match="ONNX Runtime .* cannot load .*a.onnx"):
        edge.load(path, digest)
    with pytest.raises(ValueError, match="threads must be a whole number >= 1, got 0"):
        edge.load(models.one_op(path), threads=0)


def input_of(models, **changed):
    return {"input": models.described()["input"] | changed}


REFUSED = [
    ({"format": 2}, "has format 2, but this version of jaxanon reads 1; run pip"),
    ({"format": "x"}, "the metadata of .* cannot be read"),
    ({"kind": "attackers"}, "must hold 'anonymizer', got 'attackers'"),
    ({"epsilon": -1}, "epsilon of .* must be null or > 0, got -1"),
    ({"epsilon": True}, "epsilon of .* must be null or > 0, got True"),
    ({"draws": None}, "does not describe its draws"),
    ({"output": "other"}, "the outputs of .* must be .*other.* export it again"),
    ({"input": 3}, "does not describe its input"),
    ({"input": {"name": "windows"}}, "the model's input description is invalid"),
]


@pytest.mark.parametrize(("changed", "message"), REFUSED)
def test_metadata_is_checked(models, tmp_path, changed, message):
    path = models.one_op(tmp_path / "a.onnx")
    told = models.described(**changed)
    model = models.rewritten(path, told)
    with pytest.raises(ValueError, match=message):
        edge.load(model)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch": 4}, "batch size must be 1, got 4; export it with batch 1"),
        ({"time": 0}, "must have time >= 1"),
        ({"time": 9}, "the inputs of .* must be .*; export it again"),
        ({"units": ["g"]}, "one unit per channel"),
        ({"channels": ["a", "a"]}, "channels must be unique"),
        ({"rate_hz": 0}, "rate_hz must be > 0, got 0.0"),
        ({"name": "other"}, "the inputs of .* must be .*; export it again"),
    ],
)
def test_the_input_s_description_is_checked(models, tmp_path, changed, message):
    path = models.one_op(tmp_path / "a.onnx")
    told = models.described(**input_of(models, **changed))
    with pytest.raises(ValueError, match=message):
        edge.load(models.rewritten(path, told))


def test_a_file_without_metadata_is_refused(models, tmp_path):
    path = models.rewritten(models.one_op(tmp_path / "a.onnx"), None)
    with pytest.raises(ValueError, match="has no metadata of jaxanon"):
        edge.load(path)


def test_a_graph_that_draws_by_itself_is_refused(models, tmp_path):
    nodes = [
        models.node("RandomNormalLike", "windows", output="noise"),
        models.node("Add", "windows", "noise"),
    ]
    path = models.save(tmp_path / "a.onnx", nodes)
    with pytest.raises(
        ValueError, match="draws random numbers inside its graph .RandomNormalLike."
    ):
        edge.load(path)


@pytest.mark.parametrize(
    "kind",
    [
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("Bernoulli", "Multinomial"),
    ],
)
def test_every_operator_that_draws_is_known(models, kind):
    data = models.node(kind, "windows").SerializeToString()
    with pytest.raises(
        ValueError, match=f"draws random numbers inside its graph .{kind}."
    ):
        refuse_drawing("a.onnx", data)
    refuse_drawing("a.onnx", models.node("Relu", kind).SerializeToString())


def test_a_draw_that_is_not_described_is_refused(models, tmp_path):
    path = drawing(models, tmp_path / "a.onnx", low=0, high=2)
    with pytest.raises(ValueError, match="the inputs of .*draw 0.* export it again"):
        edge.load(models.rewritten(path, models.described()))


def attackers(models, path, **changed):
    """Saves two outputs of two classes, with the window's first numbers as values."""
    described = {"attribute": "side", "role": "private", "trained_on": "raw"}
    told = models.described(
        kind="attackers",
        inferences=[
            {"output": name, "classes": ["left", "right"], **described}
            for name in ("a", "b")
        ],
    )
    begin = helper.make_tensor("begin", TensorProto.INT64, [1], [0])
    end = helper.make_tensor("end", TensorProto.INT64, [1], [2])
    flat = helper.make_tensor("flat", TensorProto.INT64, [2], [1, 16])
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    nodes = [
        models.node("Reshape", "windows", "flat", output="row"),
        models.node("Slice", "row", "begin", "end", "axis", output="a"),
        models.node("Neg", "a", output="b"),
    ]
    outputs = {"a": [1, 2], "b": [1, 2]}
    constants = (begin, end, flat, axis)
    return models.save(path, nodes, told | changed, outputs, constants)


def test_attackers_read_a_window(models, tmp_path):
    loaded = edge.load_attackers(attackers(models, tmp_path / "b.onnx"))
    assert [each.output for each in loaded.inferences] == ["a", "b"]
    assert loaded.inferences[0].classes == ("left", "right")
    assert loaded.inferences[0].role == "private"
    found = loaded(WINDOW)
    np.testing.assert_array_equal(found["a"], [0, 1])
    np.testing.assert_array_equal(found["b"], [0, -1])
    with pytest.raises(ValueError, match="window must be float.8, 2."):
        loaded(WINDOW[:4])


def test_attackers_of_version_0_1_are_read(models, tmp_path):
    """Version 0.1 wrote the outputs under the key "reads"."""
    new = attackers(models, tmp_path / "new.onnx")
    told = json.loads(onnx.load(new).metadata_props[0].value)
    told["reads"] = told.pop("inferences")
    loaded = edge.load_attackers(models.rewritten(new, told))
    assert [each.output for each in loaded.inferences] == ["a", "b"]


def test_attackers_are_no_anonymizer_and_say_what_they_read(models, tmp_path):
    path = attackers(models, tmp_path / "b.onnx")
    with pytest.raises(ValueError, match="got 'attackers'; choose the other file"):
        edge.load(path)
    wrong = [{"output": "a"}]
    with pytest.raises(ValueError, match="does not describe its outputs"):
        edge.load_attackers(attackers(models, tmp_path / "c.onnx", inferences=wrong))


PROGRAM = """
import json, sys
from jaxanon import edge
model = edge.load(sys.argv[1])
stream = edge.Stream(model)
stream.push([0.0], [[1.0, 2.0]])
stream.close()
import jaxanon.edge.command
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_the_runtime_loads_numpy_and_onnxruntime_alone(models, tmp_path):
    path = models.one_op(tmp_path / "a.onnx")
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout))
    assert {"numpy", "onnxruntime", "jaxanon"} < loaded
    heavy = {"jax", "flax", "optax", "tyro", "rich", "paho", "onnx", "scipy", "sklearn"}
    assert not heavy & loaded
