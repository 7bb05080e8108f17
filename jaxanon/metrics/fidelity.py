"""How like real windows synthetic ones are, as distributions, and whether copies."""

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.neighbors import NearestNeighbors

from jaxanon.kernels.checks import whole

KINDS = "real", "synthetic"


def mmd(real, synthetic, *, bandwidth: float | None = None) -> float:
    """Squared maximum mean discrepancy under a Gaussian kernel, without bias.

    0 in the mean where both are of one distribution, so it may be a little below;
    grows towards 2. The kernel is ``exp(-d² / (2 bandwidth²))`` of the distance of
    flattened windows.

    Args:
      real: ``float[N, time, channels]``, standardised; N at least 2. All pairs are
        compared, so a few thousand are plenty.
      synthetic: ``float[M, time, channels]``.
      bandwidth: > 0; None is the median distance of all real windows.

    Raises:
      ValueError: if windows are not of one shape, rank 3 and at least two on each side,
        or not finite, or the bandwidth, given or found, is not > 0 and finite.

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
    if not 0 < bandwidth < np.inf:
        raise ValueError(
            f"bandwidth must be > 0 and finite, got {bandwidth!r}; of real windows all "
            "alike there is no median distance, so name one."
        )
    kernel = lambda x, y: np.exp(-cdist(x, y, "sqeuclidean") / (2 * bandwidth**2))
    within = lambda x: (kernel(x, x).sum() - len(x)) / (len(x) * (len(x) - 1))
    return float(within(real) + within(synthetic) - 2 * kernel(real, synthetic).mean())


def frechet_distance(real, synthetic) -> float:
    """Squared Fréchet distance of two Gaussians that have the features' moments.

    Of features of a classifier it is what is called context-FID; of any others it is
    as good as they are.

    Args:
      real: ``float[N, features]``, N at least 2.
      synthetic: ``float[M, features]``, M at least 2.

    Returns:
      ``|mean - mean'|² + tr(C + C' - 2 (C C')^(1/2))``, at least 0.

    Raises:
      ValueError: if features are not of one width, rank 2 and at least two rows each,
        or not finite.

    Example:
      >>> one = np.array([[-1.0], [1.0]])
      >>> frechet_distance(one, 3 * one + 4)  # Means 4 apart, deviations 1 and 3.
      20.0

    References:
      Dowson and Landau, The Fréchet distance between multivariate normal distributions,
      1982; Heusel et al., NeurIPS 2017; Jeha et al., PSA-GAN, ICLR 2022.
    """
    real, synthetic = (np.asarray(x, np.float64) for x in (real, synthetic))
    same_width = (
        real.ndim == synthetic.ndim == 2 and real.shape[1:] == synthetic.shape[1:]
    )
    if not same_width or min(len(real), len(synthetic)) < 2:
        raise ValueError(
            "real and synthetic must be float[N, features], two rows at least, got "
            f"shapes {real.shape} and {synthetic.shape}."
        )
    _refuse_broken(real, synthetic)
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
    """Mean absolute difference of autocorrelations, over lags and channels.

    A window's autocorrelation at a lag is the sum of products of centred samples so far
    apart over the sum of their squares (0 where nothing varies); windows are averaged.

    Args:
      real: ``float[N, time, channels]``, N at least 1.
      synthetic: ``float[M, time, channels]``.
      max_lag: in [1, time); None is half a window.

    Raises:
      ValueError: if windows are not of one shape, rank 3 and finite, or for another
        lag.
      TypeError: for a lag that is no whole number.

    Example:
      >>> shaken = np.array([1.0, -1, 1, -1]).reshape(1, 4, 1)
      >>> autocorrelation_error(np.zeros((1, 4, 1)), shaken, max_lag=1)
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
    found = []
    for lag in range(1, max_lag + 1):
        products = np.sum(centred[:, lag:] * centred[:, :-lag], axis=1)
        found.append(np.where(varies, products / np.where(varies, total, 1), 0).mean(0))
    return np.stack(found)


def cross_channel_error(real, synthetic) -> float:
    """Mean absolute difference of the correlations of all pairs of channels.

    Correlations are of all samples of all windows; with a channel that never varies
    they are 0.

    Args:
      real: ``float[N, time, channels]``, at least two channels; N at least 1.
      synthetic: ``float[M, time, channels]``.

    Raises:
      ValueError: if windows are not of one shape, rank 3 and finite, or of one channel.

    Example:
      >>> same = np.array([[1.0, 1], [1, 1], [-1, -1], [-1, -1]])[None]
      >>> cross_channel_error(same, same * np.array([1.0, -1.0]))
      2.0
    """
    real, synthetic = check_windows(1, real, synthetic)
    channels = real.shape[2]
    if channels < 2:
        raise ValueError(
            f"windows must have two channels at least to be correlated, got {channels}."
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
    """How far each window is from the training window that is nearest to it.

    Args:
      windows: ``float[M, time, channels]``, standardised; M at least 1.
      training: ``float[N, time, channels]``.

    Returns:
      ``float64[M]``, root of the mean square of the differences; 0 is a copy.

    Raises:
      ValueError: if windows are not of one shape, rank 3 and finite, or there are none.

    Example:
      >>> nearest_distances(np.full((1, 4, 1), 2.0), np.zeros((3, 4, 1)))
      array([2.])
    """
    windows, training = _flat(1, windows, training, names=("windows", "training"))
    nearest = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(training)
    # Found through squares, which lose the small ones; so taken anew.
    _, index = nearest.kneighbors(windows)
    return np.sqrt(np.mean((windows - training[index[:, 0]]) ** 2, axis=1))


def memorization(training, synthetic, held_out, *, share: float = 0.05) -> dict:
    """Whether synthetic windows lie nearer to training windows than others do.

    Args:
      training: ``float[N, time, channels]``, standardised, what a generator saw.
      synthetic: ``float[M, time, channels]``, what it made.
      held_out: ``float[K, time, channels]``, real windows that it did not see, of the
        same kind.
      share: in (0, 1), of held-out windows that count as near.

    Returns:
      ``synthetic`` and ``held_out``, medians of ``nearest_distances`` to the training
      windows, and ``copies``, the share of synthetic windows that are nearer than the
      nearest ``share`` of the held-out ones. That share is what windows of the true
      distribution would have; 1 is a generator that copies. Of those that are just as
      near, as windows of a few states often are, as many count as it takes for the
      held-out ones to have that share: where they are copies, too, nobody gets to 1.

    Raises:
      ValueError: as ``nearest_distances``, or for another share.

    Example:
      >>> seen, other = np.zeros((2, 4, 1)), np.ones((20, 4, 1))
      >>> memorization(seen, seen, other)
      {'synthetic': 0.0, 'held_out': 1.0, 'copies': 1.0}
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be in (0, 1), got {share!r}.")
    made = nearest_distances(synthetic, training)
    real = nearest_distances(held_out, training)
    edge = np.quantile(real, share)
    # Of held-out windows at the edge itself, so many make the share up.
    nearer, there = np.mean(real < edge), np.mean(real == edge)
    some = min(1.0, (share - nearer) / there) if there else 0.0
    return {
        "synthetic": float(np.median(made)),
        "held_out": float(np.median(real)),
        "copies": float(np.mean(made < edge) + some * np.mean(made == edge)),
    }


def check_windows(least: int, real, synthetic, dtype=np.float64, names=KINDS):
    """Windows of both kinds as arrays, where they can be compared.

    Args:
      least: windows that there must be of each, 1 at least.
      real: ``float[N, time, channels]``.
      synthetic: ``float[M, time, channels]``.
      dtype: of what is returned.
      names: what errors call them.

    Raises:
      ValueError: if they are not of one shape and rank 3, fewer than ``least`` on
        either side, empty, or not finite: what is nowhere is like nothing.

    Example:
      >>> one, other = check_windows(1, [[[1]]], [[[2]], [[3]]])
      >>> one.shape, other.dtype
      ((1, 1, 1), dtype('float64'))
    """
    real, synthetic = (np.asarray(x, dtype) for x in (real, synthetic))
    if (
        real.ndim != 3
        or real.shape[1:] != synthetic.shape[1:]
        or min(len(real), len(synthetic)) < least
        or not real.size
    ):
        raise ValueError(
            f"windows must be float[N, time, channels], N at least {least}, and of one "
            f"shape, got shapes {real.shape} and {synthetic.shape}."
        )
    _refuse_broken(real, synthetic, names)
    return real, synthetic


def _refuse_broken(real, synthetic, names=KINDS):
    for name, x in zip(names, (real, synthetic), strict=True):
        broken = ~np.isfinite(x).reshape(len(x), -1).all(axis=1)
        if broken.any():
            raise ValueError(
                f"{name} has {broken.sum()} rows that are not finite, the first at "
                f"{np.argmax(broken)}; of such there is no likeness."
            )


def _flat(least, *windows, names=KINDS):
    return (x.reshape(len(x), -1) for x in check_windows(least, *windows, names=names))
