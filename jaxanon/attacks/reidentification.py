"""Re-identification: attackers that train on the anonymizer's own output."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from jaxanon.attacks import attacker_data, attackers


class Target(NamedTuple):
    """One attribute behind one anonymizer, with the data of the attacker.

    ``anonymize(key, windows) -> float[N, time, channels]`` returns standardized
    windows. The attacker can run it because every device contains it.
    """

    anonymize: Callable
    windows: np.ndarray  # training windows, in the units that ``anonymize`` takes
    labels: np.ndarray  # int[N] of the attribute under attack
    num_classes: int
    safe_test: np.ndarray  # float[M, time, channels], anonymized and standardized
    attribute: str = "labels"  # name of the attribute, for messages


class Known(NamedTuple):
    """The attacker's training set of anonymized windows with labels."""

    windows: np.ndarray  # float[n, time, channels], standardized
    labels: np.ndarray  # int[n]


def know(keys, target: Target, share: float, *, rows=None, at_least: int = 0) -> Known:
    """Returns the training set of an attacker that knows a share of the labels.

    Args:
      keys: two typed PRNG keys. They choose and anonymize windows.
      target: attribute and anonymizer under attack.
      share: fraction of each class, in (0, 1].
      rows: ``int[n]`` ascending, the training windows to draw from. None uses all.
      at_least: minimum number of windows of each class, if the share is smaller.

    Raises:
      ValueError: see ``attacker_data.pick``; also if labels exceed ``num_classes``.
        Raised before anything is anonymized.

    Example:
      >>> windows, labels = np.ones((20, 4, 1)), np.arange(20) % 2
      >>> own = Target(lambda key, windows: -windows, windows, labels, 2, None)
      >>> known = know(jax.random.split(jax.random.key(0)), own, 0.2)
      >>> known.windows.shape, known.windows.max().item(), known.labels.tolist()
      ((4, 4, 1), -1.0, [0, 1, 0, 1])
    """
    pick_key, safe_key = keys
    labels = np.asarray(target.labels)
    rows = np.arange(len(labels)) if rows is None else rows
    named = target.attribute
    chosen = rows[
        attacker_data.pick(pick_key, labels[rows], share, named, at_least=at_least)
    ]
    attacker_data.check_labels(labels[chosen], target.num_classes, named)
    return Known(target.anonymize(safe_key, target.windows[chosen]), labels[chosen])


def reidentify(
    keys, attacker: str, targets: Sequence[Target], *, share: float = 0.2
) -> list[np.ndarray]:
    """Trains attackers on anonymized windows and applies them to the test windows.

    The attacker has the anonymizer and a labelled share of the *training* windows. It
    anonymizes them, trains on the output with early stopping on held-back windows, and
    predicts *all* anonymized test windows. Attackers that are networks train for all
    targets (attributes, seeds, methods) in one program.

    Args:
      keys: typed PRNG keys, ``[targets]``. Each chooses windows, anonymizes and trains.
      attacker: a name of ``attackers.ATTACKERS``.
      targets: attributes and anonymizers under attack.
      share: fraction of each class's training windows with known labels, in (0, 1].

    Returns:
      Per target ``float32[M, num_classes]``, the evidence for each class of each test
      window. The class with the largest evidence is the prediction.

    Raises:
      ValueError: if the attacker is unknown or labels exceed ``num_classes``; see also
        ``attacker_data.pick``.

    Example:
      Flipping the sign does not hide anything from an attacker with the anonymizer.

      >>> labels = np.arange(200) % 2
      >>> windows = np.float32(2 * labels - 1).repeat(8).reshape(200, 8, 1)
      >>> flip = Target(lambda key, windows: -windows, windows, labels, 2, -windows)
      >>> evidence, = reidentify(jax.random.key(0)[None], "forest", [flip])
      >>> float(np.mean(evidence.argmax(1) == labels))
      1.0

    References:
      Hajihassani, Ardakanian, Khazaei, Anonymizing sensor data on the edge, section 3
      (the attack) and 6.3.1 (20 % of the training windows). Here, unlike in the paper,
      the test windows are not used for training.
    """
    kind = attackers.get(attacker)
    keys = _split(keys, 3)
    known = [
        know(own, target, share)
        for own, target in zip(keys[:, :2], targets, strict=True)
    ]
    infer_fns = _fit(kind, keys[:, 2], known, targets)
    pairs = zip(infer_fns, targets, strict=True)
    return [infer(target.safe_test) for infer, target in pairs]


