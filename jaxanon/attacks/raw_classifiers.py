"""Classifiers trained on raw windows and evaluated on anonymized windows."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np

from jaxanon.attacks import attackers


class RawClassifiers(NamedTuple):
    """One classifier per attribute, trained on raw windows; fit once, use often.

    ``infer[attribute](windows) -> float32[N, classes]`` takes standardized windows and
    returns evidence for each class. ``raw`` holds it for the raw test windows.
    """

    infer: dict[str, Callable]
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
    """Trains a raw-data classifier for each attribute in ``num_classes``.

    The classifier of the public attribute measures utility. Those of private attributes
    are the intrusive attacker, which has labelled raw data but has never seen an
    anonymized window. Networks train for all attributes in one program, to the last
    epoch.

    Args:
      key: typed PRNG key.
      windows: ``float[N, time, channels]``, raw training windows, standardized.
      labels: ``int[N]`` per attribute.
      num_classes: number of classes per attribute. Its keys select the attributes.
      test_windows: ``float[M, time, channels]``, raw test windows, standardized.
      attacker: a name of ``attackers.ATTACKERS``.
      progress: callback for a line before each fit.

    Returns:
      ``RawClassifiers``.

    Raises:
      ValueError: if the attacker is unknown; see also ``models.fit.fit_classifier``.
    Example:
      >>> x = np.repeat(np.float32([-1, 1]), 20)[:, None, None] * np.ones((1, 4, 1))
      >>> truth = {"side": np.repeat([0, 1], 20)}
      >>> classifiers = train_raw_classifiers(
      ...     jax.random.key(0), x, truth, {"side": 2}, x, attacker="logistic")
      >>> float(np.mean(classifiers.raw["side"].argmax(1) == truth["side"]))
      1.0

    References:
      Yang and Ardakanian, Blinder, ACM TOSN 2023, section 3 (an attacker with raw
      data), 7.2.1 (its inferences) and 7.2.2 (utility).
    """
    kind = attackers.get(attacker)
    numbers = np.arange(len(num_classes))
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers)
    progress(f"training classifiers of {', '.join(num_classes)} on raw windows")
    infer_fns = kind.fit_sets(
        keys,
        [windows] * len(num_classes),
        [labels[attribute] for attribute in num_classes],
        list(num_classes.values()),
        hold_back=False,
    )
    infer = dict(zip(num_classes, infer_fns, strict=True))
    raw = {name: infer_fn(test_windows) for name, infer_fn in infer.items()}
    return RawClassifiers(infer, raw)
