"""Factored gradients of any program agree with plain gradient descent per client."""

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

from jaxanon import kernels

pytestmark = pytest.mark.slow

CLIENTS, ROWS, WIDTHS = 3, 2, (31, 29, 23)
RATE = 0.1


def _draw(*shapes):
    keys = jax.random.split(jax.random.key(0), len(shapes))
    pairs = zip(keys, shapes, strict=True)
    return [jax.random.normal(k, shape) / shape[0] ** 0.5 for k, shape in pairs]


def _plain(first=WIDTHS[:2], second=WIDTHS[1:]):
    return dict(zip(("first", "second"), _draw(first, second), strict=True))


def _two(layer):
    return lambda p, x: layer(jnp.tanh(layer(x, p["first"])), p["second"])


def _linen():
    net = nn.Sequential([nn.Dense(WIDTHS[1]), jnp.tanh, nn.Dense(WIDTHS[2])])
    params = net.init(jax.random.key(0), jnp.ones((1, WIDTHS[0])))
    return params, lambda params, x: net.apply(params, x)


def _nnx():
    rngs = nnx.Rngs(0)
    layers = [nnx.Linear(a, b, rngs=rngs) for a, b in (WIDTHS[:2], WIDTHS[1:])]
    graph, params = nnx.split(nnx.Sequential(layers[0], jnp.tanh, layers[1]))
    return params, lambda params, x: nnx.merge(graph, params)(x)


def _equinox():
    keys = jax.random.split(jax.random.key(0), 2)
    pairs = zip((WIDTHS[:2], WIDTHS[1:]), keys, strict=True)
    layers = [eqx.nn.Linear(*sizes, key=key) for sizes, key in pairs]
    net = eqx.nn.Sequential([layers[0], eqx.nn.Lambda(jnp.tanh), layers[1]])
    params, static = eqx.partition(net, eqx.is_array)
    return params, lambda params, x: jax.vmap(eqx.combine(params, static))(x)


def _shared():
    (square,) = _draw((31, 31))
    return {"w": square}, lambda p, x: jnp.sin(jnp.tanh(x @ p["w"]) @ p["w"].T)


def _scanned():
    first, state = _draw((31, 29), (29, 29))

    def run(params, x):
        step = lambda h, x: (jnp.tanh(x @ params["in"] + h @ params["state"]), None)
        return jax.lax.scan(step, jnp.zeros((1, 29), x.dtype), x[:, None])[0]

    return {"in": first, "state": state}, run


def _stopped():
    (square,) = _draw((31, 31))

    def run(params, x):
        fixed = jax.lax.stop_gradient(params["w"])
        return jnp.tanh(x @ params["w"]) @ fixed

    return {"w": square}, run


# A function that returns parameters and a model, and the leaves with full gradients.
WAYS = {
    "matmul": (lambda: (_plain(), _two(lambda x, w: x @ w)), []),
    "transposed": (
        lambda: (_plain(WIDTHS[1::-1], WIDTHS[:0:-1]), _two(lambda x, w: (w @ x.T).T)),
        [],
    ),
    "einsum": (
        lambda: (_plain(), _two(lambda x, w: jnp.einsum("bi,io->bo", x, w))),
        [],
    ),
    "linen": (_linen, ["bias", "bias"]),
    "nnx": (_nnx, ["bias", "bias"]),
    "equinox": (_equinox, ["bias", "bias"]),
    "kernels.matmul": (lambda: (_plain(), _two(kernels.matmul)), []),
    "jit and checkpoint": (
        lambda: (_plain(), jax.jit(jax.checkpoint(_two(lambda x, w: x @ w)))),
        [],
    ),
    "shared": (_shared, []),
    "scan": (_scanned, []),
    "stop_gradient": (_stopped, []),
}


def _loss(model):
    return lambda params, x: jnp.mean(jnp.square(model(params, x) - 1))