def reidentify_by_class(
    keys,
    attacker: str,
    targets: Sequence[Target],
    train_classes,
    test_classes,
    *,
    share: float = 0.2,
) -> list[np.ndarray]:
    """Runs ``reidentify`` with one attacker for each class of the public attribute.

    The attacker is assumed to know each window's public class, because an anonymizer
    preserves it. Each classifier has an easier task, but fewer windows to train on. All
    train in one program.

    Args:
      keys, attacker, targets, share: see ``reidentify``.
      train_classes: ``int[N]``, public class of each training window of every target.
      test_classes: ``int[M]``, public class of each test window. If a class does not
        occur in training, the evidence of its windows is 0.

    Returns:
      Per target ``float32[M, num_classes]``.

    Raises:
      ValueError: see ``reidentify``. Each class of the attribute needs two windows
        within each public class in which it occurs; this is checked first.

    Example:
      An attribute with opposite signs in the two public classes needs two attackers.

      >>> labels, public = np.arange(200) % 2, np.arange(200) // 2 % 2
      >>> level = np.float32((2 * labels - 1) * (2 * public - 1))
      >>> windows = level.repeat(8).reshape(200, 8, 1)
      >>> own = Target(lambda key, windows: windows, windows, labels, 2, windows)
      >>> keys = jax.random.key(0)[None]
      >>> evidence, = reidentify_by_class(keys, "tree", [own], public, public)
      >>> float(np.mean(evidence.argmax(1) == labels))
      1.0

    References:
      See ``reidentify``. One attacker per class is specific to jaxanon.
    """
    kind = attackers.get(attacker)
    train_classes, test_classes = np.asarray(train_classes), np.asarray(test_classes)
    classes = np.unique(train_classes)
    pairs = [(target, public) for target in targets for public in classes]
    for target in targets:
        check_by_class(target.labels, train_classes, share, target.attribute)
    keys = _split(_split(keys, len(classes)).reshape(-1), 3)
    known = []
    for own, (target, public) in zip(keys[:, :2], pairs, strict=True):
        rows = np.flatnonzero(train_classes == public)
        known.append(know(own, target, share, rows=rows))
    owners = [target for target, _ in pairs]
    infer_fns = iter(_fit(kind, keys[:, 2], known, owners))
    all_evidence = []
    for target in targets:
        evidence = np.zeros((len(target.safe_test), target.num_classes), np.float32)
        for public in classes:
            rows = np.flatnonzero(test_classes == public)
            evidence[rows] = next(infer_fns)(target.safe_test[rows])
        all_evidence.append(evidence)
    return all_evidence


def check_by_class(labels, public, share: float, attribute: str) -> None:
    """Raises ValueError if a share is too small for ``reidentify_by_class``.

    Args:
      labels: ``int[N]``, the attribute under attack of each training window.
      public: ``int[N]``, the public class of each training window.
      share: fraction of each class of the attribute within a public class, in (0, 1].
      attribute: name of the attribute, for the message.

    Example:
      >>> labels, public = np.array([0, 0, 1, 1, 0, 0, 1]), np.array([0] * 4 + [1] * 3)
      >>> check_by_class(labels[:6], public[:6], 1.0, "side")
      >>> check_by_class(labels, public, 1.0, "side")
      Traceback (most recent call last):
      ValueError: side within public class 1, class 1 has one training window, and ...
    """
    labels, public = np.asarray(labels), np.asarray(public)
    for public_class in np.unique(public):
        named = f"{attribute} within public class {public_class},"
        attacker_data.check_counts(labels[public == public_class], share, named)


class OwnShare(NamedTuple):
    """Evidence on the windows that an attacker trained on."""

    rows: np.ndarray  # int[n] ascending, indices of test windows
    evidence: np.ndarray  # float32[n, num_classes]


def reidentify_as_released(
    keys,
    attacker: str,
    targets: Sequence[Target],
    test_labels: Sequence,
    *,
    share: float = 0.2,
) -> list[OwnShare]:
    """Computes training accuracy, as the published programs report it.

    The attacker trains on a share of the anonymized *test* windows without holding any
    back, and predicts the same windows. With random anonymization the result is far
    above the accuracy on new windows. Use it only to compare with published tables.

    Args:
      keys, attacker, targets: see ``reidentify``.
      test_labels: per target ``int[M]`` of its attribute.
      share: fraction of each class's test windows, in (0, 1].

    Returns:
      Per target ``OwnShare``.

    Raises:
      ValueError: see ``reidentify``.

    Example:
      Windows of noise reveal nothing, but a tree memorizes its training windows.

      >>> safe = np.float32(np.random.default_rng(0).normal(size=(400, 8, 1)))
      >>> labels = np.arange(400) % 2
      >>> noise = Target(None, None, None, 2, safe)
      >>> own, = reidentify_as_released(
      ...     jax.random.key(0)[None], "tree", [noise], [labels])
      >>> len(own.rows), np.mean(own.evidence.argmax(1) == labels[own.rows]) > 0.8
      (80, np.True_)

    References:
      Hajihassani, Ardakanian, Khazaei, Anonymizing sensor data on the edge, section
      6.3.2. Its 98.8 % and 77.2 % are training accuracies, according to the programs
      that the authors released with ObscureNet, IoTDI 2021.
    """
    kind = attackers.get(attacker)
    keys = _split(keys, 2)
    rows, known = [], []
    for key, target, labels in zip(keys[:, 0], targets, test_labels, strict=True):
        chosen = attacker_data.pick(key, labels, share, target.attribute, side="test")
        rows.append(chosen)
        known.append(Known(target.safe_test[chosen], np.asarray(labels)[chosen]))
        attacker_data.check_labels(
            known[-1].labels, target.num_classes, target.attribute
        )
    infer_fns = _fit(kind, keys[:, 1], known, targets, hold_back=False)
    trained = zip(rows, infer_fns, known, strict=True)
    return [OwnShare(chosen, infer(one.windows)) for chosen, infer, one in trained]


def _split(keys, count):
    return jax.vmap(lambda key: jax.random.split(key, count))(keys)


def _fit(kind, keys, known, targets, hold_back=True):
    windows, labels = zip(*known, strict=True)
    counts = [target.num_classes for target in targets]
    return kind.fit_sets(keys, windows, labels, counts, hold_back=hold_back)
