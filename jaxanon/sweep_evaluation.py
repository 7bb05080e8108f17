"""Members of a sweep on trial, by judges that they share and attackers side by side."""

import math
from collections.abc import Iterator

from jaxanon import evaluation, progress, trial
from jaxanon.federated import memory
from jaxanon.methods import rounds
from jaxanon.run import Run
from jaxanon.sweep_training import Job

GROUP = 8  # Members whose attackers train together; a killed sweep loses no more.


def evaluate_all(job: Job, runs: dict[int, Run], attacks) -> Iterator:
    """Evaluates members of a sweep, each on the test windows of its split.

    Args:
      job: of the sweep.
      runs: by member, trained to the end.
      attacks: of ``evaluate``.

    Yields:
      ``(index, report)`` of each; None of one that diverged.
    """
    members = job.plan.members
    for split in dict.fromkeys(members[index].split for index in runs):
        data = job.data[split]
        if ("judges", split) not in job.kept:
            progress.note("training judges of raw windows ...", show=job.show)
            job.kept["judges", split] = evaluation.raw_judges(data)
        sound = []
        for index in (index for index in runs if members[index].split == split):
            if _sound(runs[index], members[index].seed, data):
                sound.append(index)
            else:
                yield index, None
        size = memory.even(len(sound), GROUP) if sound else 1
        for group in (sound[at : at + size] for at in range(0, len(sound), size)):
            which = ", ".join(map(str, group))
            progress.note(f"attacking members {which} ...", show=job.show)
            reports = evaluation.evaluate_each(
                [runs[index] for index in group],
                data,
                [members[index].seed for index in group],
                attacks=attacks,
                judges=job.kept["judges", split],
            )
            yield from zip(group, reports, strict=True)


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
