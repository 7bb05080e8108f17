"""Re-identification: the attacker who trains on the anonymizer's own output."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from jaxanon.attacks import attacker_data, attackers


class Target(NamedTuple):
    """One attribute behind one anonymizer, and what the attacker owns to read it.

    ``anonymize(key, windows) -> float[N, time, channels]`` gives standardised windows;
    the attacker may run it himself, for it is on every device.
    """

    anonymize: Callable
    windows: np.ndarray  # training windows, in whatever units ``anonymize`` takes
    labels: np.ndarray  # int[N] of the attribute under attack
    num_classes: int
    safe_test: np.ndarray  # float[M, time, channels], anonymized and standardised
    attribute: str = "labels"  # its name, for messages


class Known(NamedTuple):
    """The attacker's training set: anonymized windows, and the truth about them."""

    windows: np.ndarray  # float[n, time, channels], standardised
    labels: np.ndarray  # int[n]


def know(keys, target: Target, share: float, *, rows=None, at_least: int = 0) -> Known:
    """What an attacker knows who has the labels of a share of the training windows.

    Args:
      keys: two typed PRNG keys: which windows, and their anonymization.
      target: whom he attacks.
      share: of each class, in (0, 1].
      rows: ``int[n]`` ascending, the training windows to draw from; None is all.
      at_least: windows of each class that he knows where the share is fewer.

    Raises:
      ValueError: as ``attacker_data.pick``, and for labels beyond ``num_classes``;
        before anything is anonymized.

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
    """What a retrained attacker reads out of anonymized test windows.

    He owns the anonymizer, a share of the *training* windows and their labels. He
    anonymizes those, trains on the output with early stopping on a part that he holds
    back, and reads *all* anonymized test windows. Attackers that are networks train for
    all targets (attributes, seeds, methods) in one program.

    Args:
      keys: typed PRNG keys, ``[targets]``: which windows he knows, their
        anonymization, his training.
      attacker: a name of ``attackers.ATTACKERS``.
      targets: whom he attacks.
      share: of each class's training windows that he knows, in (0, 1].

    Returns:
      Per target ``float32[M, num_classes]``, his evidence for each class of each test
      window; the largest is his guess.

    Raises:
      ValueError: for an unknown attacker, labels beyond ``num_classes``, and as
        ``attacker_data.pick``.

    Example:
      An anonymizer that flips the sign fools nobody who may run it himself.

      >>> labels = np.arange(200) % 2
      >>> windows = np.float32(2 * labels - 1).repeat(8).reshape(200, 8, 1)
      >>> flip = Target(lambda key, windows: -windows, windows, labels, 2, -windows)
      >>> evidence, = reidentify(jax.random.key(0)[None], "forest", [flip])
      >>> float(np.mean(evidence.argmax(1) == labels))
      1.0

    References:
      Hajihassani, Ardakanian, Khazaei, Anonymizing sensor data on the edge, section 3
      (the attack) and 6.3.1 (20 % of the training windows); here scored on windows that
      he did not train on.
    """
    kind = attackers.get(attacker)
    keys = _split(keys, 3)
    known = [
        know(own, target, share)
        for own, target in zip(keys[:, :2], targets, strict=True)
    ]
    reads = _fit(kind, keys[:, 2], known, targets)
    return [read(one.safe_test) for read, one in zip(reads, targets, strict=True)]


def reidentify_by_class(
    keys,
    attacker: str,
    targets: Sequence[Target],
    train_classes,
    test_classes,
    *,
    share: float = 0.2,
) -> list[np.ndarray]:
    """As ``reidentify``, by one attacker for each class of the public attribute.

    Which class a window is of the attacker takes as known: an anonymizer keeps it.
    Each of his classifiers has then less to tell apart, and fewer windows to learn it
    from. All of them train in one program.

    Args:
      keys, attacker, targets, share: as ``reidentify``.
      train_classes: ``int[N]``, public class of each training window of every target.
      test_classes: ``int[M]``, likewise of the test windows. Windows of a class that
        does not occur in training are read by nobody: their evidence is all 0.

    Returns:
      Per target ``float32[M, num_classes]``.

    Raises:
      ValueError: as ``reidentify``; a class of the attribute needs two windows within
        every public class in which it occurs, which is looked at before any work.

    Example:
      What is a sign in one class and its opposite in the other needs two attackers.

      >>> labels, public = np.arange(200) % 2, np.arange(200) // 2 % 2
      >>> level = np.float32((2 * labels - 1) * (2 * public - 1))
      >>> windows = level.repeat(8).reshape(200, 8, 1)
      >>> own = Target(lambda key, windows: windows, windows, labels, 2, windows)
      >>> keys = jax.random.key(0)[None]
      >>> evidence, = reidentify_by_class(keys, "tree", [own], public, public)
      >>> float(np.mean(evidence.argmax(1) == labels))
      1.0

    References:
      ``reidentify``'s for the attack; one attacker for each class is our own.
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
    reads = iter(_fit(kind, keys[:, 2], known, owners))
    found = []
    for target in targets:
        told = np.zeros((len(target.safe_test), target.num_classes), np.float32)
        for public in classes:
            rows = np.flatnonzero(test_classes == public)
            told[rows] = next(reads)(target.safe_test[rows])
        found.append(told)
    return found


