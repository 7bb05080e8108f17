"""Counts of rows within the distance of the k-th neighbour of the same class."""

import jax
import jax.numpy as jnp


def nearer_on_a_line(x, labels, kept, k, max_k):
    """Counts nearer rows for ``x: float[n]`` by sorting; valid for ``kept`` rows."""
    n = len(x)
    order = jnp.lexsort((x, labels, ~kept))
    back = lambda sorted_: jnp.zeros_like(sorted_).at[order].set(sorted_)
    by_class, classes, real, k_sorted = (a[order] for a in (x, labels, kept, k))
    radius, nearer = _radius_on_a_line(by_class, classes, real, k_sorted, max_k)
    place = jnp.arange(n)
    other = (classes[1:] != classes[:-1]) | (real[1:] != real[:-1])
    starts = jnp.concatenate([jnp.ones(1, bool), other])
    start = jax.lax.cummax(jnp.where(starts, place, 0))
    end = n - jnp.flip(
        jax.lax.cummax(jnp.flip(jnp.where(jnp.roll(starts, -1), n - 1 - place, 0)))
    )
    _, same_closed = _within(by_class, by_class, radius, start, end)
    radius, nearer, same_closed = map(back, (radius, nearer, same_closed))
    line = jnp.sort(jnp.where(kept, x, jnp.inf))
    zeros = jnp.zeros_like(line, jnp.int32)
    whole = zeros, zeros + n
    opened, closed = _within(x, line, radius, *whole)
    return expected(k, opened, closed, nearer, same_closed)


def nearer_in_space(x, labels, kept, k, max_k, block):
    """Counts nearer rows for ``x: float[n, d]``, ``block`` rows at a time."""

    def of_row(row):
        difference = x - x[row][None]
        distance = jnp.sum(difference * difference, axis=1)
        distance = jnp.where(kept, distance, jnp.inf)
        same = jnp.where(labels == labels[row], distance, jnp.inf)
        others = jnp.where(jnp.arange(len(x)) == row, jnp.inf, same)
        nearest, _ = jax.lax.top_k(-others, max_k)
        radius = -nearest[jnp.maximum(k[row] - 1, 0)]
        count = lambda is_in: jnp.sum(is_in, dtype=jnp.int32)
        return expected(
            k[row],
            count(distance < radius),
            count(distance <= radius),
            count(others < radius),
            count(same <= radius),
        )

    return jax.lax.map(of_row, jnp.arange(len(x)), batch_size=block)


def expected(k, opened, closed, same_nearer, same_closed):
    """Returns the expected number of rows nearer than the k-th of the same class.

    The row itself is included. Ties are averaged over all orders, as for infinitely
    small random shifts. Without ties the result is ``opened``.

    Args:
      k: index of the neighbour of the same class.
      opened, closed: number of rows at a smaller, or at most equal, distance, with the
        row itself (except in ``opened`` at distance 0).
      same_nearer: number of other rows of the same class at a smaller distance.
      same_closed: number of rows of the same class at most at that distance, with the
        row itself.

    Example:
      Three rows of its class and three others coincide with a row: its second neighbour
      has the expected position 2 * 7 / 4.

      >>> expected(jnp.int32(2), jnp.int32(0), jnp.int32(7), jnp.int32(0), jnp.int32(4))
      Array(3.5, dtype=float32)
    """
    surely = jnp.maximum(opened, 1)
    tied, same_tied = closed - surely, same_closed - 1 - same_nearer
    place = (k - same_nearer) * (tied + 1) / jnp.maximum(same_tied + 1, 1)
    return surely + place - 1


def _radius_on_a_line(x, labels, kept, k, max_k):
    """Returns the distance to the k-th nearest row of the class, and the nearer rows.

    Rows are sorted by class and value, so the nearest rows are within k positions.
    """
    distances = []
    for offset in range(1, max_k + 1):
        peers = (labels[offset:] == labels[:-offset]) & kept[offset:]
        apart = jnp.where(peers, x[offset:] - x[:-offset], jnp.inf)
        none = jnp.full(offset, jnp.inf, x.dtype)
        distances += [jnp.concatenate([apart, none]), jnp.concatenate([none, apart])]
    distances = jnp.sort(jnp.stack(distances), axis=0)
    place = jnp.maximum(k - 1, 0)[None]
    radius = jnp.take_along_axis(distances, place, axis=0)[0]
    return radius, jnp.sum(distances < radius[None], axis=0, dtype=jnp.int32)


def _within(x, line, radius, low, high):
    """Counts entries of sorted ``line[low:high]`` nearer than, and within, radius."""
    # Compares distances instead of interval ends, which round differently.
    count = lambda leads: _count_leading(line, leads, low, high)
    opened = count(lambda y: y - x < radius) - count(lambda y: x - y >= radius)
    closed = count(lambda y: y - x <= radius) - count(lambda y: x - y > radius)
    return jnp.maximum(opened, 0), closed


def _count_leading(line, leads, low, high):
    """Finds, per row, the index of the first entry that does not pass."""
    n = len(line)

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        passes = leads(line[jnp.minimum(middle, n - 1)]) & (middle < high)
        return jnp.where(passes, middle + 1, low), jnp.where(passes, high, middle)

    bounds = low.astype(jnp.int32), high.astype(jnp.int32)
    return jax.lax.fori_loop(0, n.bit_length(), halve, bounds)[0]
