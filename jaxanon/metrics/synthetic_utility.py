"""What synthetic windows are good for: trained on, told apart, predicted from."""

import jax
import numpy as np

from jaxanon.kernels.checks import typed_key
from jaxanon.metrics.classification import balanced_accuracy, confusion_matrix
from jaxanon.metrics.fidelity import check_windows
from jaxanon.models.classifiers import RecurrentClassifier
from jaxanon.models.fit import fit_classifier, predict
from jaxanon.models.forecaster import fit_forecaster, forecast_error

BLOCKS = 25  # Of neighbours, at most, that stay together where windows are split.

LEAST = 8  # Windows of one, where there are twice as many.

HELD_OUT = 0.2  # Share of those that a discriminator is judged by.


def transfer_scores(key, real, synthetic, num_classes: int, **options) -> dict:
    """Balanced accuracies of classifiers trained on one kind and tested on the other.

    Each kind of windows is split in two by chance, within each class, so that no score
    is of windows that were trained on, nor of those next to them, which may share
    samples with them: in blocks of neighbours, up to 25 of a class and of 8 windows at
    least, with a gap of a quarter of one. A class of fewer than 16 has no such gaps.

    Args:
      key: typed PRNG key.
      real: ``(windows, labels)``: ``float[N, time, channels]``, standardised, in order
        of time, and ``int[N]``; at least two windows of each class that there is.
      synthetic: likewise, labels being what was asked for.
      num_classes: at least 2.
      **options: of ``models.fit.fit_classifier``, such as ``steps`` or ``net``.

    Returns:
      ``synthetic_to_real`` (train on synthetic, test on real), ``real_to_synthetic``,
      and ``real_to_real``, which the first is to be compared with.

    Raises:
      TypeError: for a key of another type.
      ValueError: if windows are not of one shape, rank 3 and finite, labels do not fit
        them or the classes, or a class has a single window.

    Example:
      >>> windows = np.repeat([[-1.0], [1.0]], 32, axis=0)[..., None]
      >>> told = windows, np.repeat([0, 1], 32)
      >>> found = transfer_scores(jax.random.key(0), told, told, 2, steps=60)
      >>> found["synthetic_to_real"]
      1.0

    References:
      Esteban, Hyland, Rätsch, Real-valued (medical) time series generation with
      recurrent conditional GANs, 2017, section 4.2.
    """
    typed_key(key)
    split_key, real_key, made_key = jax.random.split(key, 3)
    generator, names = _generator(split_key), ("real", "synthetic")
    both = check_windows(1, real[0], synthetic[0], np.float32)
    sides = {}
    for name, windows, (_, labels) in zip(names, both, (real, synthetic), strict=True):
        labels = _told(name, windows, labels, num_classes)
        first, second = _halves(name, generator, labels)
        sides[name] = (
            (windows[first], labels[first]),
            (windows[second], labels[second]),
        )
    fit = lambda key, side: fit_classifier(key, *sides[side][0], num_classes, **options)
    of_real, of_made = fit(real_key, "real"), fit(made_key, "synthetic")

    def score(net, side):
        windows, labels = sides[side][1]
        return balanced_accuracy(
            confusion_matrix(labels, predict(net, windows), num_classes)
        )

    return {
        "synthetic_to_real": score(of_made, "real"),
        "real_to_synthetic": score(of_real, "synthetic"),
        "real_to_real": score(of_real, "real"),
    }


