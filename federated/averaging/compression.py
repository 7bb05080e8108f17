"""Compression of clients' changes, with the size of their messages in bytes."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from jaxanon.kernels.checks import whole


def qsgd(num_levels: int):
    """Returns QSGD: stochastic rounding of a change to levels of its norm.

    Each number becomes ``norm * sign * level / num_levels`` with an integer level whose
    mean is exact, so the result is unbiased. A message has the norm in 4 bytes and
    ``log2(2 num_levels + 1)`` bits for each number, rounded up to whole bytes. Elias
    coding, which the paper also describes, needs fewer bits for sparse levels.

    Args:
      num_levels: s >= 1.

    Returns:
      ``(key, tree) -> (tree, bytes)``, a ``compressor`` of ``fedavg``.

    Raises:
      ValueError: for ``num_levels`` below 1.

    Example:
      >>> tree, num_bytes = qsgd(1)(jax.random.key(0), jnp.array([0.0, -4.0, 0.0]))
      >>> tree, num_bytes
      (Array([ 0., -4.,  0.], dtype=float32), 5)

    References:
      Alistarh et al., QSGD: communication-efficient SGD via gradient quantization and
      encoding, NeurIPS 2017, section 3.1.
    """
    num_levels = whole("num_levels", num_levels, least=1)

    def compress(key, tree):
        flat, as_tree = ravel_pytree(tree)
        # Numbers in half precision are too coarse for fair draws, and overflow.
        wide = flat.astype(jnp.promote_types(flat.dtype, jnp.float32))
        norm = jnp.linalg.norm(wide)
        place = jnp.abs(wide) / jnp.where(norm > 0, norm, 1) * num_levels
        low = jnp.floor(place)
        level = low + (jax.random.uniform(key, wide.shape, wide.dtype) < place - low)
        found = (norm * jnp.sign(wide) * level / num_levels).astype(flat.dtype)
        bits = flat.size * (2 * num_levels).bit_length()
        return as_tree(found), 4 + -(-bits // 8)

    return compress


def top_k(fraction: float):
    """Returns top-k sparsification: the largest numbers of a change, others are 0.

    A message has a number and a position of 4 bytes each for every number that is
    sent. Changes that are not sent are lost; there is no memory of them.

    Args:
      fraction: fraction of the numbers in (0, 1]; at least one is sent.

    Returns:
      ``(key, tree) -> (tree, bytes)``, a ``compressor`` of ``fedavg``.

    Raises:
      ValueError: for a fraction out of range.

    Example:
      >>> top_k(0.25)(jax.random.key(0), jnp.array([1.0, -5.0, 2.0, 0.0]))
      (Array([ 0., -5.,  0.,  0.], dtype=float32), 8)

    References:
      Aji and Heafield, Sparse communication for distributed gradient descent, EMNLP
      2017, without the residual; Stich et al., Sparsified SGD with memory, NeurIPS
      2018.
    """
    if not 0 < fraction <= 1:
        raise ValueError(
            f"fraction must be in (0, 1], got {fraction!r}; use 0.01 for 1 %."
        )

    def compress(key, tree):
        del key
        flat, as_tree = ravel_pytree(tree)
        k = min(flat.size, max(1, round(fraction * flat.size)))
        _, index = jax.lax.top_k(jnp.abs(flat), k)
        sent = jnp.zeros_like(flat).at[index].set(flat[index])
        return as_tree(sent), k * (flat.dtype.itemsize + 4)

    return compress


def sign():
    """Returns sign compression: one bit for each number, and their mean size.

    A number becomes its sign times the mean absolute value of the change. A message has
    one bit for each number, and 4 bytes. 0 counts as positive.

    Returns:
      ``(key, tree) -> (tree, bytes)``, a ``compressor`` of ``fedavg``.

    Example:
      >>> sign()(jax.random.key(0), jnp.array([1.0, -5.0, 3.0]))
      (Array([ 3., -3.,  3.], dtype=float32), 5)

    References:
      Bernstein et al., signSGD, ICML 2018; Karimireddy et al., Error feedback fixes
      SignSGD, ICML 2019, equation 1, for the scale, without error feedback.
    """

    def compress(key, tree):
        del key
        flat, as_tree = ravel_pytree(tree)
        scale = jnp.mean(jnp.abs(flat))
        return as_tree(jnp.where(flat >= 0, scale, -scale)), 4 + -(-flat.size // 8)

    return compress
