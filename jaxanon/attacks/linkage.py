"""Linkage: who a window comes from, where its subject was never in training."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxanon.attacks import attackers, shares


class Linked(NamedTuple):
    """Guesses at the subjects of some of the test windows."""

    rows: np.ndarray  # int[n], the test windows that were scored
    guesses: np.ndarray  # int[n]


def link_strangers(
    key,
    attacker: str,
    safe_test,
    subjects,
    activities,
    num_subjects: int,
    *,
    overlap: Callable | None = None,
) -> Linked:
    """Links anonymized windows of new subjects to earlier ones of the same people.

    The attacker has seen who sent the first half, in time, of every (subject,
    activity) among the anonymized test windows, and names the sender of the last
    40 %. Where test subjects did occur in training, ``reidentify`` is the protocol.

    Args:
      key: typed PRNG key.
      attacker: a name of ``attackers.ATTACKERS``.
      safe_test: ``float[M, time, channels]``, anonymized, standardised, in order of
        time within each (subject, activity).
      subjects: ``int[M]``.
      activities: ``int[M]``, the public attribute.
      num_subjects: number of subjects that there may be.
      overlap: which windows share samples, as ``shares.halves`` takes it; those that
        share some with known ones are not scored.

    Returns:
      ``Linked``.

    Raises:
      ValueError: for an unknown attacker, and if fewer than two subjects have three
        windows of one activity.
    """
    kind = attackers.get(attacker)
    subjects = np.asarray(subjects)
    known, scored = shares.halves(subjects, activities, overlap=overlap)
    if len(np.unique(subjects[known])) < 2:
        raise ValueError(
            "linkage needs at least 2 test subjects with 3 windows of one activity, "
            f"got {len(np.unique(subjects[known]))}; test on more people."
        )
    predict = kind.fit(key, safe_test[known], subjects[known], num_subjects)
    return Linked(scored, predict(safe_test[scored]))
