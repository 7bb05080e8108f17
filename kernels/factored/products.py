"""Products with a parameter, and their factors as rows."""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.factored.kernel import Factors


class Alias(NamedTuple):
    """A variable that equals a parameter up to transposition and dtype."""

    leaf: int  # index among the leaves of the parameters
    axes: tuple[int, ...]  # the leaf's axis for each axis of the variable
    fixed: bool = False  # whether it has no gradient, by ``stop_gradient``


class View(NamedTuple):
    """A parameter viewed as a matrix: its row axes and its column axes."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def fold(self, matrix, shape):
        """Reshapes ``float[..., rows, columns]`` to ``float[..., *shape]``."""
        order = (*self.rows, *self.columns)
        lead = matrix.shape[:-2]
        unfolded = matrix.reshape(*lead, *(shape[axis] for axis in order))
        back = [len(lead) + order.index(axis) for axis in range(len(shape))]
        return unfolded.transpose(*range(len(lead)), *back)


class Use(NamedTuple):
    """One product of a parameter with another value."""

    path: tuple[int, ...]  # indices of the enclosing equations, outermost first
    lengths: tuple[int, ...]  # lengths of the enclosing scans, outermost first
    eqn: Any
    at: int  # input index of the parameter in the equation
    alias: Alias
    view: View

    @property
    def is_dense(self) -> bool:
        """Returns whether it is a matrix product of a matrix parameter."""
        name = self.eqn.primitive.name
        sizes = [len(axes) for axes in self.view]
        return name == "dot_general" and sizes == [1, 1]

    @property
    def num_rows(self) -> int:
        """Rows of the factors of all runs of the product."""
        result = self.eqn.outvars[0].aval
        shape = self.eqn.invars[self.at].aval.shape
        columns = [shape[self.alias.axes.index(axis)] for axis in self.view.columns]
        return math.prod(self.lengths) * (result.size // math.prod(columns))

    def tap(self, zero) -> Factors:
        """Returns zeros in the shapes of the other input and of the result."""

        def zeros(aval):
            return jnp.broadcast_to(
                zero.astype(aval.dtype), (*self.lengths, *aval.shape)
            )

        other, result = self.eqn.invars[1 - self.at], self.eqn.outvars[0]
        return Factors(zeros(other.aval), zeros(result.aval))

    def rows(self, captured: Factors) -> Factors:
        """Converts captured values to ``float[r, rows]`` and ``float[r, columns]``."""
        flatten = RULES[self.eqn.primitive.name].flatten
        for _ in self.lengths:
            flatten = jax.vmap(flatten, in_axes=(None, 0, 0))
        return Factors(*map(_last_two, flatten(self, *captured)))


class Rule(NamedTuple):
    """Factorisation rule of one kind of product."""

    view: Callable  # (eqn, at, axes) -> View, or None if the rule does not apply
    flatten: Callable  # (use, other input, cotangent) -> both as rows


def joined(uses, caught) -> Factors:
    """Concatenates the factors of all uses of a leaf in the view of the first use."""
    parts = []
    for use in uses:
        inputs, cotangents = use.rows(caught[use.path])
        transposed = use.view != uses[0].view
        parts.append((cotangents, inputs) if transposed else (inputs, cotangents))
    if len(parts) == 1:
        return Factors(*parts[0])
    return Factors(*map(jnp.concatenate, zip(*parts, strict=True)))


def _last_two(x):
    return x.reshape(-1, x.shape[-1])


def _matrix(x, rows, columns):
    height = math.prod(x.shape[axis] for axis in rows)
    width = math.prod(x.shape[axis] for axis in columns)
    return x.transpose(*rows, *columns).reshape(height, width)


def _matmul_view(eqn, at, axes):
    contracted, batch = eqn.params["dimension_numbers"]
    if batch[0]:
        return None
    rows = {axes[axis] for axis in contracted[at]}
    return View(tuple(sorted(rows)), tuple(sorted(set(axes) - rows)))


def _matmul_rows(use, x, y):
    at, axes = use.at, use.alias.axes
    contracted, _ = use.eqn.params["dimension_numbers"]
    partner = {
        axes[own]: other
        for own, other in zip(contracted[at], contracted[1 - at], strict=True)
    }
    summed = [partner[axis] for axis in use.view.rows]
    free = [axis for axis in range(x.ndim) if axis not in summed]
    # The free axes of the left factor come first in the result, then the right's.
    start = 0 if at == 0 else len(free)
    across = [axis for axis in axes if axis in use.view.columns]
    columns = [start + across.index(axis) for axis in use.view.columns]
    rows = [axis for axis in range(y.ndim) if axis not in columns]
    return _matrix(x, free, summed), _matrix(y, rows, columns)


def _convolution_view(eqn, at, axes):
    groups = eqn.params["feature_group_count"], eqn.params["batch_group_count"]
    if at != 1 or groups != (1, 1):
        return None
    out, *rows = (axes[axis] for axis in eqn.params["dimension_numbers"].rhs_spec)
    return View(tuple(sorted(rows)), (out,))


def _convolution_rows(use, x, y):
    numbers = use.eqn.params["dimension_numbers"]
    rows_of, _, *space_of = numbers.lhs_spec
    out, channels, *space = (use.alias.axes[axis] for axis in numbers.rhs_spec)
    del out
    patches = _patches(use.eqn, x.transpose(rows_of, *space_of, numbers.lhs_spec[1]))
    positions = range(1 + len(space))
    summed = [len(positions) + [*space, channels].index(a) for a in use.view.rows]
    row, column, *rest = numbers.out_spec
    return _matrix(patches, positions, summed), _matrix(y, (row, *rest), (column,))


def _patches(eqn, x):
    """Extracts patches ``float[n, *out space, *kernel, channels]`` from ``x``."""
    p = eqn.params
    ends = zip(p["padding"], p["lhs_dilation"], strict=True)
    padding = [(low, high, dilation - 1) for (low, high), dilation in ends]
    x = jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *padding, (0, 0, 0)])
    numbers, strides = p["dimension_numbers"], p["window_strides"]
    kernel = [eqn.invars[1].aval.shape[axis] for axis in numbers.rhs_spec[2:]]
    size = [eqn.outvars[0].aval.shape[axis] for axis in numbers.out_spec[2:]]

    def shifted(offset):
        start = [o * d for o, d in zip(offset, p["rhs_dilation"], strict=True)]
        span = [(n - 1) * stride + 1 for n, stride in zip(size, strides, strict=True)]
        stop = [begin + n for begin, n in zip(start, span, strict=True)]
        whole = x.shape[0], x.shape[-1]
        return jax.lax.slice(
            x, (0, *start, 0), (whole[0], *stop, whole[1]), (1, *strides, 1)
        )

    offsets = itertools.product(*map(range, kernel))
    stacked = jnp.stack([shifted(offset) for offset in offsets], axis=-2)
    return stacked.reshape(*stacked.shape[:-2], *kernel, x.shape[-1])


RULES = {
    "dot_general": Rule(_matmul_view, _matmul_rows),
    "conv_general_dilated": Rule(_convolution_view, _convolution_rows),
}
