"""Judges: classifiers of raw windows, let loose on anonymized ones."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np

from jaxanon.attacks import attackers


class RawClassifiers(NamedTuple):
    """One classifier per attribute, trained on raw windows; fit once, use often.

    ``read[attribute](windows) -> float32[N, classes]`` takes standardised windows and
    gives evidence for each class; ``raw`` holds it for the raw test windows.
    """

    read: dict[str, Callable]
    raw: dict[str, np.ndarray]  # float32[M, classes] per attribute


def train_raw_classifiers(
    key,
    windows,
    labels: Mapping[str, np.ndarray],
    num_classes: Mapping[str, int],
    test_windows,
    *,
    attacker: str = "mlp",
    progress: Callable[[str], None] = lambda line: None,
) -> RawClassifiers:
    """Trains a classifier for every attribute in ``num_classes``, on every window.

    The one of the public attribute measures utility, the others are the intrusive
    adversary, who has raw data with labels but has never seen an anonymized window.
    Networks train for all attributes in one program, to the last epoch.

    Args:
      key: typed PRNG key.
      windows: ``float[N, time, channels]``, raw training windows, standardised.
      labels: ``int[N]`` per attribute.
      num_classes: per attribute to judge.
      test_windows: ``float[M, time, channels]``, raw test windows, standardised.
      attacker: a name of ``attackers.ATTACKERS``.
      progress: called with a line before each fit.

    Returns:
      ``RawClassifiers``.

    Raises:
      ValueError: for an unknown attacker, and as ``models.fit.fit_classifier``.

    Example:
      >>> x = np.repeat(np.float32([-1, 1]), 20)[:, None, None] * np.ones((1, 4, 1))
      >>> truth = {"side": np.repeat([0, 1], 20)}
      >>> judges = train_raw_classifiers(
      ...     jax.random.key(0), x, truth, {"side": 2}, x, attacker="logistic")
      >>> float(np.mean(judges.raw["side"].argmax(1) == truth["side"]))
      1.0

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 3 (an adversary with raw
      data), 7.2.1 (the intrusive judge) and 7.2.2 (the one of utility).
    """
    kind = attackers.get(attacker)
    numbers = np.arange(len(num_classes))
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers)
    progress(f"training judges of {', '.join(num_classes)} on raw windows")
    reads = kind.fit_sets(
        keys,
        [windows] * len(num_classes),
        [labels[attribute] for attribute in num_classes],
        list(num_classes.values()),
        hold_back=False,
    )
    read = dict(zip(num_classes, reads, strict=True))
    return RawClassifiers(read, {name: own(test_windows) for name, own in read.items()})
