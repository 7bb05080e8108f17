"""CLUB: an upper bound on mutual information from a conditional distribution."""

import jax.numpy as jnp

from jaxanon.kernels.checks import as_array, floating
from jaxanon.kernels.precision import wide


def club_bound(y, mean, log_variance):
    """Computes an upper bound on the mutual information of ``y`` and a variable x.

    ``mean`` and ``log_variance`` describe a Gaussian q(y | x) per row. The bound is the
    mean of ``log q(y_i | x_i)`` over rows minus the mean of ``log q(y_j | x_i)`` over
    all pairs. It is at least the mutual information if q is the true conditional
    distribution. Otherwise it is an estimate that may be too low or negative. It is
    differentiable, so x can be trained to minimise it.

    The mean over pairs is computed from moments, so work is ``n * d``.

    Args:
      y: ``float[n, d]``.
      mean: ``float[n, d]``, conditional mean per row.
      log_variance: ``float[n, d]``, natural log of the conditional variance per entry.

    Returns:
      ``float32[]`` (float64 for float64) in nats; 0 for a single row.

    Raises:
      TypeError: if an array does not hold floats.
      ValueError: if the arrays are not non-empty matrices of one shape.

    Example:
      Two rows at distance 2 with standard deviation 1: the likelihood of the other row
      is e^2 times smaller, and half of the pairs are of this kind.

      >>> y = jnp.array([[1.0], [-1.0]])
      >>> club_bound(y, y, jnp.zeros((2, 1)))
      Array(1., dtype=float32)

    References:
      Cheng et al., CLUB: A contrastive log-ratio upper bound of mutual information,
      ICML 2020, equations 5 and 6.
    """
    named = {"y": y, "mean": mean, "log_variance": log_variance}
    arrays = [as_array(name, array) for name, array in named.items()]
    shapes = {array.shape for array in arrays}
    first = arrays[0].shape
    if len(shapes) > 1 or len(first) != 2 or 0 in first:
        found = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(
            "y, mean and log_variance must be non-empty float[n, d] of one shape, got "
            f"shapes {found}."
        )
    floating(**dict(zip(named, arrays, strict=True)))
    dtype = wide(*(array.dtype for array in arrays))
    y, mean, log_variance = (array.astype(dtype) for array in arrays)
    centre = jnp.mean(y, axis=0, keepdims=True)
    y, mean = y - centre, mean - centre
    # Mean squared distance over all rows minus the row's own; the rest cancels.
    spread = jnp.mean(y * y, axis=0, keepdims=True)
    gaps = (spread - y * y + 2 * y * mean) * jnp.exp(-log_variance)
    return jnp.mean(jnp.sum(gaps, axis=1)) / 2
