"""Utility of synthetic windows: transfer, discriminative and predictive scores."""

import jax
import numpy as np

from jaxanon.kernels.checks import as_numpy, typed_key, whole
from jaxanon.metrics.classification import balanced_accuracy, confusion_matrix
from jaxanon.metrics.fidelity import check_windows
from jaxanon.models.classifiers import RecurrentClassifier
from jaxanon.models.fit import fit_classifier, predict
from jaxanon.models.forecaster import fit_forecaster, forecast_error

BLOCKS = 25  # maximum number of blocks of consecutive windows in a split

MIN_BLOCK = 8  # minimum number of windows in a block, given twice as many windows

TEST_FRACTION = 0.2  # fraction of windows that test a discriminator


def transfer_scores(key, real, synthetic, num_classes: int, **options) -> dict:
    """Returns accuracies of classifiers trained on one kind and tested on the other.

    Real and synthetic windows are each split randomly in two halves, within each class.
    The split is by blocks of consecutive windows, with gaps of a quarter block, because
    neighbouring windows may share samples. A class has at most 25 blocks, of at least 8
    windows each. A class with fewer than 16 windows has no gaps.

    Args:
      key: typed PRNG key.
      real: ``(windows, labels)``: ``float[N, time, channels]``, standardised, in order
        of time, and ``int[N]``; at least two windows of each class that occurs.
      synthetic: ``(windows, labels)`` of synthetic windows, with the labels that
        conditioned the generator.
      num_classes: number of classes, at least 2.
      **options: options of ``models.fit.fit_classifier``, such as ``steps`` or ``net``.

    Returns:
      Balanced accuracies: ``synthetic_to_real`` (trained on synthetic, tested on real
      windows), ``real_to_synthetic``, and the reference ``real_to_real``.

    Raises:
      TypeError: if ``key`` is not a typed key.
      ValueError: if window shapes differ or are not of rank 3, if values are not
        finite, if labels are invalid, or if a class has a single window.

    Example:
      >>> windows = np.repeat([[-1.0], [1.0]], 32, axis=0)[..., None]
      >>> data = windows, np.repeat([0, 1], 32)
      >>> scores = transfer_scores(jax.random.key(0), data, data, 2, steps=60)
      >>> scores["synthetic_to_real"]
      1.0

    References:
      Esteban, Hyland, Rätsch, Real-valued (medical) time series generation with
      recurrent conditional GANs, 2017, section 4.2.
    """
    typed_key(key)
    split_key, real_key, synthetic_key = jax.random.split(key, 3)
    generator, names = _generator(split_key), ("real", "synthetic")
    for name, side in zip(names, (real, synthetic), strict=True):
        if not isinstance(side, tuple | list) or len(side) != 2:
            raise TypeError(
                f"{name} must be a pair of windows and labels, got "
                f"{type(side).__name__}."
            )
    both = check_windows(1, real[0], synthetic[0], np.float32)
    sides = {}
    for name, windows, (_, labels) in zip(names, both, (real, synthetic), strict=True):
        labels = _check_labels(name, windows, labels, num_classes)
        first, second = _halves(name, generator, labels)
        sides[name] = (
            (windows[first], labels[first]),
            (windows[second], labels[second]),
        )
    fit = lambda key, side: fit_classifier(key, *sides[side][0], num_classes, **options)
    real_net, synthetic_net = fit(real_key, "real"), fit(synthetic_key, "synthetic")

    def score(net, side):
        windows, labels = sides[side][1]
        return balanced_accuracy(
            confusion_matrix(labels, predict(net, windows), num_classes)
        )

    return {
        "synthetic_to_real": score(synthetic_net, "real"),
        "real_to_synthetic": score(real_net, "synthetic"),
        "real_to_real": score(real_net, "real"),
    }


