"""Mutual information between windows and an attribute."""

import jax
import numpy as np
from sklearn.decomposition import PCA
from sklearn.feature_selection import mutual_info_classif

from jaxanon.kernels.checks import whole


def mutual_information_table(
    key, windows, labels, *, components: int = 25, max_windows: int = 2000
) -> float:
    """Mean mutual information of principal components and an attribute, in nats.

    The first ``components`` principal components of the flattened windows are each
    compared with the labels by the nearest-neighbour estimator for a continuous and a
    discrete variable (k = 3), and the estimates are averaged. 0 means that no single
    component tells anything; windows that never vary give about 0.

    Args:
      key: typed PRNG key: the subsample and the estimator's tie-breaking noise.
      windows: ``float[N, time, channels]``, standardised.
      labels: ``int[N]``.
      components: how many; fewer where windows have fewer values or N is smaller.
      max_windows: a random subset of this size is used where N is larger.

    Returns:
      A float >= 0.

    Raises:
      ValueError: if windows are not of rank 3, labels are not one per window, there
        are fewer than 10 windows, or ``components`` < 1 or ``max_windows`` < 10.
      TypeError: if ``max_windows`` is no whole number.

    Example:
      >>> labels = np.arange(200) % 2
      >>> windows = 9.0 * labels[:, None, None] + np.linspace(0, 1, 200)[:, None, None]
      >>> told = mutual_information_table(jax.random.key(0), windows, labels)
      >>> f"{told:.1f}"  # ln 2
      '0.7'

    References:
      Ross, Mutual Information between Discrete and Continuous Data Sets, PLoS ONE
      2014. Yang and Ardakanian, Blinder, ACM TOSN 2023, section 7.6.
    """
    windows, labels = np.asarray(windows), np.asarray(labels)
    if windows.ndim != 3:
        raise ValueError(
            f"windows must be float[N, time, channels], got shape {windows.shape}."
        )
    if labels.shape != windows.shape[:1]:
        raise ValueError(
            f"labels must be one per window, {len(windows)} of them, got shape "
            f"{labels.shape}."
        )
    if len(windows) < 10:
        raise ValueError(
            f"windows must hold at least 10 windows to estimate from, got "
            f"{len(windows)}."
        )
    max_windows = whole("max_windows", max_windows, least=10)
    if components < 1:
        raise ValueError(f"components must be at least 1, got {components!r}.")
    seed = int(jax.random.bits(key, dtype=np.uint32))
    generator = np.random.default_rng(seed)
    if len(windows) > max_windows:
        rows = np.sort(generator.choice(len(windows), max_windows, replace=False))
        windows, labels = windows[rows], labels[rows]
    flat = windows.reshape(len(windows), -1).astype(np.float64)
    components = min(components, *flat.shape)
    with np.errstate(invalid="ignore"):  # Shares of no variance at all are 0 / 0.
        projected = PCA(components, random_state=seed).fit_transform(flat)
    if np.unique(labels, return_counts=True)[1].max() < 2:
        return 0.0  # Who is met once is like nobody: its nearest tell nothing.
    estimates = mutual_info_classif(projected, labels, n_neighbors=3, random_state=seed)
    return float(np.mean(estimates))


def informativeness(key, features, labels, *, max_windows: int = 5000) -> np.ndarray:
    """What share of an attribute's entropy each feature tells by itself.

    ``I(f; y) / H(y)`` with the estimator of ``mutual_information_table``, cut to [0,
    1]: 0 tells nothing of the attribute, 1 all of it.

    Args:
      key: typed PRNG key: the subsample and the estimator's tie-breaking noise.
      features: ``float[N, features]``.
      labels: ``int[N]``.
      max_windows: a random subset of this size is used where N is larger.

    Returns:
      ``float64[features]``.

    Raises:
      ValueError: if features are not of rank 2, labels are not one per row, there are
        fewer than 10 rows or ``max_windows``, or labels are all alike and have no
        entropy.
      TypeError: if ``max_windows`` is no whole number.

    Example:
      >>> labels = np.arange(400) % 2
      >>> told = informativeness(
      ...     jax.random.key(0), np.stack([labels, np.arange(400)], axis=1), labels)
      >>> bool(told[0] > 0.95), bool(told[1] < 0.05)
      (True, True)

    References:
      Liu, Chakraborty and Mittal, DEEProtect, 2017, section VIII-A and figure 8.
    """
    features, labels = np.asarray(features, np.float64), np.asarray(labels)
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ValueError(
            "features must be float[N, features] and labels int[N], got shapes "
            f"{features.shape} and {labels.shape}."
        )
    max_windows = whole("max_windows", max_windows, least=10)
    if len(features) < 10:
        raise ValueError(
            f"features must hold at least 10 rows, got {len(features)}: too few to "
            "estimate from."
        )
    seed = int(jax.random.bits(key, dtype=np.uint32))
    if len(features) > max_windows:
        generator = np.random.default_rng(seed)
        rows = np.sort(generator.choice(len(features), max_windows, replace=False))
        features, labels = features[rows], labels[rows]
    share = np.unique(labels, return_counts=True)[1] / len(labels)
    entropy = -float(np.sum(share * np.log(share)))
    if entropy == 0:
        raise ValueError(
            f"labels must have two classes at least, got {labels[0]} alone."
        )
    told = mutual_info_classif(features, labels, n_neighbors=3, random_state=seed)
    return np.clip(told / entropy, 0, 1)
