"""Successive halving: stops settings early that others dominate."""

import math
from typing import NamedTuple

import numpy as np

from jaxanon.attacks import attacker_data
from jaxanon.core import programs
from jaxanon.datasets import Data
from jaxanon.datasets.custom_split import TEST, TRAIN, by_time_block
from jaxanon.datasets.spec import take
from jaxanon.evaluation import attackers, protocol

ATTACKER = "logistic"  # A fast attacker, retrained for each setting.

MAX_WINDOWS = 2000  # Windows of either part; more are slow and change little.


class Score(NamedTuple):
    """Utility and leakage of a member on held-out windows."""

    utility: float  # accuracy of the public attribute by a raw-data classifier
    leaked: tuple[float, ...]  # balanced accuracy of retrained attackers, by attribute


DIVERGED = Score(-math.inf, (math.inf,))  # All members of the setting diverged.


def rungs(epochs: int, eta: int, settings: int, min_epochs: int = 1) -> list[int]:
    """Returns the epochs after which settings are compared.

    These are ``epochs / eta ** k``, rounded up, for all k with ``eta ** k`` at most
    ``epochs`` and ``settings``.

    Args:
      epochs: epochs of a complete training.
      eta: halving factor.
      settings: number of settings.
      min_epochs: first epoch of the method's last phase, before which settings cannot
        be compared.

    Example:
      >>> rungs(27, 3, 12), rungs(20, 4, 3), rungs(4, 2, 100)
      ([3, 9], [], [1, 2])
    """
    levels, power = [], eta
    while power <= settings and power <= epochs:
        levels.append(math.ceil(epochs / power))
        power *= eta
    return sorted({level for level in levels if min_epochs <= level < epochs})


def hold_out(data: Data) -> Data:
    """Splits training windows into a part to learn from and a held-out part.

    Each subject's last windows of each class are held out, and windows that overlap
    them are dropped. Test windows are in neither part.

    Raises:
      ValueError: if a private class has too few windows to learn from.
    """
    windows, labels = data.train
    classes = {name: labels[name] for name in data.spec.classes if name in labels}
    side = by_time_block(None, windows, classes, None)
    parts = []
    for kind in (TRAIN, TEST):
        rows = np.flatnonzero(side == kind)
        subset = np.linspace(0, len(rows) - 1, min(MAX_WINDOWS, len(rows))).astype(int)
        parts.append(take(data.train, rows[subset]))
    held = Data(data.spec, *parts)
    for name in _private(held):
        try:
            attacker_data.check_counts(held.train.labels[name], 1.0, name)
        except ValueError as error:
            raise ValueError(
                f"halving holds out some training windows, and without them {error} "
                "Or disable halving."
            ) from None
    return held


def _private(held):
    return [name for name in protocol.attacked(held) if name in held.spec.private]


def train_classifiers(held: Data):
    """Trains raw-data classifiers for ``score_member``."""
    return protocol.train_raw_classifiers(protocol.root(0), held, _quiet)


def score_member(run, held: Data, classifiers, seed: int) -> Score | None:
    """Evaluates a partly trained member with one fast attacker.

    Args:
      run: run of the member.
      held: data from ``hold_out``; the attacker knows all labels of its first part.
      classifiers: raw-data classifiers, from ``train_classifiers``.
      seed: seed of the member.

    Returns:
      A ``Score``; None if the member diverged.
    """
    if not programs.state_is_finite(run.state):
        return None
    try:
        one = protocol.prepare_evaluation(run, seed, held, (ATTACKER,), 1.0, _quiet)
        names = _private(held)
        (evidence,) = attackers.reidentify([one], names)
    # scikit-learn rejects values that are too large for float32.
    except (FloatingPointError, ValueError):
        return None
    public = held.spec.public
    logits = classifiers.infer[public](one.safe)
    utility = protocol.score(held, public, logits)["accuracy"]
    scores = [protocol.score(held, name, evidence[name][ATTACKER]) for name in names]
    return Score(utility, tuple(score["balanced_accuracy"] for score in scores))


def mean_score(scores) -> Score:
    """Returns the mean score of a setting's members that did not diverge.

    Example:
      >>> mean_score([Score(1.0, (0.5,)), None, Score(0.5, (1.0,))])
      Score(utility=0.75, leaked=(0.75,))
    """
    known = [score for score in scores if score is not None]
    if not known:
        return DIVERGED
    utility = math.fsum(score.utility for score in known) / len(known)
    columns = zip(*(score.leaked for score in known), strict=True)
    return Score(utility, tuple(math.fsum(each) / len(known) for each in columns))


def settings_to_stop(scores: dict[int, Score], eta: int) -> list[int]:
    """Returns the settings to stop, those dominated by the most others first.

    A setting is dominated by one with higher utility and less leakage of every private
    attribute. At most a fraction ``1 - 1 / eta`` of the settings is stopped, and only
    dominated ones.

    Args:
      scores: score of each setting that is still trained.
      eta: halving factor, at least 2.

    Example:
      >>> scores = {0: Score(0.9, (0.6,)), 1: Score(0.8, (0.7,))}
      >>> scores |= {2: Score(0.7, (0.8,)), 3: Score(0.5, (0.5,))}
      >>> settings_to_stop(scores, 2)
      [2, 1]
    """
    counts = {
        number: sum(beats(other, score) for other in scores.values())
        for number, score in scores.items()
    }
    dominated = [number for number in counts if counts[number]]
    dominated.sort(key=lambda number: -counts[number])
    return dominated[: len(scores) - math.ceil(len(scores) / eta)]


def beats(one: Score, other: Score) -> bool:
    """Returns whether one has higher utility and less leakage of all attributes.

    Example:
      >>> good = Score(0.9, (0.5,))
      >>> beats(good, Score(0.8, (0.6,))), beats(good, Score(0.9, (0.6,)))
      (True, False)
    """
    if DIVERGED in (one, other):
        return other == DIVERGED != one
    pairs = zip(one.leaked, other.leaked, strict=True)
    return one.utility > other.utility and all(a < b for a, b in pairs)


def _quiet(line):
    del line
