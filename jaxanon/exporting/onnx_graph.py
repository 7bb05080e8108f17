"""Conversion of functions to ONNX graphs by jax2onnx."""

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

OPSET = 21  # Supported since ONNX Runtime 1.20.


def missing(what: str) -> ImportError:
    """Returns the error for a missing package of the extra ``export``."""
    return ImportError(
        f"{what} requires jax2onnx, onnx and onnxruntime; "
        "pip install 'jaxanon[export]'."
    )


def to_onnx(fn: Callable, inputs: Mapping, outputs: Iterable[str], name: str):
    """Converts ``fn`` to an ONNX model.

    Args:
      fn: function from arrays to arrays, by position.
      inputs: ``jax.ShapeDtypeStruct`` of each input by name, in order.
      outputs: names of the outputs, in order.
      name: name of the graph.

    Returns:
      ``onnx.ModelProto``.

    Raises:
      ImportError: if the extra ``export`` is not installed.
      ValueError: if the converter fails; the message quotes its error.

    Example:
      >>> import jax
      >>> window = {"windows": jax.ShapeDtypeStruct((1, 4, 2), "float32")}
      >>> model = to_onnx(lambda x: 2 * x, window, ["safe"], "twice")
      >>> [one.name for one in model.graph.output]
      ['safe']
    """
    try:
        import jax2onnx
    except ImportError as error:
        raise missing("an ONNX file") from error
    shapes = list(inputs.values())
    # Traced first, because the converter replaces functions of jax.numpy meanwhile.
    program = jaxpr_as_fun(jax.make_jaxpr(fn)(*shapes))
    try:
        with quiet():
            model = jax2onnx.to_onnx(
                lambda *args: tuple(program(*args)),
                shapes,
                model_name=name,
                opset=OPSET,
            )
    except Exception as error:  # The converter raises many types.
        what = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{name} cannot be converted to ONNX ({type(error).__name__}: {what}); "
            "export it with --format stablehlo."
        ) from error
    graph = model.graph
    named = dict(zip((one.name for one in graph.input), inputs, strict=True))
    named |= dict(zip((one.name for one in graph.output), outputs, strict=True))
    rename(graph, named)
    _hoist(graph)
    _unwrap(graph, {})
    _fold(graph, {})
    _fuse(graph, {})
    tidy(graph)
    return model


def _hoist(graph):
    """Lets loop bodies read loop-invariant values from outside.

    The converter passes weights from iteration to iteration, which copies them each
    time and prevents constant folding.
    """
    last = {one.name for one in graph.output}
    renamed: dict[str, str] = {}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _hoist(attribute.g)
        if node.op_type != "Loop":
            continue
        (body,) = (one.g for one in node.attribute if one.name == "body")
        same = {n.output[0]: n.input[0] for n in body.node if n.op_type == "Identity"}
        defined, fixed = names_defined(body), {}
        for index in reversed(range(len(node.input) - 2)):
            inner, ended = body.input[2 + index].name, body.output[1 + index].name
            others = [one.name for one in body.output if one.name != ended]
            if same.get(ended, ended) != inner or inner in others:
                continue
            if node.output[index] in last:
                continue
            before = renamed.get(node.input[2 + index], node.input[2 + index])
            if before in defined:
                continue
            renamed[node.output[index]] = fixed[inner] = before
            del body.input[2 + index], body.output[1 + index]
            del node.input[2 + index], node.output[index]
        rename(body, fixed)  # Once per loop, because it visits the whole body.
    rename(graph, renamed)


def _unwrap(graph, named):
    """Removes identity nodes, also in branches."""
    last = {one.name for one in graph.output}
    kept = []
    for node in graph.node:
        node.input[:] = [named.get(name, name) for name in node.input]
        if node.op_type == "Identity" and node.output[0] not in last:
            named[node.output[0]] = node.input[0]
            continue
        kept.append(node)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _unwrap(attribute.g, dict(named))  # A branch has its own scope.
    del graph.node[:]
    graph.node.extend(kept)


