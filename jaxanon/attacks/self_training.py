"""The attacker with hardly any labels: a support vector machine that trains itself."""

import jax
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from jaxanon.attacks import attacker_data
from jaxanon.attacks.attackers import LEAST, features, log_shares

MOST = 2000  # Windows without labels that it trains on; it reads all of them.


def self_train(
    key, windows, labels, unlabelled, num_classes: int, *, rounds: int = 8
) -> np.ndarray:
    """Reads windows that came without labels, starting from a few that have some.

    A support vector machine learns the labelled windows and names the others; in each
    round a larger share of those called each class, the surest first, are taken for
    true and learned as well, in the last round all. What gives away a class need not be
    labelled often: it is enough that its windows hang together.

    Args:
      key: typed PRNG key: which 2,000 unlabelled windows train, if there are more.
      windows: ``float[n, time, channels]``, anonymized and standardised.
      labels: ``int[n]`` in ``[0, num_classes)``, at least two classes among them.
      unlabelled: ``float[M, time, channels]``, likewise.
      num_classes: number of classes.
      rounds: of self-training; 0 learns the labelled windows alone.

    Returns:
      ``float32[M, num_classes]``, evidence for each class of the unlabelled windows.

    Raises:
      ValueError: if the labels are of fewer than two classes, or of one that there is
        not, or ``rounds`` < 0.

    Example:
      >>> level = np.float32([-1, 1] + [-1.2, 0.9, 1.1])
      >>> windows = level[:, None, None] * np.ones((1, 4, 1), np.float32)
      >>> read = self_train(jax.random.key(0), windows[:2], [0, 1], windows[2:], 2)
      >>> read.argmax(1)
      array([0, 1, 1])

    References:
      Gao, Towards private and accurate IoT applications, 2024, section 4.2.1
      (PrivateHub); Yarowsky, Unsupervised word sense disambiguation rivaling supervised
      methods, ACL 1995.
    """
    labels = np.asarray(labels)
    if len(np.unique(labels)) < 2:
        raise ValueError(
            f"labels must be of at least 2 classes, got {np.unique(labels).tolist()}; "
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
        said = log_shares(model, pool)
        # Their labels may change: none but those that were given is final.
        rows = _surest(said, number / rounds)
        guesses = model.classes_[said[rows].argmax(1)]
        model = _fit(
            np.concatenate([known, pool[rows]]), np.concatenate([labels, guesses])
        )
    evidence = np.full((len(every), num_classes), np.log(LEAST), np.float32)
    evidence[:, model.classes_] = np.maximum(log_shares(model, every), np.log(LEAST))
    return evidence


def _fit(rows, labels):
    model = make_pipeline(StandardScaler(), SVC(class_weight="balanced"))
    return model.fit(rows, labels)


def _surest(said, share):
    """Of the windows called each class the surest ``share``, at least one."""
    guesses, surety = said.argmax(1), said.max(1)
    chosen = []
    for label in np.unique(guesses):
        rows = np.flatnonzero(guesses == label)
        count = max(1, round(share * len(rows)))
        chosen.append(rows[np.argsort(-surety[rows], kind="stable")[:count]])
    return np.concatenate(chosen)
