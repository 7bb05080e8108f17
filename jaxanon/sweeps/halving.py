"""Successive halving: settings that others beat are not trained to the end."""

import math
from typing import NamedTuple

import numpy as np

from jaxanon.attacks import attacker_data
from jaxanon.core import programs
from jaxanon.datasets import Data
from jaxanon.datasets.custom_split import TEST, TRAIN, by_time_block
from jaxanon.datasets.spec import take
from jaxanon.evaluation import attackers, protocol

ATTACKER = "logistic"  # Who is retrained: quick, and the same for all settings.

MOST = 2000  # Windows of either part; more would be tried for long and tell no more.


class Score(NamedTuple):
    """What a member keeps of held-out windows, and what it leaks."""

    kept: float  # accuracy of the public attribute, by a classifier of raw windows
    leaked: tuple[float, ...]  # balanced accuracy of each private one, retrained


NOTHING = Score(-math.inf, (math.inf,))  # Of a setting all of whose members diverged.


def rungs(epochs: int, eta: int, settings: int, least: int = 1) -> list[int]:
    """The epochs after which settings are compared.

    These are ``epochs / eta ** k``, rounded up, for k as long as ``settings``, divided
    by ``eta`` each time, leave one.

    Args:
      epochs: of those who are trained to the end.
      eta: which share goes on, one in so many at least.
      settings: how many there are.
      least: epochs that the method's last phase needs to begin; there is none before.

    Example:
      >>> rungs(27, 3, 12), rungs(20, 4, 3), rungs(4, 2, 100)
      ([3, 9], [], [1, 2])
    """
    found, power = [], eta
    while power <= settings and power <= epochs:
        found.append(math.ceil(epochs / power))
        power *= eta
    return sorted({each for each in found if least <= each < epochs})


def held_out(data: Data) -> Data:
    """Training windows parted into those to learn from and those to judge by.

    The last of everybody's windows of everything are held out, and what overlaps them
    is left out. Test windows are not among either.

    Raises:
      ValueError: for a private class of which one window is left to learn from: nobody
        could be compared.
    """
    windows, labels = data.train
    told = {name: labels[name] for name in data.spec.classes if name in labels}
    side = by_time_block(None, windows, told, None)
    parts = []
    for kind in (TRAIN, TEST):
        rows = np.flatnonzero(side == kind)
        few = np.linspace(0, len(rows) - 1, min(MOST, len(rows))).astype(int)
        parts.append(take(data.train, rows[few]))
    held = Data(data.spec, *parts)
    for name in _private(held):
        left = held.train.labels[name]
        try:
            attacker_data.check_counts(left, 1.0, name)
        except ValueError as error:
            raise ValueError(
                f"halving holds out some training windows, and without them {error} "
                "Or leave halving out."
            ) from None
    return held


def _private(held):
    return [name for name in protocol.attacked(held) if name in held.spec.private]


def judge(held: Data):
    """Classifiers of raw windows, for ``tried``."""
    return protocol.train_raw_classifiers(protocol.root(0), held, _quiet)


def tried(run, held: Data, judges, seed: int) -> Score | None:
    """What a member keeps and leaks, as ``evaluate`` would say, by one quick attacker.

    Args:
      run: of the member, as far as it was trained.
      held: of ``held_out``; the attacker knows all labels of its first part.
      judges: of ``judge``.
      seed: of the member.

    Returns:
      ``Score``; None if the member diverged.
    """
    if not programs.state_is_finite(run.state):
        return None
    try:
        one = protocol.prepare_evaluation(run, seed, held, (ATTACKER,), 1.0, _quiet)
        names = _private(held)
        (evidence,) = attackers.reidentify([one], names)
    # What is nearly no number any more, scikit-learn refuses.
    except (FloatingPointError, ValueError):
        return None
    public = held.spec.public
    kept = protocol.score(held, public, judges.read[public](one.safe))["accuracy"]
    told = [protocol.score(held, name, evidence[name][ATTACKER]) for name in names]
    return Score(kept, tuple(score["balanced_accuracy"] for score in told))


def mean(scores) -> Score:
    """Of a setting's members; those that diverged are left out.

    Example:
      >>> mean([Score(1.0, (0.5,)), None, Score(0.5, (1.0,))])
      Score(kept=0.75, leaked=(0.75,))
    """
    known = [score for score in scores if score is not None]
    if not known:
        return NOTHING
    kept = math.fsum(score.kept for score in known) / len(known)
    columns = zip(*(score.leaked for score in known), strict=True)
    return Score(kept, tuple(math.fsum(each) / len(known) for each in columns))


def stopped(scores: dict[int, Score], eta: int) -> list[int]:
    """Which settings to stop: the most beaten ones, of those that others beat.

    A setting is beaten by one that keeps more and leaks less of every private
    attribute. At most ``1 - 1 / eta`` of the settings are stopped, and never one that
    nobody beats.

    Args:
      scores: of each setting that is still trained.
      eta: at least 2.

    Example:
      >>> stopped({0: Score(0.9, (0.6,)), 1: Score(0.8, (0.7,)), 2: Score(0.7, (0.8,)),
      ...          3: Score(0.5, (0.5,))}, 2)
      [2, 1]
    """
    beaten = {
        own: sum(beats(other, score) for other in scores.values())
        for own, score in scores.items()
    }
    worst = sorted((own for own in beaten if beaten[own]), key=lambda own: -beaten[own])
    return worst[: len(scores) - math.ceil(len(scores) / eta)]


def beats(one: Score, other: Score) -> bool:
    """Whether one keeps more, and leaks less of everything.

    Example:
      >>> good = Score(0.9, (0.5,))
      >>> beats(good, Score(0.8, (0.6,))), beats(good, Score(0.9, (0.6,)))
      (True, False)
    """
    if NOTHING in (one, other):
        return other == NOTHING != one
    pairs = zip(one.leaked, other.leaked, strict=True)
    return one.kept > other.kept and all(own < its for own, its in pairs)


def _quiet(what):
    del what
