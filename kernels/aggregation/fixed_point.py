"""Fixed-point encoding for secure aggregation, whose integer sums may wrap around."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.checks import (
    known,
    not_traced,
    number_like,
    tree_numeric,
    typed_key,
    whole,
)
from jaxanon.kernels.precision import widened

BITS = 32  # Bits of the integers; sums are taken modulo 2**32.


def fixed_point_resolution(max_abs: float, num_clients: int, bits: int = BITS) -> float:
    """Returns the smallest power of two as resolution whose sums cannot overflow.

    Args:
      max_abs: bound on a client's absolute values, a Python number > 0.
      num_clients: maximum number of clients in a sum, a Python int >= 1.
      bits: width of the signed integers, a Python int from 2 to 32.

    Returns:
      A Python float, in the units of ``max_abs``.

    Raises:
      TypeError: if a number is traced, or a count is not a Python int.
      ValueError: if a number is out of range, or ``bits`` is too small for the clients.

    Example:
      A thousand numbers up to 1 need 10 bits and a sign, which leaves 21.

      >>> fixed_point_resolution(1.0, 1000) == 2.0**-21
      True
    """
    not_traced("max_abs", max_abs)
    num_clients = whole("num_clients", num_clients, least=1)
    bits = whole("bits", bits, least=2)
    number_like("max_abs", max_abs)
    if known(max_abs) is None or not (max_abs > 0 and math.isfinite(max_abs)):
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
    # Stochastic rounding may add one step to each number.
    while num_clients * (math.ceil(max_abs * 2.0**exponent) + 1) > most:
        exponent -= 1
    return 2.0**-exponent


def fixed_point_encode(key, tree, max_abs, num_clients, *, bits: int = BITS):
    """Encodes one client's numbers as integers by unbiased stochastic rounding.

    Numbers are clipped to ``[-max_abs, max_abs]``, or to the nearest multiple of the
    resolution inside that the dtype can represent. NaN becomes 0. A client therefore
    cannot move the sum by more than ``max_abs``. Multiples of the resolution are not
    rounded.

    Args:
      key: typed PRNG key of the client.
      tree: leaves ``float[...]``; half precision is widened to float32.
      max_abs, num_clients, bits: see ``fixed_point_resolution``.

    Returns:
      Tree of ``int32[...]``. Sum it over clients in any order, with wraparound.

    Raises:
      TypeError: for a legacy key; also the conditions of ``fixed_point_resolution``.
      ValueError: same conditions as ``fixed_point_resolution``.

    Example:
      >>> sent = fixed_point_encode(jax.random.key(0), {"w": jnp.array([0.5])}, 1.0, 2)
      >>> fixed_point_decode(jax.tree.map(lambda leaf: leaf + leaf, sent), 1.0, 2)
      {'w': Array([1.], dtype=float32)}

    References:
      Bonawitz et al., Practical secure aggregation, CCS 2017, for the application.
    """
    typed_key(key)
    resolution = fixed_point_resolution(max_abs, num_clients, bits)
    tree_numeric(tree=tree)
    leaves, treedef = jax.tree.flatten(tree)

    def one(number, leaf):
        leaf = jnp.asarray(leaf)
        wide = widened(leaf)
        most = _largest_below(max_abs, resolution, wide.dtype)
        cut = jnp.clip(jnp.where(jnp.isnan(wide), 0, wide), -most, most)
        steps = cut / resolution  # Exact: the resolution is a power of two.
        low = jnp.floor(steps)
        own = jax.random.fold_in(key, number)
        up = jax.random.uniform(own, steps.shape, steps.dtype) < steps - low
        return low.astype(jnp.int32) + up.astype(jnp.int32)

    return jax.tree.unflatten(treedef, [one(*pair) for pair in enumerate(leaves)])


def _largest_below(max_abs, resolution, dtype):
    """Returns the largest representable multiple of the resolution <= ``max_abs``."""
    most = math.floor(max_abs / resolution) * resolution
    held = np.asarray(most, dtype)
    # Rounding up could add a step, and the sum would overflow.
    return held if float(held) <= most else np.nextafter(held, 0, dtype=dtype)


def fixed_point_decode(total, max_abs, num_clients, *, bits: int = BITS):
    """Decodes the sum of clients' integers to the sum of their numbers.

    Args:
      total: tree of ``int32[...]``.
      max_abs, num_clients, bits: same values as for the encoding.

    Returns:
      Tree of ``float[...]``, float32 unless x64 is enabled.

    Raises:
      TypeError: same conditions as ``fixed_point_resolution``.
      ValueError: same conditions as ``fixed_point_resolution``.

    Example:
      >>> fixed_point_decode({"w": jnp.array([1 << 20], jnp.int32)}, 1.0, 1000)
      {'w': Array([0.5], dtype=float32)}
    """
    resolution = fixed_point_resolution(max_abs, num_clients, bits)
    wide = jnp.result_type(float)
    tree_numeric(total=total)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, wide) * resolution, total)
