"""Schedule of a sweep: trains members and stops dominated settings."""

import functools
import pathlib
from collections.abc import Callable

from jaxanon.core.method import epochs_needed
from jaxanon.datasets.sources import naming
from jaxanon.sweeps import folder, halving, members, splits
from jaxanon.sweeps.members import Job


def run(job: Job, train_fn: Callable, eta: int | None):
    """Trains a sweep's members; stops members of dominated settings early.

    Args:
      job: the sweep.
      train_fn: function ``(job, runs, epochs)`` that yields ``(index, Run)`` of trained
        members, such as ``members.train_all``.
      eta: halving factor; None trains all members completely.

    Returns:
      Runs by member, None for a lost one; epochs of stopped members, by member; and a
      list with one dict per comparison of settings.
    """
    numbers = _settings(job.plan)
    active = set(numbers)
    levels = [] if eta is None else _levels(job, eta, len(active))
    saved = [] if job.output_dir is None else _saved_rungs(job.output_dir)
    runs = members.load_runs(job, range(len(numbers)))
    stopped: dict[int, int] = {}
    rungs: list[dict] = []
    references = functools.cache(lambda split: _references(job.data[split]))
    for level, epochs in enumerate((*levels, job.epochs)):
        current = {i: runs[i] for i, number in enumerate(numbers) if number in active}
        for index, run in train_fn(job, current, epochs):
            runs[index] = run
        if level == len(levels):
            break
        if level == len(rungs) < len(saved):
            rungs.append(saved[level])  # The decision of the interrupted sweep.
        else:
            rungs.append(_compare(job, runs, numbers, active, references, epochs, eta))
            if job.output_dir is not None:
                folder.add(job.output_dir, rungs=rungs)
        now_stopped = _stopped(rungs[-1])
        active -= now_stopped
        stopped |= {i: epochs for i, n in enumerate(numbers) if n in now_stopped}
    return runs, stopped, rungs


def _saved_rungs(output_dir):
    """Comparisons made by the interrupted sweep."""
    with naming(f"{pathlib.Path(output_dir) / folder.FILE}, its rungs"):
        rungs = list(folder.read(output_dir).get("rungs", []))
        for rung in rungs:
            _stopped(rung)
    return rungs


def _stopped(rung):
    """Numbers of the settings that a comparison stopped."""
    return {row["number"] for row in rung["settings"] if row["stopped"]}


def _settings(plan) -> list[int]:
    """Number of each member's setting, in the order of the grid."""
    cells: list[dict] = []
    numbers = []
    for place in plan.members:
        if not cells or cells[-1] != place.settings:
            cells.append(place.settings)
        numbers.append(len(cells) - 1)
    return numbers


def _levels(job, eta, settings):
    rounds = splits.rounds_per_epoch
    methods = [group.method for group in job.plan.groups]
    needed = max(epochs_needed(each, rounds(each, job.data[0])) for each in methods)
    return halving.rungs(job.epochs, eta, settings, needed)


def _references(data):
    held = halving.hold_out(data)
    return held, halving.train_classifiers(held)


def _compare(job, runs, numbers, active, references, epochs, eta) -> dict:
    """Scores of the active settings, and whether each is stopped."""
    scores: dict[int, list] = {number: [] for number in sorted(active)}
    names: dict[int, dict] = {}
    for index, (place, number) in enumerate(
        zip(job.plan.members, numbers, strict=True)
    ):
        if number in active:
            names[number] = place.settings
            if runs[index] is not None:
                held, classifiers = references(place.split)
                one = halving.score_member(runs[index], held, classifiers, place.seed)
                scores[number].append(one)
    means = {n: halving.mean_score(each) for n, each in scores.items() if each}
    stopped = halving.settings_to_stop(means, eta)
    rows = [
        {
            "number": number,
            "settings": names[number],
            "kept": score.utility,
            "leaked": list(score.leaked),
            "stopped": number in stopped,
        }
        for number, score in means.items()
    ]
    return {"epoch": epochs, "settings": rows}
