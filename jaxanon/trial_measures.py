"""What is measured of anonymized windows without an attacker."""

import jax
import numpy as np

from jaxanon import metrics
from jaxanon.trial import INFORMATION, Trial, physical, standardise

MOST = 2000  # Test windows whose distortion is measured, spread evenly.


def information(trial: Trial) -> dict:
    """Mutual information in nats, ``raw`` and ``anonymized``, by attribute."""
    trial.tell("estimating mutual information")
    spec, _, test = trial.data
    raw = standardise(spec, test.windows)
    key = jax.random.fold_in(trial.key, INFORMATION)
    told = {}
    names = dict.fromkeys((spec.public, *spec.private, "subject"))
    for index, attribute in enumerate(names):
        # The same subset before and after, so that only the windows differ.
        told[attribute] = {
            name: metrics.mutual_information(
                jax.random.fold_in(key, index), windows, test.labels[attribute]
            )
            for name, windows in (("raw", raw), ("anonymized", trial.safe))
        }
    return told


def distortion(trial: Trial) -> dict:
    """How far test windows were moved: warping distance, statistics, steps.

    Returns:
      ``windows`` (how many were measured); ``warping``, mean and standard deviation
      over them of ``metrics.warping_distances`` in deviations of the training rows;
      ``statistics`` of ``metrics.statistics_kept`` in physical units; ``steps`` of
      ``metrics.step_errors``, None without an acceleration with gravity.
    """
    trial.tell("measuring distortion")
    spec, _, test = trial.data
    count = min(MOST, len(test.windows))
    rows = np.linspace(0, len(test.windows) - 1, count).round().astype(int)
    raw, safe = test.windows[rows], physical(spec, trial.safe[rows])
    moved = metrics.warping_distances(standardise(spec, raw), trial.safe[rows])
    felt, told = (
        metrics.acceleration(x, spec.channels, spec.units) for x in (raw, safe)
    )
    steps = None if felt is None else metrics.step_errors(felt, told, spec.rate_hz)
    return {
        "windows": count,
        "warping": {"mean": float(moved.mean()), "std": float(moved.std())},
        "statistics": metrics.statistics_kept(raw, safe, spec.channels),
        "steps": steps,
    }
