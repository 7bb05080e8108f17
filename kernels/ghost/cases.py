"""Models shared by the tests and the benchmarks."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.factored.kernel import matmul
from jaxanon.kernels.ghost.recurrent import lstm


class BenchmarkCase(NamedTuple):
    """A per-example loss, its parameters, input shape and leaves without factors."""

    loss_fn: Callable  # (params, float[B, *shape]) -> float[B]
    params: Callable  # key -> tree of arrays
    shape: tuple[int, ...]
    dense: tuple[str, ...]  # leaves that fall back to per-example gradients


def _weights(**shapes):
    """Returns ``key -> {name: float[shape]}``, with values small enough for tanh."""

    def init(key):
        keys = jax.random.split(key, len(shapes))
        pairs = zip(keys, shapes.items(), strict=True)
        draw = lambda key, shape: 0.5 * jax.random.normal(key, shape)
        return {name: draw(key, shape) for key, (name, shape) in pairs}

    return init


def _mean_square(y):
    return jnp.mean(jnp.square(y).reshape(len(y), -1), axis=1)


def _mlp(params, x):
    hidden = jnp.tanh(matmul(x, params["first"]) + params["bias"][None])
    return _mean_square(hidden @ params["second"])


def _conv_dense(params, x):
    numbers = "NWC", "WIO", "NWC"
    y = jax.lax.conv_general_dilated(
        x, params["conv"], (2,), "SAME", dimension_numbers=numbers
    )
    y = jnp.tanh(y + params["bias"][None, None])
    y = jax.lax.conv_transpose(
        y, params["transposed"], (2,), "SAME", dimension_numbers=numbers
    )
    return _mean_square(y.reshape(len(y), -1) @ params["dense"])


def _image(params, x):
    # Channels first, dilated, with asymmetric padding and another kernel layout.
    y = jax.lax.conv_general_dilated(
        x,
        params["conv"],
        (1, 2),
        ((1, 0), (2, 1)),
        rhs_dilation=(2, 1),
        dimension_numbers=("NCHW", "OIHW", "NHWC"),
    )
    return _mean_square(jnp.sin(y))


def _recurrent(params, x):
    hidden = lstm(x, params["kernel"], params["recurrent"], params["bias"])
    return _mean_square(matmul(hidden[:, -1], params["out"]))


def _scanned(params, x):
    def step(state, x):
        return jnp.tanh(x @ params["in"] + state @ params["state"]), None

    start = jnp.zeros((len(x), 5), x.dtype)
    last, _ = jax.lax.scan(step, start, jnp.swapaxes(x, 0, 1), reverse=True)
    return _mean_square(last)


def _shared(params, x):
    # Two products, one transposed product, and a matrix on the left.
    y = jnp.tanh(jnp.tanh(x @ params["square"]) @ params["square"])
    y = jnp.sin(y @ params["square"].T)
    return _mean_square((params["left"] @ y.T).T)


def _attention(params, x):
    split = lambda name: jnp.einsum("btd,dhk->bhtk", x, params[name])
    scores = jnp.einsum("bhtk,bhsk->bhts", split("query"), split("key"))
    mixed = jnp.einsum("bhts,bhsk->bthk", jax.nn.softmax(scores), split("value"))
    return _mean_square(jnp.einsum("bthk,hkd->btd", mixed, params["out"]))


def _other(params, x):
    # Uses of a matrix without a rule.
    y = x * params["scale"][None] + jnp.cumsum(params["table"], axis=0)[None, 1]
    tied = params["tied"]
    y = jnp.tanh(y @ tied) + jnp.sum(tied**2)
    stacked = lambda y, w: (jnp.tanh(y @ w), None)
    y, _ = jax.lax.scan(stacked, y, params["stack"])
    branch = jax.lax.cond(
        y[0, 0] > 0, lambda w: y @ w, lambda w: -(y @ w), params["cond"]
    )
    return _mean_square(branch) + 0 * jnp.sum(params["tied"])


CASES = {
    "mlp": BenchmarkCase(
        _mlp, _weights(first=(7, 6), bias=(6,), second=(6, 5)), (7,), ("bias",)
    ),
    "conv": BenchmarkCase(
        _conv_dense,
        _weights(conv=(3, 2, 4), bias=(4,), transposed=(3, 4, 2), dense=(16, 3)),
        (8, 2),
        ("bias",),
    ),
    "image": BenchmarkCase(_image, _weights(conv=(6, 3, 2, 3)), (3, 5, 6), ()),
    "lstm": BenchmarkCase(
        _recurrent,
        _weights(kernel=(3, 16), recurrent=(4, 16), bias=(16,), out=(4, 2)),
        (6, 3),
        ("bias",),
    ),
    "scan": BenchmarkCase(
        _scanned, _weights(**{"in": (3, 5), "state": (5, 5)}), (4, 3), ()
    ),
    "shared": BenchmarkCase(_shared, _weights(square=(6, 6), left=(4, 6)), (6,), ()),
    "attention": BenchmarkCase(
        _attention,
        _weights(query=(6, 2, 3), key=(6, 2, 3), value=(6, 2, 3), out=(2, 3, 6)),
        (4, 6),
        (),
    ),
    "other": BenchmarkCase(
        _other,
        _weights(scale=(4,), table=(2, 4), tied=(4, 4), stack=(2, 4, 4), cond=(4, 3)),
        (4,),
        ("scale", "table", "tied", "stack", "cond"),
    ),
}


def problem(case: BenchmarkCase, key, size, dtype=jnp.float32):
    """Returns parameters and a batch of ``size`` examples with very different norms."""
    params_key, batch_key, scale_key = jax.random.split(key, 3)
    params = case.params(params_key)
    x = jax.random.normal(batch_key, (size, *case.shape))
    sizes = jnp.exp(jax.random.normal(scale_key, (size, *[1] * len(case.shape))))
    return jax.tree.map(lambda a: a.astype(dtype), (params, x * sizes))
