"""Feature extractors that know nothing of classes: what DEEProtect is compared with."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


def fourier(time: int) -> np.ndarray:
    """The real discrete Fourier transform, with orthonormal rows.

    Args:
      time: samples, >= 1.

    Returns:
      ``float64[time, time]``: the mean, then cosine and sine of each frequency, from
      slow to fast.

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
    """The discrete cosine transform of the second kind, with orthonormal rows.

    Args:
      time: samples, >= 1.

    Returns:
      ``float64[time, time]``, from slow to fast.

    Example:
      >>> cosine(2).round(3)
      array([[ 0.707,  0.707],
             [ 0.707, -0.707]])
    """
    number, place = np.arange(time)[:, None], np.arange(time)[None] + 0.5
    return _unit(np.cos(np.pi * number * place / time))


def haar(time: int) -> np.ndarray:
    """The Haar wavelet basis, with orthonormal rows, of any number of samples.

    Halves are told from each other, then halves of halves; where a part has an odd
    number of samples, its first half is the longer one.

    Args:
      time: samples, >= 1.

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
        middle = (start + end + 1) // 2
        if middle == end:
            continue
        row = np.zeros(time)
        row[start:middle] = 1 / (middle - start)
        row[middle:end] = -1 / (end - middle)
        rows.append(row)
        parts += [(start, middle), (middle, end)]
    return _unit(rows)


def repeat_for_channels(basis: np.ndarray, channels: int) -> np.ndarray:
    """A basis of samples for windows of several channels, each by itself.

    Args:
      basis: ``float[time, time]``, orthonormal rows.
      channels: >= 1.

    Returns:
      ``float32[time * channels, time * channels]``, orthonormal rows for flattened
      windows ``[time, channels]``.

    Example:
      >>> repeat_for_channels(haar(2), 3).shape
      (6, 6)
    """
    return np.kron(basis, np.eye(channels)).astype(np.float32)


def select_most_variable(basis, covariance, count: int):
    """The rows along which windows vary the most.

    Args:
      basis: ``float[inputs, inputs]``, orthonormal rows.
      covariance: ``float[inputs, inputs]`` of the windows.
      count: how many, at most ``inputs``.

    Returns:
      ``float[count, inputs]``.
    """
    varied = jnp.sum((basis @ covariance) * basis, axis=1)
    return basis[jnp.argsort(-varied, stable=True)[:count]]


def principal(covariance, count: int):
    """The directions along which windows vary the most: principal components.

    Args:
      covariance: ``float[inputs, inputs]`` of the windows.
      count: how many, at most ``inputs``.

    Returns:
      ``float[count, inputs]``, orthonormal rows, the first the most varied.

    Example:
      >>> np.abs(principal(jnp.diag(jnp.array([1.0, 4.0, 2.0])), 2))
      array([[0., 1., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    return jnp.linalg.eigh(covariance)[1][:, ::-1][:, :count].T


def sparse_codes(atoms, windows, penalty: float, steps: int = 20):
    """Codes of windows in a dictionary: least squares with an L1 penalty.

    Args:
      atoms: ``float[count, inputs]``, rows of length 1.
      windows: ``float[batch, inputs]``, less their mean.
      penalty: weight of the sum of absolute codes, >= 0.
      steps: of accelerated proximal gradient descent.

    Returns:
      ``float[batch, count]``.

    References:
      Beck and Teboulle, A Fast Iterative Shrinkage-Thresholding Algorithm, SIAM
      Journal on Imaging Sciences 2009.
    """
    gram, seen = atoms @ atoms.T, windows @ atoms.T
    # The largest eigenvalue is at most the largest row sum.
    size = 1 / jnp.max(jnp.sum(jnp.abs(gram), axis=1))
    codes = before = jnp.zeros_like(seen)
    for number in range(steps):
        ahead = codes + (number / (number + 3)) * (codes - before)
        moved = ahead - size * (ahead @ gram - seen)
        before = codes
        codes = jnp.sign(moved) * jnp.maximum(jnp.abs(moved) - size * penalty, 0)
    return codes


def normalize_rows(atoms):
    """Rows scaled to length 1.

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
    """Averages over batches of one size."""

    batches: jax.Array  # float32[]
    mean: jax.Array  # float32[inputs]
    square: jax.Array  # float32[inputs, inputs]; of products of two inputs
    shares: dict[str, jax.Array]  # float32[classes] of each attribute
    sums: dict[str, jax.Array]  # float32[classes, inputs]; inputs where it is that one


def init_moments(inputs: int, classes: Mapping[str, int]) -> Moments:
    """Moments of nothing.

    Args:
      inputs: numbers of a window.
      classes: how many each attribute has.

    Example:
      >>> init_moments(30, {"gender": 2}).sums["gender"].shape
      (2, 30)
    """
    return Moments(
        jnp.zeros(()),
        jnp.zeros(inputs),
        jnp.zeros((inputs, inputs)),
        {name: jnp.zeros(count) for name, count in classes.items()},
        {name: jnp.zeros((count, inputs)) for name, count in classes.items()},
    )


def update_moments(moments: Moments, x, labels: Mapping[str, jax.Array]) -> Moments:
    """Moments with one more batch.

    Args:
      moments: so far.
      x: ``float32[batch, inputs]``; near 0, or squares lose digits.
      labels: ``int[batch]`` of each attribute.
    """
    hot = {
        name: jax.nn.one_hot(labels[name], len(share))
        for name, share in moments.shares.items()
    }
    batch = Moments(
        moments.batches,
        jnp.mean(x, axis=0),
        x.T @ x / len(x),
        {name: jnp.mean(one, axis=0) for name, one in hot.items()},
        {name: one.T @ x / len(x) for name, one in hot.items()},
    )
    batches = moments.batches + 1
    # Averages, not sums: a batch is not lost in what there is already.
    move = lambda old, new: old + (new - old) / batches
    return jax.tree.map(move, moments, batch)._replace(batches=batches)


def covariance(moments: Moments) -> jax.Array:
    """Of the inputs, ``float32[inputs, inputs]``.

    Example:
      >>> x = jnp.array([[1.0, -1.0], [-1.0, 1.0]])
      >>> covariance(update_moments(init_moments(2, {}), x, {}))
      Array([[ 1., -1.],
             [-1.,  1.]], dtype=float32)
    """
    return moments.square - moments.mean[:, None] * moments.mean[None]


def ridge(moments: Moments, name: str, penalty) -> jax.Array:
    """How linear classifiers of one class against the rest weigh the inputs.

    Ridge regression of ±1 on inputs scaled to a variance of 1, with a bias: the
    minimiser of the mean of ``Σ (w·x + b - y)²`` plus ``penalty ‖w‖²``.

    Args:
      moments: of the windows.
      name: of the attribute.
      penalty: >= 0; above 0 where inputs depend on one another.

    Returns:
      ``float32[classes, inputs]``, weights of the inputs as they are.

    Example:
      The second input tells the class, the first does not.

      >>> x = jnp.array([[1.0, 2.0], [-1.0, 2.0], [1.0, -2.0], [-1.0, -2.0]])
      >>> told = update_moments(init_moments(2, {"side": 2}), x, {"side": jnp.array([1, 1, 0, 0])})
      >>> abs(ridge(told, "side", 0.0).round(3))
      Array([[0. , 0.5],
             [0. , 0.5]], dtype=float32)
    """
    spread = covariance(moments)
    size = jnp.sqrt(jnp.maximum(jnp.diagonal(spread), 1e-12))
    scaled = spread / (size[:, None] * size[None])
    # The covariance of y = 2 h - 1 with the inputs is twice that of h.
    share = moments.shares[name]
    told = 2 * (moments.sums[name] - share[:, None] * moments.mean[None]) / size[None]
    solid = scaled + penalty * jnp.eye(len(size))
    return jnp.linalg.solve(solid, told.T).T / size[None]
