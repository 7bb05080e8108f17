"""How many rows lie nearer than the k-th of the same class."""

import jax
import jax.numpy as jnp


def nearer_on_a_line(x, labels, kept, k, max_k):
    """``int32[n]`` for ``float[n]``, by sorting; only ``kept`` rows mean anything."""
    radius = _radius_on_a_line(x, labels, kept, k, max_k)
    line = jnp.sort(jnp.where(kept, x, jnp.inf))
    # Distances are compared, not ends of intervals, whose rounding is another.
    below = lambda other: (x - other >= radius) & (other < x)
    above = lambda other: (other - x >= radius) & (other > x)
    first = _count_leading(line, below)
    last = _count_leading(line, lambda other: ~above(other))
    return last - first


def nearer_in_space(x, labels, kept, k, max_k, block):
    """``int32[n]`` for ``float[n, d]``, ``block`` rows of distances at a time."""

    def of_row(row):
        difference = x - x[row][None]
        distance = jnp.sum(difference * difference, axis=1)
        distance = jnp.where(kept, distance, jnp.inf)
        other = jnp.arange(len(x)) != row
        same = jnp.where((labels == labels[row]) & other, distance, jnp.inf)
        nearest, _ = jax.lax.top_k(-same, max_k)
        radius = -nearest[jnp.maximum(k[row] - 1, 0)]
        return jnp.sum((distance < radius) | (distance == 0), dtype=jnp.int32)

    return jax.lax.map(of_row, jnp.arange(len(x)), batch_size=block)


def _radius_on_a_line(x, labels, kept, k, max_k):
    """Distance to the k-th nearest of the same class: it is within k places."""
    n = len(x)
    order = jnp.lexsort((x, labels, ~kept))
    x, labels, kept, k = (a[order] for a in (x, labels, kept, k))
    distances = []
    for offset in range(1, max_k + 1):
        peers = (labels[offset:] == labels[:-offset]) & kept[offset:]
        apart = jnp.where(peers, x[offset:] - x[:-offset], jnp.inf)
        none = jnp.full(offset, jnp.inf, x.dtype)
        distances += [jnp.concatenate([apart, none]), jnp.concatenate([none, apart])]
    distances = jnp.sort(jnp.stack(distances), axis=0)
    place = jnp.maximum(k - 1, 0)[None]
    radius = jnp.take_along_axis(distances, place, axis=0)[0]
    return jnp.zeros(n, x.dtype).at[order].set(radius)


def _count_leading(line, is_leading):
    """How many first entries pass, by bisection; each row asks its own question."""
    n = len(line)

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        passes = is_leading(line[jnp.minimum(middle, n - 1)]) & (middle < high)
        return jnp.where(passes, middle + 1, low), jnp.where(passes, high, middle)

    low = jnp.zeros_like(line, jnp.int32)
    bounds = low, low + n
    return jax.lax.fori_loop(0, n.bit_length(), halve, bounds)[0]
