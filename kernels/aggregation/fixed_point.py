"""Numbers as integers whose sum may wrap around, as secure aggregation wants them."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import not_traced, typed_key, whole
from jaxanon.kernels.precision import widened

BITS = 32  # Of the integers; sums are taken modulo 2**32.


def fixed_point_resolution(max_abs: float, num_clients: int, bits: int = BITS) -> float:
    """The step between numbers: the smallest power of two whose sums cannot overflow.

    Args:
      max_abs: bound of a client's numbers in absolute value, a Python number > 0.
      num_clients: most clients that are summed, a Python int >= 1.
      bits: of the signed integers, a Python int from 2 to 32.

    Returns:
      A Python float, in the units of ``max_abs``.

    Raises:
      TypeError: if a number is traced, or a count is no Python int.
      ValueError: if a number is out of range, or ``bits`` are too few for the clients.

    Example:
      A thousand numbers up to 1 need 10 bits and a sign, so 21 are left.

      >>> fixed_point_resolution(1.0, 1000) == 2.0**-21
      True
    """
    not_traced("max_abs", max_abs)
    num_clients = whole("num_clients", num_clients, least=1)
    bits = whole("bits", bits, least=2)
    if not (max_abs > 0 and math.isfinite(max_abs)):
        raise ValueError(f"max_abs must be a finite number > 0, got {max_abs!r}.")
    if bits > BITS:
        raise ValueError(f"bits must be in [2, {BITS}], got {bits!r}.")
    most = 2 ** (bits - 1) - 1
    if 2 * num_clients > most:
        raise ValueError(
            f"bits={bits} cannot hold the sum of {num_clients} clients; use at least "
            f"{math.ceil(math.log2(2 * num_clients + 1)) + 1} bits."
        )
    exponent = math.floor(math.log2(most / (max_abs * num_clients)))
    # A number may be rounded up by one step.
    while num_clients * (math.ceil(max_abs * 2.0**exponent) + 1) > most:
        exponent -= 1
    return 2.0**-exponent


def fixed_point_encode(key, tree, max_abs, num_clients, *, bits: int = BITS):
    """One client's numbers as integers, by stochastic rounding, unbiased.

    Numbers outside ``[-max_abs, max_abs]`` are cut to it, or to the next multiple of
    the resolution within that the dtype holds, and NaN becomes 0, so that a client
    cannot move the sum by more than ``max_abs``. A number that is such a multiple is
    not rounded.

    Args:
      key: typed PRNG key, the client's own.
      tree: leaves ``float[...]``; half precision is widened to float32.
      max_abs, num_clients, bits: see ``fixed_point_resolution``.

    Returns:
      Tree of ``int32[...]``, to be summed over clients in any order, wrapping.

    Raises:
      TypeError: for a legacy key, and as ``fixed_point_resolution``.
      ValueError: as ``fixed_point_resolution``.

    Example:
      >>> sent = fixed_point_encode(jax.random.key(0), {"w": jnp.array([0.5])}, 1.0, 2)
      >>> fixed_point_decode(jax.tree.map(lambda leaf: leaf + leaf, sent), 1.0, 2)
      {'w': Array([1.], dtype=float32)}

    References:
      Bonawitz et al., Practical secure aggregation, CCS 2017, for what it is for.
    """
    typed_key(key)
    resolution = fixed_point_resolution(max_abs, num_clients, bits)
    leaves, treedef = jax.tree.flatten(tree)

    def one(number, leaf):
        leaf = jnp.asarray(leaf)
        wide = widened(leaf)
        most = _largest_below(max_abs, resolution, wide.dtype)
        cut = jnp.clip(jnp.where(jnp.isnan(wide), 0, wide), -most, most)
        steps = cut / resolution  # Exact, for it is a power of two.
        low = jnp.floor(steps)
        own = jax.random.fold_in(key, number)
        up = jax.random.uniform(own, steps.shape, steps.dtype) < steps - low
        return low.astype(jnp.int32) + up.astype(jnp.int32)

    return jax.tree.unflatten(treedef, [one(*pair) for pair in enumerate(leaves)])


def _largest_below(max_abs, resolution, dtype):
    """The largest multiple of the resolution up to ``max_abs`` that a dtype holds."""
    most = math.floor(max_abs / resolution) * resolution
    held = np.asarray(most, dtype)
    # Rounded up it could be a step too far, and a sum of such would wrap around.
    return held if float(held) <= most else np.nextafter(held, 0, dtype=dtype)


def fixed_point_decode(total, max_abs, num_clients, *, bits: int = BITS):
    """The sum of clients' numbers, from the sum of their integers.

    Args:
      total: tree of ``int32[...]``.
      max_abs, num_clients, bits: as they were encoded with.

    Returns:
      Tree of ``float[...]``, float32 unless 64 bits are enabled.

    Raises:
      TypeError: as ``fixed_point_resolution``.
      ValueError: likewise.

    Example:
      >>> fixed_point_decode({"w": jnp.array([1 << 20], jnp.int32)}, 1.0, 1000)
      {'w': Array([0.5], dtype=float32)}
    """
    resolution = fixed_point_resolution(max_abs, num_clients, bits)
    wide = jnp.result_type(float)
    return jax.tree.map(lambda leaf: leaf.astype(wide) * resolution, total)