def check_by_class(labels, public, share: float, attribute: str) -> None:
    """ValueError as ``reidentify_by_class`` raises where a share is too small.

    Args:
      labels: ``int[N]`` of the attribute under attack, of the training windows.
      public: ``int[N]``, their public class.
      share: of each class of the attribute within a public class, in (0, 1].
      attribute: its name, for the message.

    Example:
      >>> labels, public = np.array([0, 0, 1, 1, 0, 0, 1]), np.array([0] * 4 + [1] * 3)
      >>> check_by_class(labels[:6], public[:6], 1.0, "side")
      >>> check_by_class(labels, public, 1.0, "side")
      Traceback (most recent call last):
      ValueError: side within public class 1, class 1 has one training window, and ...
    """
    labels, public = np.asarray(labels), np.asarray(public)
    for number in np.unique(public):
        named = f"{attribute} within public class {number},"
        attacker_data.check_counts(labels[public == number], share, named)


class OwnShare(NamedTuple):
    """Evidence on the very windows that an attacker trained on."""

    rows: np.ndarray  # int[n] ascending, of the test windows
    evidence: np.ndarray  # float32[n, num_classes]


def reidentify_as_released(
    keys,
    attacker: str,
    targets: Sequence[Target],
    test_labels: Sequence,
    *,
    share: float = 0.2,
) -> list[OwnShare]:
    """Training accuracy, which the published programs report as re-identification.

    The attacker trains on a share of the anonymized *test* windows, holding nothing
    back, and is scored on that same share. Where anonymization is random this is far
    above what he reads of any other window; it serves to compare with published tables
    and for nothing else.

    Args:
      keys, attacker, targets: as ``reidentify``.
      test_labels: per target ``int[M]`` of its attribute.
      share: of each class's test windows, in (0, 1].

    Returns:
      Per target ``OwnShare``.

    Raises:
      ValueError: as ``reidentify``.

    Example:
      Windows that are noise tell nothing, yet a tree knows nearly all of its own.

      >>> safe = np.float32(np.random.default_rng(0).normal(size=(400, 8, 1)))
      >>> labels = np.arange(400) % 2
      >>> noise = Target(None, None, None, 2, safe)
      >>> own, = reidentify_as_released(
      ...     jax.random.key(0)[None], "tree", [noise], [labels])
      >>> len(own.rows), np.mean(own.evidence.argmax(1) == labels[own.rows]) > 0.8
      (80, np.True_)

    References:
      Hajihassani, Ardakanian, Khazaei, Anonymizing sensor data on the edge, section
      6.3.2: its 98.8 % and 77.2 % are of this kind by the programs that its authors
      released with ObscureNet, IoTDI 2021.
    """
    kind = attackers.get(attacker)
    keys = _split(keys, 2)
    rows, known = [], []
    for key, target, labels in zip(keys[:, 0], targets, test_labels, strict=True):
        own = attacker_data.pick(key, labels, share, target.attribute, side="test")
        rows.append(own)
        known.append(Known(target.safe_test[own], np.asarray(labels)[own]))
        attacker_data.check_labels(
            known[-1].labels, target.num_classes, target.attribute
        )
    reads = _fit(kind, keys[:, 1], known, targets, hold_back=False)
    seen = zip(rows, reads, known, strict=True)
    return [OwnShare(own, read(one.windows)) for own, read, one in seen]


def _split(keys, count):
    return jax.vmap(lambda key: jax.random.split(key, count))(keys)


def _fit(kind, keys, known, targets, hold_back=True):
    windows, labels = zip(*known, strict=True)
    counts = [target.num_classes for target in targets]
    return kind.fit_sets(keys, windows, labels, counts, hold_back=hold_back)
