"""Arithmetic of clipping: group norms, scale factors and noise."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels import row_sums
from jaxanon.kernels.precision import wide, widened
from jaxanon.kernels.row_sums import along

SMALL = 2**12  # Leaf size up to which noise is drawn jointly with other leaves.


class Scale(NamedTuple):
    """Scaling of the rows of one group; all ``[N]``."""

    factor: jax.Array  # float in [0, 1]; 0 where real is False
    within: jax.Array  # bool: unchanged, bit for bit
    real: jax.Array  # bool: False for rows that must not be used


def squared_norms(leaves, group_of, num_groups):
    """Returns per group ``float[N]``, the sum of squares over its leaves."""
    sums = [jnp.zeros(len(leaves[0]), jnp.float32)] * num_groups
    for leaf, group in zip(leaves, group_of, strict=True):
        squares = jnp.square(widened(leaf))
        sums[group] = sums[group] + jnp.sum(squares, axis=tuple(range(1, leaf.ndim)))
    return sums


def scale(squared_norm, clip_norm) -> Scale:
    """Computes min(1, C / norm) with defined edge cases."""
    limits = jnp.finfo(squared_norm.dtype)
    clip_norm = clip_norm.astype(squared_norm.dtype)
    real = jnp.isfinite(squared_norm)
    positive = real & (squared_norm > 0)
    # The root has no derivative at 0; replacing 0 by 1 keeps gradients finite.
    norm = jnp.where(positive, jnp.sqrt(jnp.where(positive, squared_norm, 1)), 0)
    # Squares below the smallest number underflow, so tiny bounds cannot be checked.
    usable = real & (clip_norm >= 2**20 * float(limits.tiny) ** 0.5)
    within = usable & (norm <= clip_norm)
    over = usable & ~within
    factor = jnp.where(over, clip_norm / jnp.where(over, norm, 1), within)
    return Scale(factor, within, real)


def scaled(leaf, scale: Scale):
    """Returns the clipped rows of one leaf, in its dtype."""
    factor, within, real = (along(part, leaf) for part in scale)
    rows = leaf.astype(factor.dtype) * factor
    limits = jnp.finfo(leaf.dtype)
    if limits.bits < 32:
        # Rounding to nearest could exceed the bound; this rounds towards zero.
        rows = rows * (1 - float(limits.eps) / 2)
        rows = jax.lax.reduce_precision(rows, limits.nexp, limits.nmant)
    rows = jnp.where(real, rows, 0).astype(leaf.dtype)
    return jnp.where(within, leaf, rows)


def noisy(key, leaf, stddev, scale=None):
    """Adds noise to every entry of the leaf, after optional scaling of its rows."""
    return _added(_drawn(key, leaf), leaf, stddev, scale)


def noisy_leaves(keys, leaves, stddevs, scales):
    """Applies ``noisy`` to every leaf with its key and returns the same numbers.

    Each draw is slow to compile, so small leaves of similar size are drawn together:
    with JAX's default generator a longer draw starts with the numbers of a shorter one.
    """
    alike = {}
    for place, leaf in enumerate(leaves):
        if leaf.size <= SMALL:
            bits = max(leaf.size - 1, 0).bit_length()
            width = max(64, 4 ** (-(-bits // 2)))  # At most four times the size.
            alike.setdefault((width, wide(leaf.dtype)), []).append(place)
    drawn = {}
    for (width, dtype), places in alike.items():
        own = jnp.concatenate([keys[place : place + 1] for place in places])
        draw = functools.partial(jax.random.normal, shape=(width,), dtype=dtype)
        for place, row in zip(places, jax.vmap(draw)(own), strict=True):
            leaf = leaves[place]
            drawn[place] = row[: leaf.size].reshape(leaf.shape)
    noisy = []
    for place, given in enumerate(zip(leaves, stddevs, scales, strict=True)):
        if place not in drawn:
            drawn[place] = _drawn(keys[place], leaves[place])
        noisy.append(_added(drawn[place], *given))
    return noisy


def _drawn(key, leaf):
    return jax.random.normal(key, leaf.shape, wide(leaf.dtype))


def _added(drawn, leaf, stddev, scale):
    if scale is not None:
        leaf = scaled(leaf, scale)
    noise = stddev * drawn
    return (leaf.astype(noise.dtype) + noise).astype(leaf.dtype)


def scales(leaves, group_of, bounds):
    """Returns the ``Scale`` of each group."""
    norms = squared_norms(leaves, group_of, len(bounds))
    return [scale(*pair) for pair in zip(norms, bounds, strict=True)]


def sum_of_rows(leaves, group_of, bounds, weights):
    """Returns the weighted sum of clipped rows per leaf, in at least float32."""
    of_groups = scales(leaves, group_of, bounds)

    def one_leaf(leaf, group):
        factor, _, real = of_groups[group]
        return row_sums.weighted(factor * weights, real & (weights > 0), leaf)

    return [one_leaf(*pair) for pair in zip(leaves, group_of, strict=True)]
