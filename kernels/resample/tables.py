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


SPARE = 8  # Candidates beyond the k nearest, so that most rows need no second search.


def nearest(x, labels, mask, k_neighbors, block):
    """Returns the k nearest rows of the same class, and the number of real ones.

    Inner products bound each distance and select candidates, which exact differences
    order. Rows for which the bounds leave a choice are compared with all rows.
    """
    n = len(x)
    flat = jax.lax.stop_gradient(x).reshape(n, -1)
    if flat.dtype not in (jnp.float32, jnp.float64):
        flat = flat.astype(jnp.float32)
    # Rows without a finite square must not affect the centre or other rows' distances.
    usable = mask & jnp.isfinite(jnp.sum(flat * flat, axis=1))
    flat = jnp.where(usable[:, None], flat, 0)
    centred = flat - _centre(flat, usable)[None]
    squares = jnp.sum(centred * centred, axis=1)
    lengths = jnp.sqrt(squares)
    rounding = (flat.shape[1] + 8) * jnp.finfo(flat.dtype).eps
    k, candidates = min(k_neighbors, n), min(k_neighbors + SPARE, n)

    def peers_of(row):
        return mask & (labels == labels[row]) & (jnp.arange(n) != row) & mask[row]

    def apart(row, others, rows):
        """Returns exact distances; the largest number if undefined, inf if no peer."""
        difference = rows - flat[row][None]
        distance = jnp.sum(difference * difference, axis=1)
        known = usable[others] & usable[row] & jnp.isfinite(distance)
        distance = jnp.where(known, distance, jnp.finfo(flat.dtype).max)
        return jnp.where(peers_of(row)[others], distance, jnp.inf)

    def select(row):
        products = jnp.matmul(
            centred, centred[row], precision=jax.lax.Precision.HIGHEST
        )
        distance = squares - 2 * products  # Omits |x_row|^2, the same for all.
        slack = rounding * jnp.square(lengths + lengths[row])
        known = usable & usable[row] & jnp.isfinite(slack)
        peer = peers_of(row)
        low = jnp.where(known, distance - slack, jnp.finfo(flat.dtype).max)
        low = jnp.where(peer, low, jnp.inf)
        bounds, found = jax.lax.top_k(-low, candidates)
        high = jnp.where(known, distance + slack, jnp.inf)[found]
        _, order = jax.lax.sort((apart(row, found, flat[found]), found), num_keys=2)
        sure = (jnp.sum(peer) <= candidates) | (
            # Not bounds[-1]: XLA would sort all rows instead of selecting.
            jnp.max(-bounds) > jnp.sort(high)[k - 1]
        )
        return order[:k], sure, jnp.sum(peer)

    places = jnp.arange(n, dtype=jnp.int32)
    found, sure, num_peers = jax.lax.map(select, places, batch_size=min(block, n))
    unsure = jnp.argsort(sure).astype(jnp.int32)

    def compare_with_all(number, found):
        row = unsure[number]
        _, order = jax.lax.top_k(-apart(row, places, flat), k)
        return found.at[row].set(order)

    # A loop of varying length costs nothing where every row is sure, also under vmap.
    found = jax.lax.fori_loop(0, jnp.sum(~sure), compare_with_all, found)
    num_real = jnp.minimum(num_peers, k).astype(jnp.int32)
    found = jnp.where(jnp.arange(k)[None] < num_real[:, None], found, places[:, None])
    pad = jnp.broadcast_to(places[:, None], (n, k_neighbors - k))
    return jnp.concatenate([found, pad], axis=1), num_real


def _centre(rows, usable):
    """Returns the mean of the half of the rows that is closest to the overall mean.

    Distant rows do not move this centre, so other rows keep their digits.
    """
    mean = lambda kept: jnp.sum(
        jnp.where(kept[:, None], rows / jnp.maximum(jnp.sum(kept), 1), 0), axis=0
    )
    distance = jnp.sum(jnp.abs(rows - mean(usable)[None]), axis=1)
    distance = jnp.where(usable, distance, jnp.inf)
    middle = jnp.sort(distance)[jnp.maximum(jnp.sum(usable) - 1, 0) // 2]
    return mean(usable & (distance <= middle))


def by_class(labels, mask, num_classes, tie_break=None):
    """Returns order, starts and counts; ``tie_break`` orders the rows of a class."""
    bin_ = jnp.where(mask, labels, num_classes)
    keys = (bin_,) if tie_break is None else (tie_break, bin_)
    order = jnp.lexsort(keys).astype(jnp.int32)
    one_hot = bin_[:, None] == jnp.arange(num_classes)[None]
    counts = jnp.sum(one_hot, axis=0, dtype=jnp.int32)
    return order, jnp.cumsum(counts, dtype=jnp.int32) - counts, counts
