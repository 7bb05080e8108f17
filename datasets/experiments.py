"""Harder variants of data: class imbalance, and unseen test subjects."""

import dataclasses

import numpy as np

from jaxanon.datasets.spec import Data, Windows, take
from jaxanon.datasets.splits import draw_test_subjects
from jaxanon.datasets.targets import moments


def imbalance(windows: Windows, attribute: str, ratio: float, seed: int) -> Windows:
    """Subsamples windows so that each subject has ``ratio`` times more of one class.

    The majority class of each subject is drawn at random from its classes. All other
    classes get ``low`` windows each and the majority ``round(ratio * low)``, for the
    largest possible ``low``. The order of windows is preserved. This is the ratio R_D
    of Blinder.

    Args:
      windows: training windows.
      attribute: attribute to skew, usually the public one.
      ratio: majority over minority count, >= 1; 1 balances the classes.
      seed: random seed of majority classes and windows.

    Raises:
      ValueError: if the ratio is below 1, the attribute is unknown or numeric, or a
        subject has fewer than two classes or too few windows of its majority class.

    Example:
      >>> ten = Windows(np.zeros((10, 4, 1), np.float32),
      ...               {"act": np.repeat([0, 1], 5), "subject": np.zeros(10, int)})
      >>> sorted(np.bincount(imbalance(ten, "act", 5, seed=0).labels["act"]).tolist())
      [1, 5]

    References:
      Yang et al., Blinder, ACM TOSN 2023, section 7.2.3.
    """
    if not ratio >= 1:
        raise ValueError(f"ratio must be >= 1, majority over minority, got {ratio!r}.")
    if attribute not in windows.labels:
        raise ValueError(
            f"attribute must be one of {sorted(windows.labels)}, got {attribute!r}."
        )
    if windows.labels[attribute].dtype.kind == "f":
        raise ValueError(
            f"attribute must have classes to skew, got the numeric {attribute!r}."
        )
    random = np.random.default_rng(seed)
    label, subject = windows.labels[attribute], windows.labels["subject"]
    selected = []
    for each in np.unique(subject):
        rows = np.flatnonzero(subject == each)
        selected += _skew(random, rows, label[rows], ratio, f"subject {each}")
    return take(windows, np.sort(np.concatenate(selected)))


def _skew(random, rows, label, ratio, name):
    """Returns the selected rows of one subject, class by class."""
    classes, counts = np.unique(label, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"{name} must have at least 2 classes, got {len(classes)}; drop that "
            "subject."
        )
    majority = random.integers(len(classes))
    low = min(counts.min(), int(counts[majority] // ratio))
    if low < 1:
        raise ValueError(
            f"ratio must be at most {counts[majority]}, the number of windows of the "
            f"majority class of {name}, got {ratio}; choose a smaller ratio."
        )
    sizes = np.full(len(classes), low)
    sizes[majority] = round(ratio * low)
    return [
        random.choice(rows[label == name], size, replace=False)
        for name, size in zip(classes, sizes, strict=True)
    ]


def hold_out_subjects(data: Data, fraction: float, seed: int) -> Data:
    """Holds out ``fraction`` of the training subjects and tests on unseen subjects.

    The training side keeps the windows of the remaining subjects and recomputes
    statistics from them. The test side keeps the windows of all other subjects. This is
    1 - R_U of Blinder; it tests an anonymizer on new users.

    Args:
      data: ``Data`` with any split; ``spec.split`` of the result is ``"subject"``.
      fraction: fraction of the training subjects, in (0, 1); at least one is held out
        and at least one remains.
      seed: random seed of the subjects.

    Raises:
      ValueError: if ``fraction`` is out of range, there are fewer than two training
        subjects, or no held-out subject has a test window.

    References:
      Yang et al., Blinder, ACM TOSN 2023, section 7.9.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must be in (0, 1), got {fraction!r}.")
    subjects = np.unique(data.train.labels["subject"])
    training = np.setdiff1d(subjects, draw_test_subjects(subjects, fraction, seed))
    train = take(data.train, np.isin(data.train.labels["subject"], training))
    test = take(data.test, ~np.isin(data.test.labels["subject"], training))
    if len(test.windows) == 0:
        raise ValueError(
            f"held-out subjects (all but {training.tolist()}) must have a test window, "
            "got none; raise fraction or change seed."
        )
    targets = {}
    for name, target in data.spec.targets.items():
        mean, std = moments(train.labels[name])
        targets[name] = dataclasses.replace(target, mean=mean, std=std)
    spec = dataclasses.replace(data.spec, targets=targets, split="subject")
    if not spec.tokens:
        mean = train.windows.mean(axis=(0, 1), dtype=np.float64)
        std = train.windows.std(axis=(0, 1), dtype=np.float64)
        statistics = {"mean": tuple(mean.tolist()), "std": tuple(std.tolist())}
        spec = dataclasses.replace(spec, **statistics)
    return Data(spec, train, test)
