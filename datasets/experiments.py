"""Data made harder on purpose: skewed classes, and people never seen in training."""

import dataclasses

import numpy as np

from jaxanon.datasets.spec import Data, Windows, take
from jaxanon.datasets.splits import held_out
from jaxanon.datasets.targets import moments


def imbalance(windows: Windows, attribute: str, ratio: float, seed: int) -> Windows:
    """Skews ``attribute`` so that each subject has ``ratio`` times more of one class.

    Every subject's majority class is drawn at random among the classes that the
    subject has. Windows are only left out, never made: all other classes keep ``low``
    windows each, the majority ``round(ratio * low)``, with the largest ``low`` that
    the subject's windows allow. Order is kept. This is the ratio R_D of Blinder.

    Args:
      windows: a training side.
      attribute: the attribute to skew, usually the public one.
      ratio: majority over minority count, >= 1; 1 balances the classes.
      seed: draws the majority classes and the windows that stay.

    Raises:
      ValueError: if the ratio is below 1, there is no such attribute or it is a
        number, or a subject has fewer than two classes or too few windows of its
        majority class.

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
            f"attribute must have classes to skew, and {attribute!r} is a number."
        )
    random = np.random.default_rng(seed)
    label, subject = windows.labels[attribute], windows.labels["subject"]
    kept = []
    for who in np.unique(subject):
        mine = np.flatnonzero(subject == who)
        kept += _skewed(random, mine, label[mine], ratio, f"subject {who}")
    return take(windows, np.sort(np.concatenate(kept)))


def _skewed(random, rows, label, ratio, who):
    """The rows that one subject keeps, class by class."""
    classes, counts = np.unique(label, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"{who} has {len(classes)} class; a ratio needs at least 2, leave that "
            "subject out."
        )
    majority = random.integers(len(classes))
    low = min(counts.min(), int(counts[majority] // ratio))
    if low < 1:
        raise ValueError(
            f"ratio {ratio} is out of reach: {who} has {counts[majority]} windows of "
            "its majority class; choose a smaller ratio."
        )
    sizes = np.full(len(classes), low)
    sizes[majority] = round(ratio * low)
    return [
        random.choice(rows[label == name], size, replace=False)
        for name, size in zip(classes, sizes, strict=True)
    ]


def hold_out_subjects(data: Data, fraction: float, seed: int) -> Data:
    """Leaves ``fraction`` of the training subjects out, and tests on strangers only.

    Training keeps the windows of the other subjects, with statistics of their own;
    the test side keeps the windows of whoever does not train. This is 1 - R_U of
    Blinder, and how an anonymizer is tried on new users.

    Args:
      data: any split; ``spec.split`` of the result is ``"subject"``.
      fraction: share of the training subjects, in (0, 1); at least one is left out
        and at least one stays.
      seed: draws the subjects.

    Raises:
      ValueError: if ``fraction`` is out of range, fewer than two subjects train, or
        nobody left out has a test window.

    References:
      Yang et al., Blinder, ACM TOSN 2023, section 7.9.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must lie in (0, 1), got {fraction!r}.")
    subjects = np.unique(data.train.labels["subject"])
    training = np.setdiff1d(subjects, held_out(subjects, fraction, seed))
    train = take(data.train, np.isin(data.train.labels["subject"], training))
    test = take(data.test, ~np.isin(data.test.labels["subject"], training))
    if len(test.windows) == 0:
        raise ValueError(
            f"the subjects left out (all but {training.tolist()}) have no test "
            "windows; raise fraction or change seed."
        )
    targets = {}
    for name, target in data.spec.targets.items():
        middle, spread = moments(train.labels[name])
        targets[name] = dataclasses.replace(target, mean=middle, std=spread)
    spec = dataclasses.replace(data.spec, targets=targets, split="subject")
    if not spec.tokens:
        mean = train.windows.mean(axis=(0, 1), dtype=np.float64)
        std = train.windows.std(axis=(0, 1), dtype=np.float64)
        of_others = {"mean": tuple(mean.tolist()), "std": tuple(std.tolist())}
        spec = dataclasses.replace(spec, **of_others)
    return Data(spec, train, test)