def discriminative_score(key, real, synthetic, **options) -> float:
    """Returns ``|0.5 - accuracy|`` of a classifier of real and synthetic windows.

    The classifier is trained and tested on random subsets of equal size. About a fifth
    of the windows tests it, in blocks of consecutive windows as in ``transfer_scores``.
    The score is 0 at chance level and 0.5 for a perfect classifier.

    Args:
      key: typed PRNG key.
      real: ``float[N, time, channels]``, standardised, in order of time; N at least 10.
      synthetic: ``float[M, time, channels]``, M at least 10.
      **options: options of ``models.fit.fit_classifier``; ``net`` defaults to an LSTM.

    Raises:
      TypeError: if ``key`` is not a typed key.
      ValueError: if window shapes differ, are not of rank 3 or too few, or if values
        are not finite.

    Example:
      >>> options = {"net": None, "hidden": (16,), "steps": 200}
      >>> real = np.ones((100, 2, 1))
      >>> discriminative_score(jax.random.key(0), real, -real, **options)
      0.5

    References:
      Yoon, Jarrett, van der Schaar, Time-series generative adversarial networks,
      NeurIPS 2019, section 5 (with two LSTM layers).
    """
    typed_key(key)
    real, synthetic = check_windows(10, real, synthetic, np.float32)
    split_key, fit_key = jax.random.split(key)
    generator, number = _generator(split_key), min(len(real), len(synthetic))
    train, test = [], []
    for windows in (real, synthetic):
        rows = np.sort(generator.permutation(len(windows))[:number])
        train_rows, test_rows = _split(generator, number, TEST_FRACTION)
        train.append(windows[rows[train_rows]])
        test.append(windows[rows[test_rows]])
    labels = lambda sides: np.repeat([0, 1], [len(side) for side in sides])
    options = {"net": RecurrentClassifier(2)} | options
    fitted = fit_classifier(fit_key, np.concatenate(train), labels(train), 2, **options)
    correct = predict(fitted, np.concatenate(test)) == labels(test)
    return float(abs(0.5 - correct.mean()))


def predictive_score(key, real, synthetic, **options) -> float:
    """Returns the error on real windows of a forecaster trained on synthetic ones.

    An LSTM predicts the next sample of every channel from the previous samples.
    (TimeGAN's program predicts the last channel from the others.)

    Args:
      key: typed PRNG key.
      real: ``float[N, time, channels]``, standardised, time at least 2; N at least 1.
      synthetic: ``float[M, time, channels]``, M at least 1.
      **options: options of ``models.forecaster.fit_forecaster``: ``hidden``, ``steps``,
        ``batch``.

    Returns:
      Mean absolute error, in standard deviations. Compare it with the error of a
      forecaster trained on other real windows.

    Raises:
      TypeError: if ``key`` is not a typed key.
      ValueError: if window shapes differ, are not of rank 3 or too short, or if values
        are not finite.

    Example:
      >>> constant = np.ones((4, 5, 1))
      >>> score = predictive_score(
      ...     jax.random.key(0), constant, constant, steps=2, hidden=2)
      >>> score < 0.1
      True

    References:
      Yoon, Jarrett, van der Schaar, NeurIPS 2019, section 5.
    """
    typed_key(key)
    real, synthetic = check_windows(1, real, synthetic, np.float32)
    if real.shape[1] < 2:
        raise ValueError(
            f"windows must have at least two samples to predict one, got "
            f"{real.shape[1]}."
        )
    return forecast_error(fit_forecaster(key, synthetic, **options), real)


def _generator(key):
    return np.random.default_rng(int(jax.random.bits(key, dtype=np.uint32)))


def _check_labels(name, windows, labels, num_classes):
    labels = as_numpy("labels", labels)
    num_classes = whole("num_classes", num_classes, least=1)
    if labels.shape != windows.shape[:1] or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"labels of {name} windows must be int[{len(windows)}], got "
            f"{labels.dtype}{list(labels.shape)}."
        )
    wrong = labels[(labels < 0) | (labels >= num_classes)]
    if len(wrong):
        raise ValueError(
            f"labels of {name} windows must be in [0, {num_classes}), got {wrong[0]}."
        )
    return labels


def _halves(name, generator, labels):
    """Splits each class in two; returns two masks ``bool[N]``."""
    first, second = np.zeros((2, len(labels)), bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        if len(rows) < 2:
            raise ValueError(
                f"{name} must have at least two windows of class {label}, got 1; add "
                "windows or remove the class."
            )
        first[rows], second[rows] = _split(generator, len(rows), 0.5)
    return first, second


def _split(generator, number, test_fraction):
    """Splits rows by blocks; returns masks of training and test rows, ``bool[number]``.

    Rows next to a test block, up to a quarter of its length, are in neither.
    """
    length = max(-(-number // BLOCKS), min(MIN_BLOCK, number // 2)) if number > 3 else 1
    count = number // length
    chosen = generator.permutation(count)[: max(1, int(test_fraction * count))]
    test = np.isin(np.arange(number) * count // number, chosen)
    gap = length // 4 if number >= 2 * MIN_BLOCK else 0
    near = np.convolve(test, np.ones(2 * gap + 1), "same") > 0
    return ~near, test