@pytest.mark.parametrize("name", WAYS)
def test_clients_end_where_plain_gradient_descent_ends(name):
    """Two steps and the query loss, with the gradient for the shared weights."""
    make, names = WAYS[name]
    params, model = make()
    loss = _loss(model)
    left = kernels.leaves_without_factors(loss, params, jnp.ones((1, WIDTHS[0])))
    assert len(left) == len(names)
    assert all(want in path for want, path in zip(names, left, strict=True))
    with jax.enable_x64():
        wide = lambda tree: jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), tree)
        params = wide(params)
        x = wide(jax.random.normal(jax.random.key(1), (CLIENTS, ROWS, WIDTHS[0])))

        def factored(params, x):
            own = params
            for _ in range(2):
                _, grads = kernels.value_and_grad(loss)(own, x[:1])
                own = kernels.sgd_step(own, grads, RATE)
            kinds = jax.tree.leaves(own, is_leaf=_is_kernel)
            counts.append(sum(map(_is_kernel, kinds)))
            value = kernels.apply_factored(loss, own, x)
            return value, kernels.materialize(own)

        def plain(params, x):
            own = params
            for _ in range(2):
                grads = jax.grad(loss)(own, x[:1])
                own = jax.tree.map(lambda p, g: p - RATE * g, own, grads)
            return loss(own, x), own

        counts = []

        def mean(one):
            def of(params):
                values, own = jax.vmap(one, in_axes=(None, 0))(params, x)
                return jnp.mean(values), own

            return jax.jit(jax.value_and_grad(of, has_aux=True))(params)

        chex.assert_trees_all_close(mean(factored), mean(plain), rtol=1e-9, atol=1e-12)
        assert set(counts) == {len(jax.tree.leaves(params)) - len(names)}


def _is_kernel(leaf):
    return isinstance(leaf, kernels.FactoredKernel)


@pytest.mark.parametrize("second_order", [True, False])
def test_steps_in_a_loop_are_steps_one_by_one(second_order):
    """Each kernel starts with a pending change; the bias and ``narrow`` stay dense."""
    first, second, narrow = _draw((31, 29), (29, 23), (23, 2))
    params = {"first": first, "second": second, "narrow": narrow, "bias": first[0]}
    rest = {"rest": _draw((2, 23))[0]}

    def loss(params, rest, x):
        y = jnp.tanh(jnp.tanh(x @ params["first"] + params["bias"]) @ params["second"])
        return jnp.mean(jnp.square(jnp.tanh(y @ params["narrow"]) @ rest["rest"] - 1))

    def stepped(params, rest, x):
        _, grads = kernels.value_and_grad(loss)(params, rest, x)
        if not second_order:
            grads = jax.lax.stop_gradient(grads)
        return kernels.sgd_step(params, grads, RATE)

    def query(steps):
        def of(params, x):
            own = steps(stepped(params, rest, x[0]), rest, x[1])
            kinds.append([_is_kernel(own[name]) for name in sorted(own)])
            value = kernels.apply_factored(loss, own, rest, x[2])
            return value, kernels.materialize(own)

        clients = jax.vmap(of, in_axes=(None, 0))

        def mean(params, x):
            values, own = clients(params, x)
            return jnp.mean(values), own

        return jax.jit(jax.value_and_grad(mean, has_aux=True))

    def one_by_one(params, rest, x):
        for _ in range(3):
            params = stepped(params, rest, x)
        return params

    def looped(params, rest, x):
        settings = {"learning_rate": RATE, "num_steps": 3, "second_order": second_order}
        return kernels.sgd_steps(loss, params, rest, x, **settings)

    kinds = []
    with jax.enable_x64(), jax.numpy_rank_promotion("allow"):
        wide = lambda tree: jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), tree)
        params, rest = wide(params), wide(rest)
        x = wide(jax.random.normal(jax.random.key(1), (CLIENTS, 3, 1, 31)))
        got, expected = query(looped)(params, x), query(one_by_one)(params, x)
        chex.assert_trees_all_close(got, expected, rtol=1e-10, atol=1e-13)
    assert kinds == [[False, True, False, True]] * 2


