"""Index arithmetic of SMOTE draws."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.precision import wide


class Picks(NamedTuple):
    """Rows to create: ``x[row] + u (x[neighbor] - x[row])``; all ``[m]``."""

    row: jax.Array  # int32
    neighbor: jax.Array  # int32
    u: jax.Array  # float32 in [0, 1); exactly 0 for a real row
    labels: jax.Array  # int32
    mask: jax.Array  # bool


def at(leaf, client, *index):
    """Returns ``leaf[index]`` of one client as one gather, without copying its rows."""
    return leaf[index] if client is None else leaf[(client, *index)]


def below(u, bound):
    """Maps uniform floats to uniform integers in ``[0, bound)``; 0 if bound is 0."""
    index = jnp.floor(u * bound.astype(u.dtype)).astype(jnp.int32)
    return jnp.clip(index, 0, jnp.maximum(bound - 1, 0))


def synthetic(uniforms, table, classes, client=None) -> Picks:
    """Picks one SMOTE row per entry of ``classes`` from uniforms ``float32[3, m]``."""
    counts = at(table.counts, client, classes)
    start = at(table.starts, client, classes)
    last = table.order.shape[-1] - 1  # An empty last class starts past the end.
    place = jnp.minimum(start + below(uniforms[0], counts), last)
    row = at(table.order, client, place)
    slot = below(uniforms[1], at(table.num_neighbors, client, row))
    neighbor = at(table.neighbors, client, row, slot)
    return Picks(row, neighbor, uniforms[2], classes, counts > 0)


def every_class(key, table, num) -> Picks:
    """Picks ``num`` SMOTE rows of every class, class by class."""
    num_classes = table.counts.shape[-1]
    classes = jnp.repeat(jnp.arange(num_classes, dtype=jnp.int32), num)
    uniforms = jax.random.uniform(key, (3, len(classes)), jnp.float32)
    return synthetic(uniforms, table, classes)


def from_balanced(key, table, samples_per_class, num, client=None) -> Picks:
    """Picks ``num`` draws with replacement from the balanced distribution."""
    uniforms = jax.random.uniform(key, (5, num), jnp.float32)
    counts = table.counts if client is None else table.counts[client]
    present = jnp.cumsum(counts > 0)
    which = below(uniforms[0], present[-1])
    classes = jnp.sum(present[None] <= which[:, None], axis=1, dtype=jnp.int32)
    classes = jnp.minimum(classes, len(counts) - 1)
    picks = synthetic(uniforms[2:], table, classes, client)
    is_real = uniforms[1] * jnp.float32(samples_per_class) < counts[classes]
    return picks._replace(u=jnp.where(is_real, 0, picks.u))


def make(x, picks, client=None):
    """Computes the rows that ``picks`` describes."""
    row, neighbor = (at(x, client, i) for i in (picks.row, picks.neighbor))
    mask = picks.mask.reshape((-1,) + (1,) * (row.ndim - 1))
    dtype = wide(x.dtype)
    u = picks.u.astype(dtype).reshape(mask.shape)
    start, end = row.astype(dtype), neighbor.astype(dtype)
    # The difference of large rows overflows, half of it does not.
    step = u * (end / 2 - start / 2)
    return jnp.where(mask, start + step + step, 0).astype(x.dtype)
