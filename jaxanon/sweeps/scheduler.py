"""The course of a sweep: who is trained, how far, and who is stopped on the way."""

import functools
import pathlib
from collections.abc import Callable

from jaxanon.core.method import epochs_needed
from jaxanon.datasets.sources import naming
from jaxanon.sweeps import folder, halving, members, splits
from jaxanon.sweeps.members import Job


def run(job: Job, train_fn: Callable, eta: int | None):
    """Trains a sweep's members, those of beaten settings not to the end.

    Args:
      job: of the sweep.
      train_fn: ``(job, runs, epochs)``, yields ``(index, Run)`` of members that it has
        trained, such as ``members.train_all``.
      eta: of ``halving``; None trains all members to the end.

    Returns:
      Runs by member, None of one that got lost; the epoch at which a member was
      stopped, by member; and what was found on the way, a dict for each comparison.
    """
    numbers = _settings(job.plan)
    alive = set(numbers)
    levels = [] if eta is None else _levels(job, eta, len(alive))
    told = [] if job.output_dir is None else _told(job.output_dir)
    runs = members.found(job, range(len(numbers)))
    stopped: dict[int, int] = {}
    rungs: list[dict] = []
    judges = functools.cache(lambda split: _judges(job.data[split]))
    for place, epochs in enumerate((*levels, job.epochs)):
        left = {i: runs[i] for i, number in enumerate(numbers) if number in alive}
        for index, found in train_fn(job, left, epochs):
            runs[index] = found
        if place == len(levels):
            break
        if place == len(rungs) < len(told):
            rungs.append(told[place])  # As it was decided before the sweep was killed.
        else:
            rungs.append(_compare(job, runs, numbers, alive, judges, epochs, eta))
            if job.output_dir is not None:
                folder.add(job.output_dir, rungs=rungs)
        gone = _gone(rungs[-1])
        alive -= gone
        stopped |= {i: epochs for i, number in enumerate(numbers) if number in gone}
    return runs, stopped, rungs


def _told(output_dir):
    """The comparisons that were made before the sweep was killed."""
    with naming(f"{pathlib.Path(output_dir) / folder.FILE}, its rungs"):
        told = list(folder.read(output_dir).get("rungs", []))
        for rung in told:
            _gone(rung)
    return told


def _gone(rung):
    """Numbers of the settings that a comparison stopped."""
    return {row["number"] for row in rung["settings"] if row["stopped"]}


def _settings(plan) -> list[int]:
    """The number of each member's setting, in the order of the grid."""
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
    least = max(epochs_needed(each, rounds(each, job.data[0])) for each in methods)
    return halving.rungs(job.epochs, eta, settings, least)


def _judges(data):
    held = halving.held_out(data)
    return held, halving.judge(held)


def _compare(job, runs, numbers, alive, judges, epochs, eta) -> dict:
    """What settings keep and leak so far, and which are stopped."""
    scores: dict[int, list] = {number: [] for number in sorted(alive)}
    names: dict[int, dict] = {}
    for index, (place, number) in enumerate(
        zip(job.plan.members, numbers, strict=True)
    ):
        if number in alive:
            names[number] = place.settings
            if runs[index] is not None:
                held, of_raw = judges(place.split)
                one = halving.tried(runs[index], held, of_raw, place.seed)
                scores[number].append(one)
    means = {n: halving.mean(own) for n, own in scores.items() if own}
    gone = halving.stopped(means, eta)
    rows = [
        {
            "number": number,
            "settings": names[number],
            "kept": score.kept,
            "leaked": list(score.leaked),
            "stopped": number in gone,
        }
        for number, score in means.items()
    ]
    return {"epoch": epochs, "settings": rows}
