"""Feature extractors without class labels, DEEProtect's baselines, and moments."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


def fourier(time: int) -> np.ndarray:
    """Returns the real discrete Fourier transform with orthonormal rows.

    Args:
      time: number of samples, >= 1.

    Returns:
      ``float64[time, time]``: the mean, then cosine and sine of each frequency, in
      ascending order.

    Example:
      >>> fourier(2).round(3)
      array([[ 0.707,  0.707],
             [ 0.707, -0.707]])
    """
    angle = 2 * np.pi * np.arange(time) / time
    rows = [np.ones(time)]
    for number in range(1, time // 2 + 1):
        rows.append(np.cos(number * angle))
        if 2 * number < time:
            rows.append(np.sin(number * angle))
    return _unit(rows)


def cosine(time: int) -> np.ndarray:
    """Returns the discrete cosine transform (DCT-II) with orthonormal rows.

    Args:
      time: number of samples, >= 1.

    Returns:
      ``float64[time, time]``, in ascending order of frequency.

    Example:
      >>> cosine(2).round(3)
      array([[ 0.707,  0.707],
             [ 0.707, -0.707]])
    """
    frequency, position = np.arange(time)[:, None], np.arange(time)[None] + 0.5
    return _unit(np.cos(np.pi * frequency * position / time))


def haar(time: int) -> np.ndarray:
    """Returns the Haar wavelet basis with orthonormal rows, for any length.

    Each wavelet contrasts the two halves of an interval. The first half of an interval
    of odd length is the longer one.

    Args:
      time: number of samples, >= 1.

    Returns:
      ``float64[time, time]``: the mean, then wavelets from wide to narrow.

    Example:
      >>> haar(4).round(3)
      array([[ 0.5  ,  0.5  ,  0.5  ,  0.5  ],
             [ 0.5  ,  0.5  , -0.5  , -0.5  ],
             [ 0.707, -0.707,  0.   ,  0.   ],
             [ 0.   ,  0.   ,  0.707, -0.707]])
    """
    rows, parts = [np.ones(time)], [(0, time)]
    while parts:
        start, end = parts.pop(0)
        midpoint = (start + end + 1) // 2
        if midpoint == end:
            continue
        row = np.zeros(time)
        row[start:midpoint] = 1 / (midpoint - start)
        row[midpoint:end] = -1 / (end - midpoint)
        rows.append(row)
        parts += [(start, midpoint), (midpoint, end)]
    return _unit(rows)


def repeat_for_channels(basis: np.ndarray, channels: int) -> np.ndarray:
    """Extends a basis of samples to windows of several independent channels.

    Args:
      basis: ``float[time, time]``, orthonormal rows.
      channels: number of channels, >= 1.

    Returns:
      ``float32[time * channels, time * channels]``, orthonormal rows for flattened
      windows ``[time, channels]``.

    Example:
      >>> repeat_for_channels(haar(2), 3).shape
      (6, 6)
    """
    return np.kron(basis, np.eye(channels)).astype(np.float32)


def select_most_variable(basis, covariance, count: int):
    """Returns the rows along which windows have the largest variance.

    Args:
      basis: ``float[inputs, inputs]``, orthonormal rows.
      covariance: ``float[inputs, inputs]``, covariance of the windows.
      count: number of rows, at most ``inputs``.

    Returns:
      ``float[count, inputs]``.
    """
    variances = jnp.sum((basis @ covariance) * basis, axis=1)
    return basis[jnp.argsort(-variances, stable=True)[:count]]


def principal(covariance, count: int):
    """Returns the first principal components.

    Args:
      covariance: ``float[inputs, inputs]``, covariance of the windows.
      count: number of components, at most ``inputs``.

    Returns:
      ``float[count, inputs]``, orthonormal rows in descending order of variance.

    Example:
      >>> np.abs(principal(jnp.diag(jnp.array([1.0, 4.0, 2.0])), 2))
      array([[0., 1., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    return jnp.linalg.eigh(covariance)[1][:, ::-1][:, :count].T


def sparse_codes(atoms, windows, penalty: float, steps: int = 20):
    """Computes sparse codes of windows by least squares with an L1 penalty.

    Args:
      atoms: ``float[count, inputs]``, dictionary with rows of length 1.
      windows: ``float[batch, inputs]``, centred.
      penalty: weight of the sum of absolute codes, >= 0.
      steps: number of steps of accelerated proximal gradient descent.

    Returns:
      ``float[batch, count]``.

    References:
      Beck and Teboulle, A Fast Iterative Shrinkage-Thresholding Algorithm, SIAM
      Journal on Imaging Sciences 2009.
    """
    gram, products = atoms @ atoms.T, windows @ atoms.T
    # The largest eigenvalue is at most the largest row sum.
    step_size = 1 / jnp.max(jnp.sum(jnp.abs(gram), axis=1))
    codes = previous = jnp.zeros_like(products)
    for step in range(steps):
        ahead = codes + (step / (step + 3)) * (codes - previous)
        moved = ahead - step_size * (ahead @ gram - products)
        previous = codes
        codes = jnp.sign(moved) * jnp.maximum(jnp.abs(moved) - step_size * penalty, 0)
    return codes


def normalize_rows(atoms):
    """Scales rows to length 1.

    Example:
      >>> normalize_rows(jnp.array([[3.0, 4.0]]))
      Array([[0.6, 0.8]], dtype=float32)
    """
    length = jnp.linalg.norm(atoms, axis=1, keepdims=True)
    return atoms / jnp.maximum(length, 1e-12)


BASES = {"dft": fourier, "dct": cosine, "haar": haar}


def _unit(rows):
    rows = np.array(rows, np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Moments(NamedTuple):
    """Running averages over batches of equal size."""

    batches: jax.Array  # float32[]
    origin: jax.Array  # float32[inputs], near the inputs: the first batch's median
    offset: jax.Array  # float32[inputs], mean of the inputs minus the origin
    covariance: jax.Array  # float32[inputs, inputs]
    shares: dict[str, jax.Array]  # float32[classes], class frequencies by attribute
    with_class: dict[str, jax.Array]  # float32[classes, inputs], covariance of one_hot

    @property
    def mean(self) -> jax.Array:
        """Mean of the inputs, ``float32[inputs]``."""
        return self.origin + self.offset


def init_moments(inputs: int, classes: Mapping[str, int]) -> Moments:
    """Returns moments of zero batches.

    Args:
      inputs: number of inputs.
      classes: number of classes of each attribute.

    Example:
      >>> init_moments(30, {"gender": 2}).with_class["gender"].shape
      (2, 30)
    """
    return Moments(
        jnp.zeros(()),
        jnp.zeros(inputs),
        jnp.zeros(inputs),
        jnp.zeros((inputs, inputs)),
        {name: jnp.zeros(count) for name, count in classes.items()},
        {name: jnp.zeros((count, inputs)) for name, count in classes.items()},
    )


def update_moments(moments: Moments, x, labels: Mapping[str, jax.Array]) -> Moments:
    """Returns the moments with one more batch.

    Args:
      moments: moments of the previous batches.
      x: ``float32[batch, inputs]``.
      labels: dict from attributes to ``int[batch]``.

    References:
      Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing
      sample variances, 1979: an offset of the inputs costs no digits.
    """
    batches = moments.batches + 1
    # Differences from an origin near the inputs keep the digits of their spread.
    origin = jax.lax.cond(
        moments.batches > 0, lambda: moments.origin, lambda: jnp.median(x, axis=0)
    )
    offset = jnp.mean(x - origin[None], axis=0)
    centred = x - origin[None] - offset[None]
    away = offset - moments.offset

    def merge(old, targets, apart):
        """Returns covariances of targets with the inputs over all batches."""
        high = jax.lax.Precision.HIGHEST
        of_batch = jnp.matmul(targets.T, centred, precision=high) / len(x)
        between = apart[:, None] * away[None] * (moments.batches / batches)
        return old + (of_batch + between - old) / batches

    shares, with_class = {}, {}
    for name, share in moments.shares.items():
        hot = jax.nn.one_hot(labels[name], len(share))
        apart = jnp.mean(hot, axis=0) - share
        # Running averages; large float32 sums would round later batches away.
        shares[name] = share + apart / batches
        with_class[name] = merge(moments.with_class[name], hot, apart)
    offset = moments.offset + away / batches
    covariance = merge(moments.covariance, centred, away)
    return Moments(batches, origin, offset, covariance, shares, with_class)


def ridge(moments: Moments, name: str, penalty) -> jax.Array:
    """Returns the weights of linear one-against-rest classifiers.

    They solve ridge regression of ±1 on inputs scaled to unit variance, with a bias:
    they minimize the mean of ``Σ (w·x + b - y)²`` plus ``penalty ‖w‖²``.

    Args:
      moments: moments of the windows.
      name: attribute.
      penalty: ridge penalty, >= 0; must be > 0 for linearly dependent inputs.

    Returns:
      ``float32[classes, inputs]``, weights of the unscaled inputs.

    Example:
      The second input determines the class; the first is independent of it.

      >>> x = jnp.array([[1.0, 2.0], [-1.0, 2.0], [1.0, -2.0], [-1.0, -2.0]])
      >>> moments = init_moments(2, {"side": 2})
      >>> moments = update_moments(moments, x, {"side": jnp.array([1, 1, 0, 0])})
      >>> abs(ridge(moments, "side", 0.0).round(3))
      Array([[0. , 0.5],
             [0. , 0.5]], dtype=float32)
    """
    cov = moments.covariance
    std = jnp.sqrt(jnp.maximum(jnp.diagonal(cov), 1e-12))
    correlation = cov / (std[:, None] * std[None])
    # The covariance of y = 2 h - 1 with the inputs is twice that of h.
    targets = 2 * moments.with_class[name] / std[None]
    regularized = correlation + penalty * jnp.eye(len(std))
    return jnp.linalg.solve(regularized, targets.T).T / std[None]
