"""Members of a sweep on trial, by judges that they share."""

import math
from collections.abc import Iterator

from jaxanon import evaluation, trial
from jaxanon.methods import rounds
from jaxanon.run import Run
from jaxanon.sweep_training import Job


def evaluate_all(job: Job, runs: dict[int, Run], attacks) -> Iterator:
    """Evaluates members of a sweep, each on the test windows of its split.

    Args:
      job: of the sweep.
      runs: by member, trained to the end.
      attacks: of ``evaluate``.

    Yields:
      ``(index, report)`` of each; None of one that diverged.
    """
    for index, run in runs.items():
        place = job.plan.members[index]
        data = job.data[place.split]
        if ("judges", place.split) not in job.kept:
            job.kept["judges", place.split] = evaluation.raw_judges(data)
        report = None
        if _sound(run, place.seed, data):
            report = evaluation.evaluate(
                run,
                data,
                attacks=attacks,
                seed=place.seed,
                judges=job.kept["judges", place.split],
            )
        yield index, report


def _sound(run, seed, data):
    """Whether a member is fit for an evaluation, or diverged."""
    losses = run.history[-1]["losses"].values()
    if not (all(map(math.isfinite, losses)) and rounds.sound(run.state)):
        return False
    try:
        run.anonymize(trial.root(seed), data.test.windows)
    except FloatingPointError:
        return False
    return True
