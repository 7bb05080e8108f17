"""Rewritten graphs, including their branches, compute the same."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("jax2onnx", reason="needs the extra `export`")

from onnx import TensorProto, checker, helper, numpy_helper

from jaxanon import exporting
from jaxanon.exporting import onnx_graph, quantization
from jaxanon.exporting.agreement import examples, run_graph
from jaxanon.kernels import portable

X = np.array([[1.0, -2.0, 0.5, 3.0]], np.float32)
WEIGHTS = np.random.default_rng(0).normal(size=(4, 4, 4)).astype(np.float32)


def value(name):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4])


def branch(nodes, **constants):
    """Returns a graph whose output is that of its last node."""
    given = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    return helper.make_graph(nodes, "branch", [], [value(nodes[-1].output[0])], given)


def model(nodes, *switches, **constants):
    """Returns a model of ``x`` and switches whose output is that of its last node."""
    graph = branch(nodes, **constants)
    graph.input.append(value("x"))
    for name in switches:
        told = helper.make_tensor_value_info(name, TensorProto.BOOL, [])
        graph.input.append(told)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    made.ir_version = 10
    checker.check_model(made)
    return made


def node(kind, inputs, output, **settings):
    return helper.make_node(kind, inputs.split(), [output], **settings)


def either(switch, output, then, other):
    return node("If", switch, output, then_branch=then, else_branch=other)


def given(**switches):
    return {"x": X} | {name: np.array(on) for name, on in switches.items()}


def made(model, inputs):
    checker.check_model(model)
    return run_graph(model.SerializeToString(), inputs)


def names(graph):
    """Returns all names that a graph defines, with repeats."""
    found = collections.Counter(onnx_graph.names_defined(graph))
    for one in graph.node:
        for attribute in one.attribute:
            if attribute.HasField("g"):
                found += names(attribute.g)
    return found


def test_branches_may_call_different_things_alike():
    """``t`` is x in one branch and its sine in the other."""
    kinds = {"Identity": X, "Sin": np.sin(X)}
    for then, other in (("Identity", "Sin"), ("Sin", "Identity")):
        own = [
            branch([node(kind, "x", "t"), node("Neg", "t", f"of {kind}")])
            for kind in (then, other)
        ]
        graph = model([either("on", "safe", *own)], "on")
        onnx_graph._unwrap(graph.graph, {})
        found = made(graph, [given(on=True), given(on=False)])
        np.testing.assert_allclose(found[:1], -kinds[then], rtol=1e-6)
        np.testing.assert_allclose(found[1:], -kinds[other], rtol=1e-6)


def layer(output, **settings):
    """Returns the converter's nodes of a layer: a product, a zero in it, and a sum."""
    return [
        node("Gemm", "x w zero", f"{output}_product", **settings),
        helper.make_node("Add", [f"{output}_product", "bias"], [output]),
    ]


def test_a_bias_is_added_where_it_is_multiplied():
    constants = {
        "w": WEIGHTS[0],
        "zero": np.zeros(4, np.float32),
        "bias": np.float32([[1, 2, 3, 4]]),
    }
    inside = branch(layer("a", transB=1, beta=0.0))
    outside = branch([node("Neg", "first", "b")])
    nodes = [*layer("first"), either("on", "second", inside, outside)]
    nodes.append(node("Add", "first second", "safe"))
    graph = model(nodes, "on", **constants)
    inputs = [given(on=True), given(on=False)]
    before = made(graph, inputs)
    onnx_graph._fuse(graph.graph, {})
    onnx_graph.tidy(graph.graph)
    np.testing.assert_allclose(made(graph, inputs), before, rtol=1e-6)
    assert [one.op_type for one in graph.graph.node] == ["Gemm", "If", "Add"]
    (choice,) = [one for one in graph.graph.node if one.op_type == "If"]
    then = next(one.g for one in choice.attribute if one.name == "then_branch")
    assert [one.op_type for one in then.node] == ["Gemm"]
    kept = {one.name for one in graph.graph.initializer}
    assert kept == {"w", "first bias"}
    assert max(names(graph.graph).values()) == 1