def _fold(graph, before):
    """Folds constants unless the result is larger than its inputs.

    The file then contains weights as they are used, and half-precision weights stay so.
    """
    from onnx import numpy_helper
    from onnx.reference import ReferenceEvaluator

    constants = {one.name: one for one in graph.initializer}
    last = {one.name for one in graph.output}
    rest = []
    for node in graph.node:
        known = before | constants
        inner = [one.g for one in node.attribute if one.HasField("g")]
        for branch in inner:
            _fold(branch, known)
        names = {name for name in node.input if name}
        rest.append(node)
        if inner or not names or names - set(known) or last & set(node.output):
            continue
        inputs = {name: numpy_helper.to_array(known[name]) for name in names}
        try:
            values: Any = ReferenceEvaluator(node).run(None, inputs)
        except Exception:  # Operators and types that only a runtime supports.
            continue
        if sum(x.nbytes for x in values) > sum(x.nbytes for x in inputs.values()):
            continue
        rest.pop()
        for name, value in zip(node.output, values, strict=True):
            constants[name] = numpy_helper.from_array(np.asarray(value), name)
    del graph.node[:], graph.initializer[:]
    graph.node.extend(rest)
    graph.initializer.extend(constants.values())


def _fuse(graph, before):
    """Merges the addition of a bias into the preceding matrix product.

    The converter emits a product with a zero bias, followed by an addition.
    """
    from onnx import numpy_helper

    constants = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    known = before | constants
    readers: dict = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    last = {one.name for one in graph.output}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _fuse(attribute.g, known)
                last |= outside(attribute.g)
    gone = []
    for node in graph.node:
        if node.op_type != "Gemm" or len(node.input) < 3:
            continue
        if known.get(node.input[2], np.ones(1)).any():
            continue
        del node.input[2:]
        product = node.output[0]
        (add, *others) = readers.get(product, [None])
        if add is None or others or add.op_type != "Add" or product in last:
            continue
        bias = next((name for name in add.input if name != product), product)
        width = _width(node, known)
        if bias in known and width and known[bias].shape in ((width,), (1, width)):
            flat = f"{add.output[0]} bias"
            node.input.append(flat)
            graph.initializer.append(
                numpy_helper.from_array(known[bias].reshape(-1), flat)
            )
            kept = [one for one in node.attribute if one.name != "beta"]
            del node.attribute[:]  # The default factor of the bias is 1.
            node.attribute.extend(kept)
            node.output[0] = add.output[0]
            gone.append(add)
    for node in gone:
        graph.node.remove(node)


def _width(node, known):
    """Returns the columns of a product's second factor, or None if not constant."""
    if node.input[1] not in known:
        return None
    across = next((one.i for one in node.attribute if one.name == "transB"), 0)
    return known[node.input[1]].shape[0 if across else 1]


def rename(graph, named: Mapping[str, str]) -> None:
    """Renames values and constants wherever they are used."""
    for one in (*graph.input, *graph.output, *graph.initializer):
        one.name = named.get(one.name, one.name)
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [named.get(name, name) for name in names]
        for attribute in node.attribute:  # Branches and loops read outer values.
            if attribute.HasField("g"):
                defined = names_defined(attribute.g)
                rest = {old: new for old, new in named.items() if old not in defined}
                rename(attribute.g, rest)


def tidy(graph) -> None:
    """Drops unused constants, also in branches and loops."""
    read = {one.name for one in graph.output}
    for node in graph.node:
        read |= set(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                tidy(attribute.g)
                read |= outside(attribute.g)
    kept = [one for one in graph.initializer if one.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def names_defined(graph) -> set[str]:
    """Returns the names of a graph's inputs, constants and values."""
    names = {one.name for one in (*graph.input, *graph.initializer)}
    return names | {name for node in graph.node for name in node.output} - {""}


def outside(graph) -> set[str]:
    """Returns the names that a branch reads but does not define."""
    read = {one.name for one in graph.output}
    for node in graph.node:
        read |= set(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                read |= outside(attribute.g)
    return read - names_defined(graph) - {""}


def add_metadata(model, facts: str) -> None:
    """Writes metadata for the device into the model."""
    entry = model.metadata_props.add()
    entry.key, entry.value = "jaxanon", facts


@contextlib.contextmanager
def quiet():
    """Silences log lines and warnings of the converters."""
    import onnxruntime

    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(3)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
        onnxruntime.set_default_logger_severity(2)  # The default.
