"""What further attacks start from, and the lines that they report."""

from collections.abc import Sequence
from typing import NamedTuple

from jaxanon import attacks, trial
from jaxanon.trial import Trial

# An attack's place draws its keys, so a new one comes last.
NAMES = ("intrusive", "released", "per-class", "stream", "pairs", "self-training",
         "inversion", "fingerprint", "membership")  # fmt: skip
FIRST = 1000  # Above what other keys are folded with.


class Case(NamedTuple):
    """What the evaluation already knows when further attacks begin."""

    trials: Sequence[Trial]
    evidence: list[dict]  # of ``trial.reidentify``
    judges: attacks.Judges


def row(attribute, attacker, variant, scores=None, **figures) -> dict:
    """One line of a report: ``scores`` of ``metrics.scores``, or other ``figures``."""
    return {
        "attribute": attribute,
        "attacker": attacker,
        "variant": variant,
        "scores": scores,
        "figures": figures,
    }


def keys(case: Case, attack: str, attributes, *more: int):
    """Keys of an attack, one per trial and attribute."""
    numbers = trial.purposes(case.trials[0].data, attributes)
    return trial.folded(case.trials, numbers, FIRST + NAMES.index(attack), *more)


def empty(case: Case) -> tuple[list[list[dict]], list[tuple[list[dict], str]]]:
    """No rows for each trial, and with each attribute those that it will add to."""
    rows: list[list[dict]] = [[] for _ in case.trials]
    names = trial.attacked(case.trials[0].data)
    return rows, [(own, name) for own in rows for name in names]
