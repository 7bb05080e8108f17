"""Files that a device reads: models, samples, budgets, keys."""

import hashlib
import json

import numpy as np


def budget(folder):
    from jaxanon.edge import Budget

    Budget(folder / "budget.json", 1e6).charge(0.5, 3)


def signature():
    from jaxanon.edge import Signature

    return Signature(8, ("acc x", "acc y"), ("g", "g"), 50.0)


TOLD = {
    **{"format": 1, "kind": "anonymizer", "version": "0.1.0", "method": "blinder"},
    **{"weights": "float32", "output": "safe", "epsilon": None, "card": "# A card"},
    "input": {
        **{"name": "windows", "batch": 1, "time": 8, "channels": ["acc x", "acc y"]},
        **{"units": ["g", "g"], "rate_hz": 50.0},
    },
    "draws": [{"name": "noise", "law": "normal", "shape": [1, 8, 2]}],
}


READERS = {
    **TOLD,
    "kind": "attackers",
    "inferences": [
        {
            **{"output": "safe", "attribute": "gender", "role": "private"},
            **{"trained_on": "raw", "classes": ["f", "m"]},
        }
    ],
}


def make_model(folder):
    """Makes a model that adds noise; its metadata can be changed separately."""
    shapes = {"windows": [1, 8, 2], "noise": [1, 8, 2], "safe": [1, 8, 2]}
    _make(folder, TOLD, "Add", shapes)


def make_attackers(folder):
    """Makes attackers that use each channel's maximum as a probability."""
    shapes = {"windows": [1, 8, 2], "axes": [1], "safe": [1, 2]}
    _make(folder, READERS, "ReduceMax", shapes)


def _make(folder, told, operation, shapes):
    from onnx import TensorProto, helper

    kinds = {"axes": TensorProto.INT64}
    of = helper.make_tensor_value_info
    values = [of(n, kinds.get(n, TensorProto.FLOAT), own) for n, own in shapes.items()]
    given, constants = values[:2], []
    options = {}
    if "axes" in shapes:
        given, options = values[:1], {"keepdims": 0}
        constants = [helper.make_tensor("axes", TensorProto.INT64, [1], [1])]
    node = helper.make_node(operation, [*shapes][:2], ["safe"], **options)
    graph = helper.make_graph([node], "graph", given, values[2:], constants)
    opset = helper.make_opsetid("", 20)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    (folder / "told.json").write_text(json.dumps(told))
    (folder / "bare.onnx").write_bytes(model.SerializeToString())


def read_model(folder):
    from jaxanon import edge

    model = edge.load(str(_whole(folder, TOLD)))
    model.anonymize(np.zeros((8, 2), np.float32))


def read_attackers(folder):
    from jaxanon import edge
    from jaxanon.edge import dashboard

    attackers = edge.load_attackers(str(_whole(folder, READERS)))
    dashboard.questions(attackers.inferences)
    attackers(np.zeros((8, 2), np.float32))


def _whole(folder, good):
    """Returns bytes that pass the digest, since an exporter may damage a model."""
    import onnx
    from onnx import helper

    data = (folder / "bare.onnx").read_bytes()
    told = (folder / "told.json").read_bytes()
    if told != json.dumps(good).encode():  # Otherwise the model itself is damaged.
        model = onnx.load_from_string(data)
        helper.set_model_props(model, {"jaxanon": told.decode(errors="replace")})
        data = model.SerializeToString()
    else:
        name, value = b"jaxanon", told
        entry = b"\x0a" + _sized(name) + b"\x12" + _sized(value)
        data += b"\x72" + _sized(entry)  # metadata_props, number 14 of ModelProto.
    path = folder / "model.onnx"
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    (folder / "model.onnx.sha256").write_text(f"{digest}  model.onnx\n")
    return path


def _sized(data):
    """Returns the length as a varint, and the bytes."""
    size, found = len(data), b""
    while size > 127:
        found, size = found + bytes([size & 127 | 128]), size >> 7
    return found + bytes([size]) + data


def make_csv(folder):
    lines = ["time,acc x [g],acc y [g]", *(f"{i / 50},{i},-{i}" for i in range(9))]
    (folder / "in.csv").write_text("\n".join(lines))


def read_csv(folder):
    from jaxanon.edge import csv_input

    with_rows = csv_input.open_rows(folder / "in.csv")
    try:
        for times, samples in with_rows:
            assert samples.shape == (len(times), len(with_rows.channels))
    finally:
        with_rows.close()


def csv_file(folder):
    from jaxanon.edge import csv_file
    from jaxanon.edge.types import Block

    path = folder / "out.csv"
    outlet = csv_file.CsvFile(path, signature(), append=path.exists())
    outlet.write(Block(0.0, 50.0, np.ones((3, 2), np.float32), "", 0.06))
    outlet.close()


def make_keys(folder):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.derive_private_key(12345, ec.SECP384R1())
    form = serialization.PrivateFormat.OpenSSH
    none = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, form, none)
    (folder / "key").write_bytes(pem)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    (folder / "keys.txt").write_bytes(b"0 " + public + b"\n")


def read_keys(folder):
    from jaxanon.flower import keys

    keys.private_key(folder / "key")
    keys.public_keys(folder / "keys.txt")