def discriminative_score(key, real, synthetic, **options) -> float:
    """``|0.5 - accuracy|`` of a classifier that tells synthetic windows from real ones.

    As many of each, drawn by chance; about a fifth of each is held out to be judged by,
    in blocks of neighbours as in ``transfer_scores``. 0 is guessing, 0.5 is told
    without fail.

    Args:
      key: typed PRNG key.
      real: ``float[N, time, channels]``, standardised, in order of time; N at least 10.
      synthetic: ``float[M, time, channels]``, M at least 10.
      **options: of ``models.fit.fit_classifier``; ``net`` is an LSTM unless named.

    Raises:
      TypeError: for a key of another type.
      ValueError: if windows are not of one shape, rank 3 and finite, or too few.

    Example:
      >>> plain = {"net": None, "hidden": (16,), "steps": 200}
      >>> real = np.ones((100, 2, 1))
      >>> discriminative_score(jax.random.key(0), real, -real, **plain)
      0.5

    References:
      Yoon, Jarrett, van der Schaar, Time-series generative adversarial networks,
      NeurIPS 2019, section 5 (there two layers of LSTM).
    """
    typed_key(key)
    real, synthetic = check_windows(10, real, synthetic, np.float32)
    split_key, fit_key = jax.random.split(key)
    generator, number = _generator(split_key), min(len(real), len(synthetic))
    train, test = [], []
    for windows in (real, synthetic):
        rows = np.sort(generator.permutation(len(windows))[:number])
        learned, held = _parted(generator, number, HELD_OUT)
        train.append(windows[rows[learned]])
        test.append(windows[rows[held]])
    labels = lambda sides: np.repeat([0, 1], [len(side) for side in sides])
    options = {"net": RecurrentClassifier(2)} | options
    fitted = fit_classifier(fit_key, np.concatenate(train), labels(train), 2, **options)
    right = predict(fitted, np.concatenate(test)) == labels(test)
    return float(abs(0.5 - right.mean()))


def predictive_score(key, real, synthetic, **options) -> float:
    """Error on real windows of a forecaster that was trained on synthetic ones.

    An LSTM predicts the next sample of every channel from those before it. (TimeGAN's
    program predicts the last channel from the others.)

    Args:
      key: typed PRNG key.
      real: ``float[N, time, channels]``, standardised, time at least 2; N at least 1.
      synthetic: ``float[M, time, channels]``.
      **options: of ``models.forecaster.fit_forecaster``: ``hidden``, ``steps``,
        ``batch``.

    Returns:
      Mean absolute error, in standard deviations; to be compared with that of a
      forecaster trained on other real windows.

    Raises:
      TypeError: for a key of another type.
      ValueError: if windows are not of one shape, rank 3 and finite, or too short or
        few.

    Example:
      >>> still = np.ones((4, 5, 1))
      >>> predictive_score(jax.random.key(0), still, still, steps=2, hidden=2) < 0.1
      True

    References:
      Yoon, Jarrett, van der Schaar, NeurIPS 2019, section 5.
    """
    typed_key(key)
    real, synthetic = check_windows(1, real, synthetic, np.float32)
    if real.shape[1] < 2:
        raise ValueError(
            f"windows must have two samples at least to predict one, got "
            f"{real.shape[1]}."
        )
    return forecast_error(fit_forecaster(key, synthetic, **options), real)


def _generator(key):
    return np.random.default_rng(int(jax.random.bits(key, dtype=np.uint32)))


def _told(name, windows, labels, num_classes):
    labels = np.asarray(labels)
    if labels.shape != windows.shape[:1] or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"labels of {name} windows must be int[{len(windows)}], got "
            f"{labels.dtype}{list(labels.shape)}."
        )
    wrong = labels[(labels < 0) | (labels >= num_classes)]
    if len(wrong):
        raise ValueError(
            f"labels of {name} windows must lie in [0, {num_classes}), got {wrong[0]}."
        )
    return labels


def _halves(name, generator, labels):
    """``(first, second)``, ``bool[N]`` each: about half of each class, and the rest."""
    first, second = np.zeros((2, len(labels)), bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        if len(rows) < 2:
            raise ValueError(
                f"{name} has a single window of class {label}, which cannot be both "
                "trained on and tested with; make more, or leave it out."
            )
        first[rows], second[rows] = _parted(generator, len(rows), 0.5)
    return first, second


def _parted(generator, number, share):
    """``(others, held)``, ``bool[number]``: about that share in blocks of neighbours.

    Rows next to a block, by up to a quarter of its length, are in neither.
    """
    length = max(-(-number // BLOCKS), min(LEAST, number // 2)) if number > 3 else 1
    count = number // length
    chosen = generator.permutation(count)[: max(1, int(share * count))]
    held = np.isin(np.arange(number) * count // number, chosen)
    gap = length // 4 if number >= 2 * LEAST else 0
    near = np.convolve(held, np.ones(2 * gap + 1), "same") > 0
    return ~near, held
