"""Self-training: a support vector machine that needs very few labels."""

import jax
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from jaxanon.attacks import attacker_data
from jaxanon.attacks.attackers import LEAST, features, log_shares

MOST = 2000  # Maximum unlabelled windows to train on; all are predicted.


def self_train(
    key, windows, labels, unlabelled, num_classes: int, *, rounds: int = 8
) -> np.ndarray:
    """Predicts unlabelled windows from a few labelled ones by self-training.

    A support vector machine learns the labelled windows and predicts the others. In
    each round it adds a larger share of the windows predicted as each class, the most
    confident first, to its training set; the last round adds all. A few labels suffice
    if the windows of a class form a cluster.

    Args:
      key: typed PRNG key. It draws 2,000 unlabelled windows if there are more.

      windows: ``float[n, time, channels]``, anonymized and standardized.
      labels: ``int[n]`` in ``[0, num_classes)`` with at least two classes.
      unlabelled: ``float[M, time, channels]``, anonymized and standardized.
      num_classes: number of classes.
      rounds: number of rounds of self-training. With 0, only labelled windows are used.

    Returns:
      ``float32[M, num_classes]``, evidence for each class of the unlabelled windows.

    Raises:
      ValueError: if labels have fewer than two classes or exceed ``num_classes``, or
        ``rounds`` < 0.

    Example:
      >>> level = np.float32([-1, 1] + [-1.2, 0.9, 1.1])
      >>> windows = level[:, None, None] * np.ones((1, 4, 1), np.float32)
      >>> evidence = self_train(jax.random.key(0), windows[:2], [0, 1], windows[2:], 2)
      >>> evidence.argmax(1)
      array([0, 1, 1])

    References:
      Gao, Towards private and accurate IoT applications, 2024, section 4.2.1
      (PrivateHub); Yarowsky, Unsupervised word sense disambiguation rivaling supervised
      methods, ACL 1995.
    """
    labels = np.asarray(labels)
    if len(np.unique(labels)) < 2:
        raise ValueError(
            f"labels must have at least 2 classes, got {np.unique(labels).tolist()}; "
            "label a window of each."
        )
    attacker_data.check_labels(labels, num_classes)
    if rounds < 0:
        raise ValueError(f"rounds must be >= 0, got {rounds!r}.")
    if not len(unlabelled):
        return np.zeros((0, num_classes), np.float32)
    known, every = features(windows), features(unlabelled)
    seed = int(jax.random.bits(key, dtype=np.uint32))
    chosen = np.random.default_rng(seed).permutation(len(every))[:MOST]
    pool = every[chosen]
    model = _fit(known, labels)
    for number in range(1, rounds + 1):
        scores = log_shares(model, pool)
        # Only given labels are final; predicted ones can change in later rounds.
        rows = _surest(scores, number / rounds)
        guesses = model.classes_[scores[rows].argmax(1)]
        model = _fit(
            np.concatenate([known, pool[rows]]), np.concatenate([labels, guesses])
        )
    evidence = np.full((len(every), num_classes), np.log(LEAST), np.float32)
    evidence[:, model.classes_] = np.maximum(log_shares(model, every), np.log(LEAST))
    return evidence


def _fit(rows, labels):
    model = make_pipeline(StandardScaler(), SVC(class_weight="balanced"))
    return model.fit(rows, labels)


def _surest(scores, share):
    """Returns the most confident ``share`` of the windows of each predicted class."""
    guesses, confidence = scores.argmax(1), scores.max(1)
    chosen = []
    for label in np.unique(guesses):
        rows = np.flatnonzero(guesses == label)
        count = max(1, round(share * len(rows)))
        chosen.append(rows[np.argsort(-confidence[rows], kind="stable")[:count]])
    return np.concatenate(chosen)
