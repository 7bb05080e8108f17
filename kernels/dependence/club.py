"""A bound of mutual information, from what one variable says of the other."""

import jax.numpy as jnp

from jaxanon.kernels.checks import floating
from jaxanon.kernels.precision import wide


def club_bound(y, mean, log_variance):
    """Bounds how many nats ``y`` and another variable tell of each other, from above.

    Of each row, ``mean`` and ``log_variance`` are the Gaussian law q of ``y`` that
    somebody reads from the other variable x. The bound is ``mean log q(y_i | x_i)``
    over rows less ``mean log q(y_j | x_i)`` over all pairs: how much better x tells its
    own y than anybody's. Where q is the true law it is the mutual information at least;
    else it is an estimate that may be too low, or negative. x may be moved against it.

    Pairs are not made: their mean is one of moments, and work is ``n * d``.

    Args:
      y: ``float[n, d]``.
      mean: ``float[n, d]``, of the law of each row given x.
      log_variance: ``float[n, d]``, of each number alone, natural logarithm.

    Returns:
      ``float32[]``, ``float64`` for float64 input; in nats, 0 of a single row.

    Raises:
      TypeError: if an array does not hold floats.
      ValueError: if shapes disagree, are no matrices, or have an empty axis.

    Example:
      Of two rows that x tells by a deviation of 1, each is 2 from the other, which the
      law of the other gives a likelihood e^2 times less; half of the pairs are such.

      >>> y = jnp.array([[1.0], [-1.0]])
      >>> club_bound(y, y, jnp.zeros((2, 1)))
      Array(1., dtype=float32)

    References:
      Cheng et al., CLUB: A contrastive log-ratio upper bound of mutual information,
      ICML 2020, equations 5 and 6.
    """
    named = {"y": y, "mean": mean, "log_variance": log_variance}
    arrays = [jnp.asarray(array) for array in named.values()]
    shapes = {array.shape for array in arrays}
    first = arrays[0].shape
    if len(shapes) > 1 or len(first) != 2 or 0 in first:
        found = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(
            "y, mean and log_variance must be float[n, d] of one shape without an "
            f"empty axis, got shapes {found}."
        )
    floating(**dict(zip(named, arrays, strict=True)))
    dtype = wide(*(array.dtype for array in arrays))
    y, mean, log_variance = (array.astype(dtype) for array in arrays)
    centre = jnp.mean(y, axis=0, keepdims=True)
    y, mean = y - centre, mean - centre
    # Squared distances from the mean: of all rows less the own, all else cancels.
    spread = jnp.mean(y * y, axis=0, keepdims=True)
    gaps = (spread - y * y + 2 * y * mean) * jnp.exp(-log_variance)
    return jnp.mean(jnp.sum(gaps, axis=1)) / 2
