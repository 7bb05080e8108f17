"""Mutual information between windows and an attribute."""

import jax
import numpy as np
from sklearn.decomposition import PCA
from sklearn.feature_selection import mutual_info_classif

from jaxanon.kernels.checks import as_numpy, typed_key, whole


def mutual_information_table(
    key, windows, labels, *, components: int = 25, max_windows: int = 2000
) -> float:
    """Returns the mean mutual information of principal components and an attribute.

    The estimator is the nearest-neighbour estimator (k = 3) for a continuous and a
    discrete variable. It is applied to each of the first ``components`` principal
    components of flattened windows, and the estimates are averaged. A result of 0 means
    that no single component carries information. Constant windows give about 0.

    Args:
      key: typed PRNG key for the subset and the estimator's tie-breaking noise.
      windows: ``float[N, time, channels]``, standardised.
      labels: ``int[N]``.
      components: number of components; limited by N and the values per window.
      max_windows: size of the random subset used for larger N.

    Returns:
      A float >= 0, in nats.

    Raises:
      ValueError: if windows are not of rank 3, labels are not one per window, N < 10,
        ``components`` < 1 or ``max_windows`` < 10.
      TypeError: if ``max_windows`` is not an integer.

    Example:
      >>> labels = np.arange(200) % 2
      >>> windows = 9.0 * labels[:, None, None] + np.linspace(0, 1, 200)[:, None, None]
      >>> information = mutual_information_table(jax.random.key(0), windows, labels)
      >>> f"{information:.1f}"  # ln 2
      '0.7'

    References:
      Ross, Mutual Information between Discrete and Continuous Data Sets, PLoS ONE
      2014. Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7.6.
    """
    typed_key(key)
    windows, labels = as_numpy("windows", windows), as_numpy("labels", labels)
    if windows.ndim != 3:
        raise ValueError(
            f"windows must be float[N, time, channels], got shape {windows.shape}."
        )
    if labels.shape != windows.shape[:1]:
        raise ValueError(
            f"labels must be int[{len(windows)}], one per window, got shape "
            f"{labels.shape}."
        )
    if len(windows) < 10:
        raise ValueError(f"windows must have at least 10 windows, got {len(windows)}.")
    max_windows = whole("max_windows", max_windows, least=10)
    components = whole("components", components, least=1)
    if not np.isfinite(windows).all() or not windows.size:
        raise ValueError("windows must be finite and not empty, got NaN or no values.")
    seed = int(jax.random.bits(key, dtype=np.uint32))
    generator = np.random.default_rng(seed)
    if len(windows) > max_windows:
        rows = np.sort(generator.choice(len(windows), max_windows, replace=False))
        windows, labels = windows[rows], labels[rows]
    flat = windows.reshape(len(windows), -1).astype(np.float64)
    components = min(components, *flat.shape)
    with np.errstate(invalid="ignore"):  # Constant windows: PCA divides 0 by 0.
        projected = PCA(components, random_state=seed).fit_transform(flat)
    if np.unique(labels, return_counts=True)[1].max() < 2:
        return 0.0  # Without a class of two windows, there are no neighbours.
    estimates = mutual_info_classif(projected, labels, n_neighbors=3, random_state=seed)
    return float(np.mean(estimates))


def informativeness(key, features, labels, *, max_windows: int = 5000) -> np.ndarray:
    """Returns the fraction of an attribute's entropy that each feature reveals.

    It is ``I(f; y) / H(y)``, with the estimator of ``mutual_information_table``,
    clipped to [0, 1].

    Args:
      key: typed PRNG key for the subset and the estimator's tie-breaking noise.
      features: ``float[N, features]``.
      labels: ``int[N]``.
      max_windows: size of the random subset used for larger N.

    Returns:
      ``float64[features]``.

    Raises:
      ValueError: if features are not of rank 2, labels are not one per row, N < 10,
        ``max_windows`` < 10, or all labels are equal.
      TypeError: if ``max_windows`` is not an integer.

    Example:
      >>> labels = np.arange(400) % 2
      >>> fractions = informativeness(
      ...     jax.random.key(0), np.stack([labels, np.arange(400)], axis=1), labels)
      >>> bool(fractions[0] > 0.95), bool(fractions[1] < 0.05)
      (True, True)

    References:
      Liu, Chakraborty and Mittal, DEEProtect, 2017, section VIII-A and figure 8.
    """
    typed_key(key)
    features = as_numpy("features", features, np.float64)
    labels = as_numpy("labels", labels)
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ValueError(
            "features must be float[N, features] and labels int[N], got shapes "
            f"{features.shape} and {labels.shape}."
        )
    max_windows = whole("max_windows", max_windows, least=10)
    if len(features) < 10:
        raise ValueError(f"features must have at least 10 rows, got {len(features)}.")
    seed = int(jax.random.bits(key, dtype=np.uint32))
    if len(features) > max_windows:
        generator = np.random.default_rng(seed)
        rows = np.sort(generator.choice(len(features), max_windows, replace=False))
        features, labels = features[rows], labels[rows]
    fractions = np.unique(labels, return_counts=True)[1] / len(labels)
    entropy = -float(np.sum(fractions * np.log(fractions)))
    if entropy == 0:
        raise ValueError(
            f"labels must have at least two classes, got only {labels[0]}."
        )
    estimates = mutual_info_classif(features, labels, n_neighbors=3, random_state=seed)
    return np.clip(estimates / entropy, 0, 1)
