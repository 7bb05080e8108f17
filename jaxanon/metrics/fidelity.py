"""Fidelity of synthetic windows: distances of distributions, and memorization."""

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.neighbors import NearestNeighbors

from jaxanon.kernels.checks import as_numpy, host_number, whole

KINDS = "real", "synthetic"


def mmd(real, synthetic, *, bandwidth: float | None = None) -> float:
    """Returns an unbiased estimate of the squared maximum mean discrepancy.

    The mean of the estimate is 0 for equal distributions, so it may be slightly
    negative; it is at most about 2. The kernel is ``exp(-d² / (2 bandwidth²))``, where
    ``d`` is the distance of flattened windows.

    Args:
      real: ``float[N, time, channels]``, standardised; N at least 2. All pairs are
        compared, so use at most a few thousand windows.
      synthetic: ``float[M, time, channels]``, M at least 2.
      bandwidth: kernel width > 0; None is the median distance of real windows.

    Raises:
      ValueError: if window shapes differ, are not of rank 3 or too few, if values are
        not finite, or if the bandwidth is not positive and finite.

    Example:
      >>> real = np.zeros((2, 1, 1))
      >>> round(mmd(real, real + 2.0, bandwidth=1.0), 4)  # 2 - 2 exp(-2)
      1.7293

    References:
      Gretton et al., A kernel two-sample test, JMLR 2012, equation 3.
    """
    real, synthetic = _flat(2, real, synthetic)
    if bandwidth is None:
        bandwidth = float(np.median(pdist(real)))
    host_number(bandwidth=bandwidth)
    if not 0 < bandwidth < np.inf:
        raise ValueError(
            f"bandwidth must be > 0 and finite, got {bandwidth!r}; set it explicitly "
            "if real windows are all alike."
        )
    kernel = lambda x, y: np.exp(-cdist(x, y, "sqeuclidean") / (2 * bandwidth**2))
    within = lambda x: (kernel(x, x).sum() - len(x)) / (len(x) * (len(x) - 1))
    return float(within(real) + within(synthetic) - 2 * kernel(real, synthetic).mean())


def frechet_distance(real, synthetic) -> float:
    """Returns the squared Fréchet distance of Gaussians fitted to features.

    With features of a classifier, it is known as context-FID.

    Args:
      real: ``float[N, features]``, N at least 2.
      synthetic: ``float[M, features]``, M at least 2.

    Returns:
      ``|mean - mean'|² + tr(C + C' - 2 (C C')^(1/2))``, at least 0.

    Raises:
      ValueError: if shapes do not match, are not of rank 2 or have fewer than two rows,
        or if values are not finite.

    Example:
      >>> one = np.array([[-1.0], [1.0]])
      >>> frechet_distance(one, 3 * one + 4)  # Means 0 and 4, deviations 1 and 3.
      20.0

    References:
      Dowson and Landau, The Fréchet distance between multivariate normal distributions,
      1982; Heusel et al., NeurIPS 2017; Jeha et al., PSA-GAN, ICLR 2022.
    """
    real = as_numpy("real", real, np.float64)
    synthetic = as_numpy("synthetic", synthetic, np.float64)
    same_width = (
        real.ndim == synthetic.ndim == 2 and real.shape[1:] == synthetic.shape[1:]
    )
    if not same_width or min(len(real), len(synthetic)) < 2:
        raise ValueError(
            "real and synthetic must be float[N, features] with N >= 2, got shapes "
            f"{real.shape} and {synthetic.shape}."
        )
    _check_finite(real, synthetic)
    gap = real.mean(0) - synthetic.mean(0)
    one, other = (
        np.cov(x.T, ddof=0).reshape(2 * x.shape[1:]) for x in (real, synthetic)
    )
    values, vectors = np.linalg.eigh(one)
    root = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
    shared = np.linalg.eigvalsh(root @ other @ root)
    both = 2 * np.sqrt(np.maximum(shared, 0)).sum()
    return float(max(gap @ gap + np.trace(one) + np.trace(other) - both, 0))


