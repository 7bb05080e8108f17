"""ONNX graphs of functions, by jax2onnx."""

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

OPSET = 21  # ONNX Runtime knows it since 1.20.


def missing(what: str) -> ImportError:
    """What to say where a package of the extra ``export`` is not installed."""
    return ImportError(
        f"{what} needs jax2onnx, onnx and onnxruntime; install them with "
        "pip install 'jaxanon[export]'."
    )


def to_onnx(fn: Callable, inputs: Mapping, outputs: Iterable[str], name: str):
    """``fn`` as an ONNX model.

    Args:
      fn: arrays to arrays, by position.
      inputs: shape and dtype of each, as ``jax.ShapeDtypeStruct``, by name, in order.
      outputs: their names, in order.
      name: of the graph.

    Returns:
      ``onnx.ModelProto``.

    Raises:
      ImportError: without the extra ``export``.
      ValueError: if the converter does not know what ``fn`` does, by its own words.

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
    # Traced beforehand, for the converter replaces functions of jax.numpy meanwhile.
    program = jaxpr_as_fun(jax.make_jaxpr(fn)(*shapes))
    try:
        with quiet():
            model = jax2onnx.to_onnx(
                lambda *args: tuple(program(*args)),
                shapes,
                model_name=name,
                opset=OPSET,
            )
    except Exception as error:  # Whatever it met; its own types are many.
        what = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{name} cannot be made an ONNX graph ({type(error).__name__}: {what}); "
            "export it with --format stablehlo."
        ) from error
    graph = model.graph
    named = dict(zip((one.name for one in graph.input), inputs, strict=True))
    named |= dict(zip((one.name for one in graph.output), outputs, strict=True))
    rename(graph, named)
    _still(graph)
    _unwrap(graph, {})
    _fold(graph, {})
    _fuse(graph, {})
    tidy(graph)
    return model


def _still(graph):
    """Lets bodies of loops read what does not change where it is.

    The converter hands weights from turn to turn, so that each turn copies them all and
    nothing that is made of them is worked out beforehand.
    """
    last = {one.name for one in graph.output}
    renamed: dict[str, str] = {}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _still(attribute.g)
        if node.op_type != "Loop":
            continue
        (body,) = (one.g for one in node.attribute if one.name == "body")
        same = {n.output[0]: n.input[0] for n in body.node if n.op_type == "Identity"}
        own, fixed = made(body), {}
        for place in reversed(range(len(node.input) - 2)):
            inner, ended = body.input[2 + place].name, body.output[1 + place].name
            others = [one.name for one in body.output if one.name != ended]
            if same.get(ended, ended) != inner or inner in others:
                continue
            if node.output[place] in last:
                continue
            before = renamed.get(node.input[2 + place], node.input[2 + place])
            if before in own:
                continue
            renamed[node.output[place]] = fixed[inner] = before
            del body.input[2 + place], body.output[1 + place]
            del node.input[2 + place], node.output[place]
        rename(body, fixed)  # At once, for it goes through the whole body.
    rename(graph, renamed)


def _unwrap(graph, named):
    """Takes out what only gives a value another name, in branches too."""
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
                _unwrap(attribute.g, dict(named))  # Its names are its own.
    del graph.node[:]
    graph.node.extend(kept)


def _fold(graph, before):
    """Works out beforehand what is made of constants, unless it is larger than they.

    So a weight stands in the file as it is used, and one in half precision stays so.
    """
    from onnx import numpy_helper
    from onnx.reference import ReferenceEvaluator

    own = {one.name: one for one in graph.initializer}
    last = {one.name for one in graph.output}
    rest = []
    for node in graph.node:
        known = before | own
        inner = [one.g for one in node.attribute if one.HasField("g")]
        for branch in inner:
            _fold(branch, known)
        names = {name for name in node.input if name}
        rest.append(node)
        if inner or not names or names - set(known) or last & set(node.output):
            continue
        given = {name: numpy_helper.to_array(known[name]) for name in names}
        try:
            values: Any = ReferenceEvaluator(node).run(None, given)
        except Exception:  # An operator, or a type, that only a runtime knows.
            continue
        if sum(x.nbytes for x in values) > sum(x.nbytes for x in given.values()):
            continue
        rest.pop()
        for name, value in zip(node.output, values, strict=True):
            own[name] = numpy_helper.from_array(np.asarray(value), name)
    del graph.node[:], graph.initializer[:]
    graph.node.extend(rest)
    graph.initializer.extend(own.values())


def _fuse(graph, before):
    """Adds a layer's bias where it is multiplied.

    The converter leaves a product without a bias, a 0 in its place, and a sum.
    """
    from onnx import numpy_helper

    own = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    known = before | own
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
            del node.attribute[:]  # The factor of the bias, which is 1 of itself.
            node.attribute.extend(kept)
            node.output[0] = add.output[0]
            gone.append(add)
    for node in gone:
        graph.node.remove(node)


def _width(node, known):
    """Columns of a product's second factor; None if it is no constant."""
    if node.input[1] not in known:
        return None
    across = next((one.i for one in node.attribute if one.name == "transB"), 0)
    return known[node.input[1]].shape[0 if across else 1]


def rename(graph, named: Mapping[str, str]) -> None:
    """Gives values and constants other names, wherever they are read."""
    for one in (*graph.input, *graph.output, *graph.initializer):
        one.name = named.get(one.name, one.name)
    for node in graph.node:
        for place in (node.input, node.output):
            place[:] = [named.get(name, name) for name in place]
        for attribute in node.attribute:  # Branches and loops read what is outside.
            if attribute.HasField("g"):
                own = made(attribute.g)
                rest = {old: new for old, new in named.items() if old not in own}
                rename(attribute.g, rest)


def tidy(graph) -> None:
    """Drops constants that nothing reads, in branches and loops neither."""
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


def made(graph) -> set[str]:
    """Names that a graph gives: of its inputs, constants and values."""
    found = {one.name for one in (*graph.input, *graph.initializer)}
    return found | {name for node in graph.node for name in node.output} - {""}


def outside(graph) -> set[str]:
    """Names that a branch reads and does not make."""
    read = {one.name for one in graph.output}
    for node in graph.node:
        read |= set(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                read |= outside(attribute.g)
    return read - made(graph) - {""}


def tell(model, facts: str) -> None:
    """Writes what a device needs to know into the model's metadata."""
    entry = model.metadata_props.add()
    entry.key, entry.value = "jaxanon", facts


@contextlib.contextmanager
def quiet():
    """Without the converters' remarks on packages and names that concern nobody."""
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
        onnxruntime.set_default_logger_severity(2)  # As it is where nobody set it.
