"""Mutual information estimate with argument checks."""

import jax
import jax.numpy as jnp

from jaxanon.kernels.checks import fits, floating, whole
from jaxanon.kernels.dependence import neighbors
from jaxanon.kernels.precision import widened
from jaxanon.kernels.scaling import near_one


def mutual_information(x, labels, mask=None, *, num_neighbors=3, block=256):
    """Estimates the mutual information between the rows of ``x`` and their labels.

    For each row, it takes the distance to the k-th nearest row of the same class and
    counts the m rows of all classes that are nearer, including itself. The estimate is
    ``psi(n) + mean psi(k) - mean psi(rows of its class) - mean psi(m)``, or 0 if that
    is negative. k is ``num_neighbors``, or less in smaller classes; classes with one
    row are excluded. With tied distances, m is the mean over all orders of the ties.
    Without ties the result equals scikit-learn's ``mutual_info_classif``, which breaks
    ties by noise and returns one estimate per column (use ``vmap`` over columns).

    Distances are Euclidean, in at least float32. One column is sorted in ``n log n``
    steps. Several columns use ``block`` rows of distances at a time: memory is
    ``block * n`` numbers and work is ``n * n * d``. The gradient is 0.

    Args:
      x: ``float[n]`` or ``float[n, d]``.
      labels: ``int[n]``, any integers.
      mask: ``bool[n]``, False for padding, which may hold any values. None is all True.
      num_neighbors: k, a Python int >= 1.
      block: rows per step, a Python int >= 1.

    Returns:
      ``float32[]`` (float64 for float64) in nats, >= 0. It is 0 if every class has
      fewer than two rows, and NaN if a real row holds a NaN or an infinity.

    Raises:
      TypeError: if ``x`` is not floating, ``labels`` are not integers, or a number is
        not a Python int.
      ValueError: if shapes differ, the input is empty, or a number is too small.

    Example:
      >>> x = jnp.array([0.0, 1.0, 10.0, 11.0])
      >>> labels = jnp.array([0, 0, 1, 1])
      >>> jax.jit(mutual_information)(x, labels).round(4)  # psi(4) - psi(2): 1/2 + 1/3
      Array(0.8333, dtype=float32)

    References:
      Ross, Mutual information between discrete and continuous data sets, PLoS ONE 2014,
      equation 2.
    """
    x, labels, mask = _checked(x, labels, mask)
    num_neighbors = whole("num_neighbors", num_neighbors, least=1)
    block = whole("block", block, least=1)
    x = jax.lax.stop_gradient(x)
    counts = _class_counts(labels, mask)
    kept = mask & (counts > 1)
    finite = jnp.all(jnp.isfinite(x), axis=1)
    clean = jnp.where((kept & finite)[:, None], x, 0)
    # The estimate is scale-invariant; squared distances must not under- or overflow.
    clean = near_one(clean, axis=None)  # Exact, so ties are preserved.
    k = jnp.minimum(num_neighbors, counts - 1)

    max_k = min(num_neighbors, len(x) - 1)
    if max_k == 0:
        m = counts
    elif x.shape[1] == 1:
        m = neighbors.nearer_on_a_line(clean[:, 0], labels, kept, k, max_k)
    else:
        block = min(block, len(x))
        m = neighbors.nearer_in_space(clean, labels, kept, k, max_k, block)
    digamma = jax.scipy.special.digamma
    psi = lambda count: digamma(jnp.maximum(count, 1).astype(x.dtype))
    total = jnp.sum(kept)
    terms = jnp.where(kept, psi(k) - psi(counts) - psi(m), 0)
    estimate = psi(total) + jnp.sum(terms) / jnp.maximum(total, 1)
    estimate = jnp.where(total > 0, jnp.maximum(estimate, 0), 0)
    return jnp.where(jnp.all(finite | ~mask), estimate, jnp.nan).astype(x.dtype)


def _class_counts(labels, mask):
    """Returns the number of real rows with the label of each row."""
    order = jnp.sort(jnp.where(mask, labels, jnp.iinfo(labels.dtype).max))
    real = jnp.sum(mask)
    end = jnp.minimum(jnp.searchsorted(order, labels, side="right"), real)
    return end - jnp.minimum(jnp.searchsorted(order, labels, side="left"), real)


def _checked(x, labels, mask):
    fits("x", x)
    fits("labels", labels)
    x, labels = jnp.asarray(x), jnp.asarray(labels)
    mask = jnp.ones(labels.shape, bool) if mask is None else jnp.asarray(mask, bool)
    agree = x.ndim in (1, 2) and x.shape[:1] == labels.shape == mask.shape
    if not agree or 0 in x.shape:
        raise ValueError(
            "x must be non-empty float[n] or float[n, d], and labels and mask [n], got "
            f"shapes {x.shape}, {labels.shape} and {mask.shape}."
        )
    floating(x=x)
    if not jnp.issubdtype(labels.dtype, jnp.integer):
        raise TypeError(f"labels must be integers, got {labels.dtype}.")
    x = widened(x)
    return x.reshape(len(x), -1), labels, mask
