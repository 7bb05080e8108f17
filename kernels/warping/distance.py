"""Distance, path, and derivative of the distance along the path."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.precision import widened
from jaxanon.kernels.warping import costs, layout, wavefront


class WarpingPath(NamedTuple):
    """Matched samples from first to last; ``[pairs, time_x + time_y - 1]``."""

    x_index: jax.Array  # int32, 0 where mask is False
    y_index: jax.Array  # int32, 0 where mask is False
    mask: jax.Array  # bool, False after the end of the path


class Options(NamedTuple):
    """Static options."""

    band: int | None
    local_cost: str
    lanes: int
    ragged: bool


def _run(x, y, n, m, options, with_path):
    """Returns the minimum cost of each pair, and its path."""
    swap = x.shape[1] > y.shape[1]  # The shorter axis is the wavefront's width.
    if swap:
        x, y, n, m = y, x, m, n
    pairs, length = len(x), x.shape[1] + y.shape[1] - 1
    sizes = wavefront.sizes_for(pairs, x.shape[1], y.shape[1], options.lanes)
    make_block = layout.block_maker(
        sizes, x, y, n, m, ragged=options.ragged, band=options.band
    )
    total, path = wavefront.run(
        sizes,
        make_block,
        costs.local_cost(options.local_cost),
        layout.tracer(sizes, length) if with_path else None,
    )
    total, path = jax.tree.map(lambda a: layout.unblocked(a, pairs), (total, path))
    if with_path:
        rows, columns, mask = path
        path = WarpingPath(*((columns, rows) if swap else (rows, columns)), mask)
    return total, path


@functools.partial(jax.custom_jvp, nondiff_argnums=(4,))
def distance(x, y, n, m, options):
    """Returns ``float[pairs]``; the derivative holds the best path fixed."""
    total, _ = _run(x, y, n, m, options, with_path=False)
    return _finished(total, x, y, n, m, options)


@distance.defjvp
def _distance_jvp(options, primals, tangents):
    x, y, n, m = primals
    path = path_of(x, y, n, m, options)
    return jax.jvp(lambda x, y: _along(path, x, y, n, m, options), (x, y), tangents[:2])


def _along(path, x, y, n, m, options):
    """Computes the distance of the samples along a given path."""
    cost = costs.local_cost(options.local_cost)

    def matched(a, index):
        a = jnp.take_along_axis(widened(a), index[:, :, None], axis=1)
        return jnp.moveaxis(jnp.where(path.mask[:, :, None], a, 0), -1, 0)

    total = jnp.sum(cost(matched(x, path.x_index), matched(y, path.y_index)), axis=-1)
    return _finished(total, x, y, n, m, options)


def _finished(total, x, y, n, m, options):
    if options.local_cost == "squared_euclidean":
        total = costs.root(total)
    whole = _all_finite(x, n) & _all_finite(y, m)
    return jnp.where(
        (n > 0) & (m > 0), jnp.where(whole, total, jnp.nan), jnp.inf
    ).astype(total.dtype)


def _all_finite(x, lengths):
    padding = jnp.arange(x.shape[1])[None] >= lengths[:, None]
    return jnp.all(jnp.all(jnp.isfinite(x), axis=2) | padding, axis=1)


def path_of(x, y, n, m, options):
    """Returns the path from first to last cell, without derivative."""
    x, y = jax.lax.stop_gradient((x, y))
    _, path = _run(x, y, n, m, options, with_path=True)
    last = jnp.sum(path.mask, axis=1, dtype=jnp.int32) - 1
    backwards = last[:, None] - jnp.arange(path.mask.shape[1], dtype=jnp.int32)[None]
    mask = backwards >= 0
    backwards = jnp.maximum(backwards, 0)
    turned = lambda a: jnp.where(mask, jnp.take_along_axis(a, backwards, axis=1), 0)
    return WarpingPath(turned(path.x_index), turned(path.y_index), mask)
