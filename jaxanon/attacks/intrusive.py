"""Judges: classifiers of raw windows, let loose on anonymized ones."""

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np

from jaxanon.models import fit


class Judges(NamedTuple):
    """One classifier per attribute, trained on raw windows; fit once, use often.

    ``predict[attribute](windows) -> int[N]`` takes standardised windows; ``raw``
    holds what each says of the raw test windows.
    """

    predict: dict[str, Callable]
    raw: dict[str, np.ndarray]  # int32[N] per attribute


def train_judges(
    key,
    windows,
    labels: Mapping[str, np.ndarray],
    num_classes: Mapping[str, int],
    test_windows,
    *,
    progress: Callable[[str], None] = lambda line: None,
) -> Judges:
    """Trains a classifier for every attribute in ``num_classes``, on every window.

    The one of the public attribute measures utility, the others are the intrusive
    adversary, who has raw data with labels but has never seen an anonymized window.

    Args:
      key: typed PRNG key.
      windows: ``float[N, time, channels]``, raw training windows, standardised.
      labels: ``int[N]`` per attribute.
      num_classes: per attribute to judge.
      test_windows: ``float[M, time, channels]``, raw test windows, standardised.
      progress: called with a line before each fit.

    Returns:
      ``Judges``.

    Raises:
      ValueError: as ``models.fit.fit_classifier``.
    """
    predict, raw = {}, {}
    for index, (attribute, count) in enumerate(num_classes.items()):
        progress(f"training a judge of {attribute} on raw windows")
        own_key = jax.random.fold_in(key, index)
        fitted = fit.fit_classifier(own_key, windows, labels[attribute], count)
        predict[attribute] = functools.partial(fit.predict, fitted)
        raw[attribute] = predict[attribute](test_windows)
    return Judges(predict, raw)
