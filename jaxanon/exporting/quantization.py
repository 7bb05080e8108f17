"""Weights in 8 bits, by ONNX Runtime's quantizer, in branches too."""

import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxanon.exporting.agreement import session
from jaxanon.exporting.onnx_graph import made, missing, outside, quiet, rename, tidy

# What holds most weights, and what int8 is fast for.
QUANTIZED = ("MatMul", "Gemm", "Conv")


def in_int8(model, examples: Sequence[dict[str, np.ndarray]], prefix: str = ""):
    """The model with weights in 8 bits, and ranges of activations by examples.

    Weights are symmetric, of 7 of the 8 bits, one scale a channel: older processors add
    products in pairs, in 16 bits, which two products of 8 bits exceed. Activations have
    one scale each, from the least to the largest that examples give. A branch has its
    ranges from the examples that take it, or from all where none does. Bodies of loops
    stay as they are.

    Args:
      model: ``onnx.ModelProto``.
      examples: inputs by name, one at least.
      prefix: of names in branches, which no other branch's begin with.

    Returns:
      ``onnx.ModelProto``, quantized by ONNX Runtime.

    Raises:
      ImportError: without the extra ``export``.
    """
    small = _flat(model, examples)
    branches = [node for node in small.graph.node if node.op_type == "If"]
    if not branches:
        return small
    known = {
        one.name: one for one in (*model.graph.initializer, *small.graph.initializer)
    }
    wanted = {node.input[0] for node in branches}
    for node in branches:
        for attribute in node.attribute:
            wanted |= outside(attribute.g)
    told = _values(small, sorted(wanted - set(known)), examples)
    for number, node in enumerate(branches):
        for attribute in node.attribute:
            taken = attribute.name == "then_branch"
            own = [one for one in told if bool(one[node.input[0]]) == taken] or told
            within = f"{prefix}{number} {attribute.name} "
            _quantize_branch(small, attribute.g, known, own, within)
    tidy(small.graph)
    return small


def _flat(model, examples):
    """The model with all that is not in a branch in 8 bits."""
    try:
        import onnx
        from onnxruntime import quantization as by_runtime
        from onnxruntime.quantization.shape_inference import quant_pre_process
    except ImportError as error:
        raise missing("int8") from error

    class Reader(by_runtime.CalibrationDataReader):
        def __init__(self):
            self._left = iter(examples)

        def get_next(self) -> Any:  # None at the end.
            return next(self._left, None)

    with tempfile.TemporaryDirectory() as folder, quiet():
        plain, ready, small = (pathlib.Path(folder, f"{n}.onnx") for n in range(3))
        onnx.save(model, plain)
        quant_pre_process(
            str(plain), str(ready), skip_symbolic_shape=True, skip_optimization=True
        )
        by_runtime.quantize_static(
            str(ready),
            str(small),
            Reader(),
            per_channel=True,
            op_types_to_quantize=list(QUANTIZED),
            activation_type=by_runtime.QuantType.QUInt8,
            weight_type=by_runtime.QuantType.QInt8,
            reduce_range=True,
            extra_options={"WeightSymmetric": True},
        )
        return onnx.load(small)


def _quantize_branch(model, branch, known, told, prefix):
    """Quantizes a branch as a model of its own, and puts it back."""
    from onnx import helper

    read = outside(branch)
    values = sorted(read - set(known))
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(told[0][name].dtype),
            told[0][name].shape,
        )
        for name in values
    ]
    weights = [known[name] for name in sorted(read & set(known))]
    alone = helper.make_graph(
        list(branch.node),
        branch.name,
        inputs,
        list(branch.output),
        [*branch.initializer, *weights],
    )
    opsets = list(model.opset_import)
    inside = helper.make_model(alone, opset_imports=opsets)
    inside.ir_version = model.ir_version
    given = [{name: one[name] for name in values} for one in told]
    small = in_int8(inside, given, prefix).graph
    # What the quantizer makes is called alike in every branch.
    rename(small, {name: f"{prefix}{name}" for name in made(small) - set(values)})
    for kept, new in ((branch.node, small.node), (branch.output, small.output)):
        del kept[:]
        kept.extend(new)
    del branch.initializer[:]
    branch.initializer.extend(small.initializer)


def _values(model, names, examples) -> list[dict]:
    """What the named values are for every example."""
    import onnx

    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    there = {one.name for one in shown.graph.output}
    given = {one.name for one in shown.graph.input}
    asked = [name for name in names if name not in given]
    told = [{k: np.asarray(v) for k, v in one.items()} for one in examples]
    if not asked:  # ONNX Runtime would give every output.
        return told
    shown.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in asked if name not in there
    )
    opened = session(shown.SerializeToString())
    return [one | dict(zip(asked, opened.run(asked, one), strict=True)) for one in told]
