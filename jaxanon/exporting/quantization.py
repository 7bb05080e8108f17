"""Quantization of weights to 8 bits by ONNX Runtime, also in branches."""

import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxanon.exporting.agreement import session
from jaxanon.exporting.onnx_graph import (
    missing,
    names_defined,
    outside,
    quiet,
    rename,
    tidy,
)

# Operators with most of the weights, for which int8 is fast.
QUANTIZED = ("MatMul", "Gemm", "Conv")


def in_int8(model, examples: Sequence[dict[str, np.ndarray]], prefix: str = ""):
    """Quantizes a model's weights to int8, calibrating activations on examples.

    Weights are symmetric with one scale per channel and use 7 of 8 bits, because older
    processors add pairs of products in 16 bits. Activations have one scale each, from
    the range over the examples. A branch is calibrated on the examples that take it, or
    on all if there are none. Loop bodies are not quantized.

    Args:
      model: ``onnx.ModelProto``.
      examples: at least one dict of inputs by name.
      prefix: unique prefix of names in branches.

    Returns:
      ``onnx.ModelProto``, quantized by ONNX Runtime.

    Raises:
      ImportError: if the extra ``export`` is not installed.
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
    values = _values(small, sorted(wanted - set(known)), examples)
    for number, node in enumerate(branches):
        for attribute in node.attribute:
            taken = attribute.name == "then_branch"
            taking = [x for x in values if bool(x[node.input[0]]) == taken] or values
            within = f"{prefix}{number} {attribute.name} "
            _quantize_branch(small, attribute.g, known, taking, within)
    tidy(small.graph)
    return small


def _flat(model, examples):
    """Quantizes everything outside branches."""
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


def _quantize_branch(model, branch, known, examples, prefix):
    """Quantizes a branch as a separate model and puts it back."""
    from onnx import helper

    read = outside(branch)
    values = sorted(read - set(known))
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(examples[0][name].dtype),
            examples[0][name].shape,
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
    branch_inputs = [{name: one[name] for name in values} for one in examples]
    small = in_int8(inside, branch_inputs, prefix).graph
    # The quantizer uses the same new names in every branch.
    new_names = names_defined(small) - set(values)
    rename(small, {name: f"{prefix}{name}" for name in new_names})
    for kept, new in ((branch.node, small.node), (branch.output, small.output)):
        del kept[:]
        kept.extend(new)
    del branch.initializer[:]
    branch.initializer.extend(small.initializer)


def _values(model, names, examples) -> list[dict]:
    """Evaluates the named values for each example."""
    import onnx

    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    outputs = {one.name for one in shown.graph.output}
    inputs = {one.name for one in shown.graph.input}
    asked = [name for name in names if name not in inputs]
    values = [{k: np.asarray(v) for k, v in one.items()} for one in examples]
    if not asked:  # An empty list would mean all outputs.
        return values
    shown.graph.output.extend(
        onnx.ValueInfoProto(name=name) for name in asked if name not in outputs
    )
    opened = session(shown.SerializeToString())
    return [x | dict(zip(asked, opened.run(asked, x), strict=True)) for x in values]
