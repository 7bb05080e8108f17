"""Handmade model files, and stand-ins for models in these tests."""

import hashlib
import json
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

from jaxanon.edge.types import Signature

CHANNELS = ("acc x", "acc y")


def described(**changed):
    """Returns metadata of an anonymizer for windows of 8 samples at 50 Hz."""
    told = {
        "format": 1,
        "kind": "anonymizer",
        "version": "0.1.0",
        "method": "blinder",
        "weights": "float32",
        "input": {
            "name": "windows",
            "batch": 1,
            "time": 8,
            "channels": list(CHANNELS),
            "units": ["g", "g"],
            "rate_hz": 50.0,
        },
        "output": "safe",
        "draws": [],
        "epsilon": None,
        "card": "# A card",
    }
    return told | changed


TYPES = {"integers": TensorProto.INT32, "discrete laplace": TensorProto.INT32}


def save(path, nodes, told=None, outputs=None, initializers=(), digest=True):
    """Saves a model of such nodes, from ``windows`` and draws to ``outputs``."""
    told = described() if told is None else told
    shape = [1, told["input"]["time"], len(told["input"]["channels"])]
    of = helper.make_tensor_value_info
    inputs = [of("windows", TensorProto.FLOAT, shape)]
    for draw in told.get("draws", ()):
        kind = TYPES.get(draw["law"], TensorProto.FLOAT)
        inputs.append(of(draw["name"], kind, draw["shape"]))
    outputs = {"safe": shape} if outputs is None else outputs
    given = [of(name, TensorProto.FLOAT, size) for name, size in outputs.items()]
    graph = helper.make_graph(nodes, "graph", inputs, given, list(initializers))
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9
    )
    if told:
        helper.set_model_props(model, {"jaxanon": json.dumps(told)})
    data = model.SerializeToString()
    path.write_bytes(data)
    if digest:
        line = f"{hashlib.sha256(data).hexdigest()}  {path.name}\n"
        path.with_name(path.name + ".sha256").write_text(line)
    return path


def node(kind, *inputs, output="safe", **settings):
    return helper.make_node(kind, list(inputs), [output], **settings)


def one_op(path, kind="Identity", told=None):
    """Saves a model that applies one operator to its windows."""
    return save(path, [node(kind, "windows")], told)


def endless(path):
    """Saves a model whose loop runs for hours."""
    of = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            node("Identity", "go", output="go on"),
            node("Sin", "before", output="after"),
        ],
        "body",
        [
            of("step", TensorProto.INT64, []),
            of("go", TensorProto.BOOL, []),
            of("before", TensorProto.FLOAT, [1, 8, 2]),
        ],
        [
            of("go on", TensorProto.BOOL, []),
            of("after", TensorProto.FLOAT, [1, 8, 2]),
        ],
    )
    constants = [
        helper.make_tensor("times", TensorProto.INT64, [], [2**62]),
        helper.make_tensor("yes", TensorProto.BOOL, [], [True]),
    ]
    loop = node("Loop", "times", "yes", "windows", body=body)
    return save(path, [loop], initializers=constants)


def not_a_number(path):
    """Saves a model that divides 0 by 0."""
    nodes = [
        node("Sub", "windows", "windows", output="zero"),
        node("Div", "zero", "zero"),
    ]
    return save(path, nodes)


class Model:
    """Model in Python: a function of a window."""

    def __init__(
        self, function=lambda window: window, time=8, channels=1, rate_hz=50.0, **more
    ):
        names = tuple(f"c{i}" for i in range(channels))
        self.signature = Signature(time, names, ("g",) * channels, rate_hz)
        self.anonymize = function
        self.calls = 0
        for name, value in more.items():
            setattr(self, name, value)


def hang(window):
    time.sleep(3600)


def joined(blocks):
    """Returns all rows of blocks, with NaN in gaps."""
    return np.concatenate([block.samples for block in blocks])


def rewritten(path, told):
    """Returns the same graph with other metadata, and its digest."""
    model = onnx.load(path)
    del model.metadata_props[:]
    if told is not None:
        helper.set_model_props(model, {"jaxanon": json.dumps(told)})
    data = model.SerializeToString()
    path.write_bytes(data)
    line = f"{hashlib.sha256(data).hexdigest()}  {path.name}\n"
    path.with_name(path.name + ".sha256").write_text(line)
    return path