@pytest.mark.parametrize("also", ["Neg", "If"])
def test_a_product_that_others_read_keeps_its_own_sum(also):
    read = node("Neg", "first_product", "again")
    if also == "If":
        own = [branch([node(k, "first_product", k)]) for k in ("Neg", "Sin")]
        read = either("on", "again", *own)
    nodes = [*layer("first"), read, node("Add", "first again", "safe")]
    constants = {"w": WEIGHTS[0], "zero": np.zeros(4, np.float32)}
    graph = model(nodes, "on", bias=np.ones(4, np.float32), **constants)
    before = made(graph, [given(on=True)])
    onnx_graph._fuse(graph.graph, {})
    np.testing.assert_allclose(made(graph, [given(on=True)]), before, rtol=1e-6)
    assert "first_product" in names(graph.graph)


def weights(graph):
    """Returns the constants of a graph and of all its branches."""
    found = [numpy_helper.to_array(one) for one in graph.initializer]
    for own in graph.node:
        for attribute in own.attribute:
            found += weights(attribute.g) if attribute.HasField("g") else []
    return found


def test_weights_of_branches_in_branches_are_bytes():
    """Each of four paths from x to the output has separate weights."""

    def leaf(n):
        return branch([node("MatMul", f"x w{n}", f"o{n}")], **{f"w{n}": WEIGHTS[n]})

    inner = branch(
        [
            node("MatMul", "x w0", "m"),
            either("deep", "n", leaf(1), leaf(2)),
            node("Add", "m n", "sum"),
        ],
        w0=WEIGHTS[0],
    )
    other = branch([node("MatMul", "x w3", "o3")])  # Its weights lie outside.
    whole = model([either("on", "safe", inner, other)], "on", "deep", w3=WEIGHTS[3])
    rng = np.random.default_rng(1)
    inputs = [
        given(on=bool(n % 2), deep=bool(n // 2 % 2))
        | {"x": rng.normal(size=(1, 4)).astype(np.float32) * (1 if n % 2 else 100)}
        for n in range(64)
    ]
    small = quantization.in_int8(whole, inputs)
    told, found = made(whole, inputs), made(small, inputs)
    for taken in (slice(0, None, 2), slice(1, None, 2)):  # Each has separate ranges.
        away = np.abs(found - told)[taken].max()
        assert 0 < away < 0.03 * np.abs(told[taken]).max()
    assert not small.graph.initializer  # Nothing is stored twice.
    # 7 bits, because without VNNI two products of 8 bits overflow their 16-bit sum.
    whole_numbers = [w for w in weights(small.graph) if w.dtype == np.int8 and w.any()]
    assert len(whole_numbers) == 4
    assert all(np.abs(w.astype(int)).max() <= 64 for w in whole_numbers)
    # Names are unique, so that none shadows another.
    assert max(names(small.graph).values()) == 1


def test_loops_in_branches_do_what_jax_does():
    """A branch selects one of two loops that share weights, as in a diffusion."""

    def fn(key, x):
        noise = portable.normal(key, x.shape)
        step = lambda x, scale: (jnp.tanh(scale * (x @ WEIGHTS[0] + WEIGHTS[1, :1])), x)
        anew = lambda: jax.lax.scan(step, noise, jnp.linspace(0.1, 1, 5))[0]
        part = lambda: jax.lax.scan(step, x + noise, jnp.linspace(0.5, 1, 3))[0]
        return jax.lax.cond(x[0, 0] > 0, anew, part)

    rewritten, draws = exporting.explicit(fn, X)
    # Both branches are taken.
    inputs = examples([X[0], -X[0], X[0] / 3, -X[0] / 3], draws)
    shapes = {k: jax.ShapeDtypeStruct(v.shape, v.dtype) for k, v in inputs[0].items()}
    graph = onnx_graph.to_onnx(rewritten, shapes, ["safe"], "loops")
    program = jax.jit(rewritten)
    wanted = np.concatenate([program(*one.values()) for one in inputs])
    np.testing.assert_allclose(made(graph, inputs), wanted, rtol=1e-4)
    (choice,) = [one for one in graph.graph.node if one.op_type == "If"]
    for branch in choice.attribute:
        assert "Loop" in [one.op_type for one in branch.g.node]


def test_weights_that_are_made_of_weights_stand_as_they_are_used():
    """Except if that takes more space, as for a weight in half precision."""
    nodes = [
        node("Gather", "stack one", "chosen"),
        node("Transpose", "chosen", "turned", perm=[1, 0]),
        node("Cast", "half", "whole", to=TensorProto.FLOAT),
        node("MatMul", "x turned", "a"),
        node("MatMul", "x whole", "b"),
        either(
            "on",
            "c",
            branch([node("Neg", "turned", "n"), node("MatMul", "x n", "then")]),
            branch([node("MatMul", "x whole", "other")]),
        ),
        node("Add", "a b", "sum"),
        node("Add", "sum c", "safe"),
    ]
    constants = {"stack": WEIGHTS, "one": np.array(1), "half": np.float16(WEIGHTS[3])}
    graph = model(nodes, "on", **constants)
    inputs = [given(on=True), given(on=False)]
    before = made(graph, inputs)
    onnx_graph._fold(graph.graph, {})
    onnx_graph.tidy(graph.graph)
    np.testing.assert_allclose(made(graph, inputs), before, rtol=1e-6)
    kinds = collections.Counter(one.op_type for one in graph.graph.node)
    assert kinds == {"Cast": 1, "MatMul": 2, "If": 1, "Add": 2}
    kept = {one.name: one for one in graph.graph.initializer}
    assert set(kept) == {"turned", "half"}
    np.testing.assert_array_equal(numpy_helper.to_array(kept["turned"]), WEIGHTS[1].T)
    (choice,) = [one for one in graph.graph.node if one.op_type == "If"]
    assert [len(one.g.node) for one in choice.attribute] == [1, 1]


def looped(output, weights, then):
    """Returns a loop of three turns that carries weights.

    X W W W, and the initial W.
    """
    of = helper.make_tensor_value_info
    square = lambda name: of(name, TensorProto.FLOAT, [4, 4])
    switch = lambda name: of(name, TensorProto.BOOL, [])
    body = helper.make_graph(
        [
            node("Identity", "go", "again"),
            node("MatMul", "h w", "next"),
            node("Identity", "w", "same"),
        ],
        "body",
        [of("i", TensorProto.INT64, []), switch("go"), value("h"), square("w")],
        [switch("again"), value("next"), square("same")],
    )
    inputs = ["turns", "yes", "x", weights]
    return helper.make_node("Loop", inputs, [output, then], body=body)


@pytest.mark.parametrize("inside", [False, True])
def test_weights_of_loops_stay_where_they_are(inside):
    """Also if a second loop, or a branch, takes them from the first."""
    nodes = [looped("a", "weights", "after"), looped("b", "after", "end")]
    if inside:
        own = [branch([node("MatMul", "x end", name)]) for name in ("one", "two")]
        nodes.append(either("on", "c", *own))
    else:
        nodes.append(node("MatMul", "x end", "c"))
    nodes += [node("Add", "a b", "sum"), node("Add", "sum c", "safe")]
    graph = model(
        nodes,
        "on",
        turns=np.array(3),
        yes=np.array(True),
        weights=WEIGHTS[0],
    )
    onnx_graph._hoist(graph.graph)
    wanted = 2 * X @ np.linalg.matrix_power(WEIGHTS[0], 3) + X @ WEIGHTS[0]
    np.testing.assert_allclose(made(graph, [given(on=True)]), wanted, rtol=1e-4)
    for loop in graph.graph.node[:2]:
        assert list(loop.input) == ["turns", "yes", "x"]
        assert len(loop.output) == 1
