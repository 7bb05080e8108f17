"""Tables of class positions and neighbours for resampling."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class BalanceTable(NamedTuple):
    """Precomputed data for resampling one client's ``n`` rows.

    Stacked tables have a leading ``clients`` axis on every field.
    """

    order: jax.Array  # int32[n]; rows class by class, padding last
    starts: jax.Array  # int32[classes]; start of each class in ``order``
    counts: jax.Array  # int32[classes]; real rows per class
    neighbors: jax.Array  # int32[n, k]; nearest first, then the row itself
    num_neighbors: jax.Array  # int32[n]; number of real neighbours


class Rows(NamedTuple):
    """Resampled rows; ``mask`` is False if the class or client was empty."""

    x: jax.Array  # float[m, ...]
    labels: jax.Array  # int32[m]
    mask: jax.Array  # bool[m]


def nearest(x, labels, mask, k_neighbors, block):
    """Returns the k nearest rows of the same class, and the number of real ones."""
    n = len(x)
    flat = x.reshape(n, -1)
    if flat.dtype not in (jnp.float32, jnp.float64):
        flat = flat.astype(jnp.float32)
    # Distances come from inner products; centring reduces the rounding error. Rows
    # without a finite square must not affect the mean or other rows' distances.
    usable = mask & jnp.isfinite(jnp.sum(flat * flat, axis=1))
    count = jnp.maximum(jnp.sum(usable), 1)
    mean = jnp.sum(jnp.where(usable[:, None], flat / count, 0), axis=0)
    flat = jnp.where(mask[:, None], flat - mean[None], 0)
    squares = jnp.sum(flat * flat, axis=1)
    k = min(k_neighbors, n)

    def of_row(row):
        products = jnp.matmul(flat, flat[row], precision=jax.lax.Precision.HIGHEST)
        distance = squares - 2 * products  # Omits |x_row|^2, the same for all.
        # Peers with undefined distance are far, but nearer than other classes.
        known = jnp.isfinite(distance)
        nearness = jnp.where(known, -distance, jnp.finfo(distance.dtype).min)
        peer = mask & (labels == labels[row]) & (jnp.arange(n) != row) & mask[row]
        _, found = jax.lax.top_k(jnp.where(peer, nearness, -jnp.inf), k)
        num_real = jnp.minimum(jnp.sum(peer), k).astype(jnp.int32)
        found = jnp.where(jnp.arange(k) < num_real, found, row)
        pad = jnp.full(k_neighbors - k, row, found.dtype)
        return jnp.concatenate([found, pad]).astype(jnp.int32), num_real

    return jax.lax.map(of_row, jnp.arange(n), batch_size=min(block, n))


def by_class(labels, mask, num_classes, tie_break=None):
    """Returns order, starts and counts; ``tie_break`` orders the rows of a class."""
    bin_ = jnp.where(mask, labels, num_classes)
    keys = (bin_,) if tie_break is None else (tie_break, bin_)
    order = jnp.lexsort(keys).astype(jnp.int32)
    one_hot = bin_[:, None] == jnp.arange(num_classes)[None]
    counts = jnp.sum(one_hot, axis=0, dtype=jnp.int32)
    return order, jnp.cumsum(counts, dtype=jnp.int32) - counts, counts