def test_more_steps_make_no_larger_program():
    """Counts products: a loop holds one step, whose factors have room for all."""
    params, model = _plain(), _two(lambda x, w: x @ w)
    loss = _loss(model)

    def products(num_steps):
        def query(params, x):
            own = kernels.sgd_steps(
                loss, params, x[:1], learning_rate=RATE, num_steps=num_steps
            )
            return kernels.apply_factored(loss, own, x[1:])

        x = jax.ShapeDtypeStruct((3, WIDTHS[0]), jnp.float32)
        return jax.jit(jax.grad(query)).lower(params, x).as_text().count("dot_general")

    assert products(2) == products(6) > 0


OTHERS = {
    "sliced": lambda w, x: x[:, :9] @ w[:9],
    "squared": lambda w, x: x @ w + jnp.sum(w**2),
    "in cond": lambda w, x: jax.lax.cond(x[0, 0] > 0, lambda: x @ w, lambda: -x @ w),
    "stacked for a scan": lambda w, x: jax.lax.scan(
        lambda total, row: (total + x[0] @ row, None), 0.0, w.T
    )[0],
    "once per example": lambda w, x: jnp.einsum("bi,bi->b", x, w[: len(x)]),
    "returned": lambda w, x: jnp.concatenate([x @ w, w[:1]]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_uses_get_ordinary_gradients_and_are_named(name):
    loss = lambda p, x: jnp.mean(jnp.square(OTHERS[name](p["w"], x)))
    (w,) = _draw((31, 31))
    x = jax.random.normal(jax.random.key(1), (ROWS, 31))
    assert kernels.leaves_without_factors(loss, {"w": w}, x) == ["['w']"]
    got = jax.jit(kernels.value_and_grad(loss))({"w": w}, x)
    expected = jax.jit(jax.value_and_grad(loss))({"w": w}, x)
    chex.assert_trees_all_close(got, expected, rtol=1e-5, atol=1e-7)
    # A pending change of such a kernel is multiplied out.
    change = kernels.Factors(*(0.3 * draw for draw in _draw((1, 31), (1, 31))))
    held = {"w": kernels.FactoredKernel(w, change)}
    got = jax.jit(lambda p: kernels.apply_factored(loss, p, x))(held)
    want = loss(kernels.materialize(held), x)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_factors_that_do_not_pay_are_named():
    loss = lambda w, x: jnp.sum(x @ w)
    w = jnp.ones((31, 31))
    # 15 (31 + 31) = 930 < 961 = 31 * 31, and 16 (31 + 31) = 992 is not.
    assert kernels.leaves_without_factors(loss, w, jnp.ones((15, 31))) == []
    assert kernels.leaves_without_factors(loss, w, jnp.ones((16, 31))) == [""]


def test_auxiliary_results_and_fixed_arguments():
    """A kernel among the arguments is used thinly and gets no gradient."""
    first, second = _plain().values()
    change = kernels.Factors(*(0.3 * draw for draw in _draw((1, 29), (1, 23))))
    held = kernels.FactoredKernel(second, change)

    def loss(w, other, x):
        y = jnp.tanh(x @ w) @ other
        return jnp.mean(y), {"y": y}

    x = jax.random.normal(jax.random.key(2), (1, 31))
    got = kernels.value_and_grad(loss, has_aux=True)(first, held, x)
    assert isinstance(got[1], kernels.Factors)
    got = got[0], kernels.materialize_gradient(got[1])
    expected = jax.value_and_grad(loss, has_aux=True)(
        first, kernels.materialize(held), x
    )
    chex.assert_trees_all_close(got, expected, rtol=1e-5, atol=1e-7)