def autocorrelation_error(real, synthetic, *, max_lag: int | None = None) -> float:
    """Returns the mean absolute difference of autocorrelations.

    The autocorrelation of a window is the sum of products of centred samples at a lag,
    divided by the sum of their squares (0 for a constant channel). It is averaged over
    windows; the result is averaged over lags and channels.

    Args:
      real: ``float[N, time, channels]``, N at least 1.
      synthetic: ``float[M, time, channels]``, M at least 1.
      max_lag: largest lag, in [1, time); None is half a window.

    Raises:
      ValueError: if window shapes differ or are not of rank 3, if values are not
        finite, or if ``max_lag`` is out of range.
      TypeError: if ``max_lag`` is not an integer.

    Example:
      >>> alternating = np.array([1.0, -1, 1, -1]).reshape(1, 4, 1)
      >>> autocorrelation_error(np.zeros((1, 4, 1)), alternating, max_lag=1)
      0.75
    """
    real, synthetic = check_windows(1, real, synthetic)
    time = real.shape[1]
    max_lag = max(1, time // 2) if max_lag is None else whole("max_lag", max_lag, 0)
    if not 1 <= max_lag < time:
        raise ValueError(f"max_lag must be in [1, {time}), got {max_lag!r}.")
    gap = _autocorrelation(real, max_lag) - _autocorrelation(synthetic, max_lag)
    return float(np.abs(gap).mean())


def _autocorrelation(windows, max_lag):
    """``float[max_lag, channels]``, lags from 1."""
    centred = windows - windows.mean(axis=1, keepdims=True)
    total = np.sum(centred**2, axis=1)
    varies = total > 1e-12 * np.maximum(np.sum(windows**2, axis=1), 1e-300)
    lags = []
    for lag in range(1, max_lag + 1):
        products = np.sum(centred[:, lag:] * centred[:, :-lag], axis=1)
        lags.append(np.where(varies, products / np.where(varies, total, 1), 0).mean(0))
    return np.stack(lags)


def cross_channel_error(real, synthetic) -> float:
    """Returns the mean absolute difference of correlations between channels.

    Correlations are over all samples of all windows, and 0 for a constant channel.

    Args:
      real: ``float[N, time, channels]``, N at least 1, channels at least 2.
      synthetic: ``float[M, time, channels]``, M at least 1.

    Raises:
      ValueError: if window shapes differ or are not of rank 3, if values are not
        finite, or for a single channel.

    Example:
      >>> same = np.array([[1.0, 1], [1, 1], [-1, -1], [-1, -1]])[None]
      >>> cross_channel_error(same, same * np.array([1.0, -1.0]))
      2.0
    """
    real, synthetic = check_windows(1, real, synthetic)
    channels = real.shape[2]
    if channels < 2:
        raise ValueError(
            f"windows must have at least two channels to be correlated, got {channels}."
        )
    pairs = np.triu_indices(channels, 1)
    one, other = (
        _correlations(x.reshape(-1, channels))[pairs] for x in (real, synthetic)
    )
    return float(np.abs(one - other).mean())


def _correlations(rows):
    centred = rows - rows.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    varies = length > 1e-9 * np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
    unit = np.where(varies, centred / np.where(varies, length, 1), 0)
    return unit.T @ unit


def nearest_distances(windows, training) -> np.ndarray:
    """Returns the distance of each window to the nearest training window.

    Args:
      windows: ``float[M, time, channels]``, standardised; M at least 1.
      training: ``float[N, time, channels]``, N at least 1.

    Returns:
      ``float64[M]``, root-mean-square differences; 0 for a copy.

    Raises:
      ValueError: if window shapes differ or are not of rank 3, if values are not
        finite, or for no windows.

    Example:
      >>> nearest_distances(np.full((1, 4, 1), 2.0), np.zeros((3, 4, 1)))
      array([2.])
    """
    windows, training = _flat(1, windows, training, names=("windows", "training"))
    # scikit-learn's distances lose precision far from 0 and for near copies, so centre
    # the windows and recompute the distances.
    centre = np.median(training, axis=0)
    nearest = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(training - centre)
    _, index = nearest.kneighbors(windows - centre)
    return np.sqrt(np.mean((windows - training[index[:, 0]]) ** 2, axis=1))


def memorization(training, synthetic, held_out, *, fraction: float = 0.05) -> dict:
    """Tests whether synthetic windows are too close to training windows.

    A synthetic window counts as a copy if its distance to the training windows is below
    the ``fraction`` quantile of the held-out windows' distances.

    Args:
      training: ``float[N, time, channels]``, standardised training windows of a
        generator.
      synthetic: ``float[M, time, channels]``, windows of the generator.
      held_out: ``float[K, time, channels]``, real windows of the same distribution that
        were not used for training.
      fraction: fraction of held-out windows below the threshold, in (0, 1).

    Returns:
      ``synthetic`` and ``held_out``, the median ``nearest_distances`` to training
      windows, and ``copies``, the fraction of synthetic windows that count as copies.
      ``copies`` is about ``fraction`` for windows of the true distribution and 1 for a
      generator that copies. Distances equal to the threshold are common for discrete
      windows. They count with the weight that gives held-out windows exactly
      ``fraction``, so ``copies`` stays below 1 if held-out windows are copies too.

    Raises:
      ValueError: for the errors of ``nearest_distances``, or if ``fraction`` is out of
        range.

    Example:
      >>> seen, other = np.zeros((2, 4, 1)), np.ones((20, 4, 1))
      >>> memorization(seen, seen, other)
      {'synthetic': 0.0, 'held_out': 1.0, 'copies': 1.0}
    """
    host_number(fraction=fraction)
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must be in (0, 1), got {fraction!r}.")
    generated = nearest_distances(synthetic, training)
    real = nearest_distances(held_out, training)
    threshold = np.quantile(real, fraction)
    below, ties = np.mean(real < threshold), np.mean(real == threshold)
    weight = min(1.0, (fraction - below) / ties) if ties else 0.0
    copies = np.mean(generated < threshold) + weight * np.mean(generated == threshold)
    return {
        "synthetic": float(np.median(generated)),
        "held_out": float(np.median(real)),
        "copies": float(copies),
    }


def check_windows(min_windows: int, real, synthetic, dtype=np.float64, names=KINDS):
    """Converts real and synthetic windows to arrays and checks them.

    Args:
      min_windows: minimum number of windows of each kind, >= 1.
      real: ``float[N, time, channels]``.
      synthetic: ``float[M, time, channels]``.
      dtype: dtype of the results.
      names: names of the arguments in error messages.

    Raises:
      ValueError: if window shapes differ or are not of rank 3, for too few or empty
        windows, or if values are not finite.

    Example:
      >>> one, other = check_windows(1, [[[1]]], [[[2]], [[3]]])
      >>> one.shape, other.dtype
      ((1, 1, 1), dtype('float64'))
    """
    real, synthetic = map(as_numpy, names, (real, synthetic), (dtype, dtype))
    if (
        real.ndim != 3
        or real.shape[1:] != synthetic.shape[1:]
        or min(len(real), len(synthetic)) < min_windows
        or not real.size
    ):
        raise ValueError(
            f"windows must be float[N, time, channels], N at least {min_windows}, with "
            f"equal time and channels, got shapes {real.shape} and {synthetic.shape}."
        )
    _check_finite(real, synthetic, names)
    return real, synthetic


def _check_finite(real, synthetic, names=KINDS):
    for name, x in zip(names, (real, synthetic), strict=True):
        broken = ~np.isfinite(x).reshape(len(x), -1).all(axis=1)
        if broken.any():
            raise ValueError(
                f"{name} must be finite, got {broken.sum()} rows with NaN or infinity, "
                f"the first at {np.argmax(broken)}; remove them."
            )


def _flat(min_windows, *windows, names=KINDS):
    arrays = check_windows(min_windows, *windows, names=names)
    return (x.reshape(len(x), -1) for x in arrays)
