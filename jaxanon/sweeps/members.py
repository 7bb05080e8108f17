"""Trains the members of a sweep in chunks, and evaluates them with shared judges."""

import dataclasses
import math
import pathlib
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import jax

from jaxanon import datasets
from jaxanon.core import programs
from jaxanon.core.run import Run
from jaxanon.evaluation import anonymizers, federated, protocol
from jaxanon.federated.engine import memory
from jaxanon.sweeps import folder as sweeps_folder
from jaxanon.sweeps import program, splits
from jaxanon.sweeps.space import Plan
from jaxanon.training import progress, run_folder

GROUP = 8  # Members whose attackers train together; a killed sweep loses no more.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """What all members of a sweep have in common."""

    plan: Plan
    data: tuple[datasets.Data, ...]  # by split
    epochs: int  # that were asked for
    layout: str  # one of ``program.LAYOUTS``
    chunk: int | None  # members trained at once; None is what fits
    out: pathlib.Path | None
    show: bool
    # What was made once for all members: of the last group bundles and configs; judges.
    kept: dict = dataclasses.field(default_factory=dict)


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
    if job.plan.groups[0].method.predict is not None:
        for index, run in runs.items():
            data = job.data[members[index].split]
            seed = members[index].seed
            diverged = not _all_finite(run)
            yield index, None if diverged else federated.evaluate(run, data, seed=seed)
        return
    for split in dict.fromkeys(members[index].split for index in runs):
        data = job.data[split]
        if ("judges", split) not in job.kept:
            progress.note("training judges of raw windows ...", show=job.show)
            job.kept["judges", split] = anonymizers.train_raw_classifiers(data)
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
            reports = anonymizers.evaluate_each(
                [runs[index] for index in group],
                data,
                [members[index].seed for index in group],
                attacks=attacks,
                judges=job.kept["judges", split],
            )
            yield from zip(group, reports, strict=True)


def _sound(run, seed, data):
    """Whether a member is fit for an evaluation, or diverged."""
    if not _all_finite(run):
        return False
    try:
        run.anonymize(protocol.root(seed), data.test.windows)
    except FloatingPointError:
        return False
    return True


def _all_finite(run):
    """Whether a member's last losses and its state are finite."""
    losses = run.history[-1]["losses"].values()
    return all(map(math.isfinite, losses)) and programs.state_is_finite(run.state)


def chunks(indices: list[int], size: int) -> list[list[int]]:
    """Members of each chunk; all chunks have one size, so one program serves them.

    The last member comes again where the last chunk would be short.

    Example:
      >>> chunks([3, 5, 7, 8, 9], 2)
      [[3, 5], [7, 8], [9, 9]]
    """
    places = range(size * math.ceil(len(indices) / size))
    padded = [indices[min(place, len(indices) - 1)] for place in places]
    return [padded[at : at + size] for at in range(0, len(padded), size)]


def found(job: Job, indices) -> dict[int, Run | None]:
    """Members, in order, as they were saved; None of those that were not."""
    runs: dict[int, Run | None] = dict.fromkeys(indices)
    if job.out is not None:
        for group in job.plan.groups:
            for index in set(group.indices) & set(runs):
                method = group.methods[job.plan.members[index].split]
                runs[index] = sweeps_folder.opened(job.out, index, method)
    return runs


def train_all(job: Job, runs: dict[int, Run | None], epochs: int) -> Iterator:
    """Trains those of some members that are not done, group after group.

    Args:
      job: of the sweep.
      runs: by member, as far as they are; None of one that is new.
      epochs: to the end of which they are to be trained.

    Yields:
      ``(index, Run)`` of each one trained, saved, as soon as its chunk is done.
    """
    for number, group in enumerate(job.plan.groups):
        own = {index: runs[index] for index in group.indices if index in runs}
        if own:
            if job.kept.get("group") != number:
                made = splits.bundles(job.data, group, job.layout, job.chunk)
                job.kept.update(group=number, bundles=made, configs={})
            yield from _train_group(job, group, own, epochs)


def _train_group(job, group, runs, epochs):
    parts = job.kept["bundles"]
    work = [
        chunk
        for bundle in parts
        for chunk in _work(job, group, bundle, runs, epochs * bundle.shared.per_epoch)
    ]
    total, told = sum(chunk.last - chunk.first for chunk in work), 0
    with progress.rounds(total, 0, show=job.show, epochs=epochs) as tell:
        for chunk in work:
            ago = told - chunk.first
            say = lambda row, ago=ago: tell(row | {"round": row["round"] + ago})
            yield from _train(job, group, chunk, runs, say)
            told += chunk.last - chunk.first


class _Chunk(NamedTuple):
    """Members that are trained at once."""

    shared: program.Program
    indices: list[int]  # of several splits, as many of each in turn
    first: int  # rounds that they have done
    last: int  # rounds that they are to have done


def _work(job, group, bundle, runs, last) -> list[_Chunk]:
    """The chunks of a bundle that are left, up to a round."""
    left: dict[int, dict[int, list[int]]] = {}
    for split in bundle.splits:
        for index, run in runs.items():
            done = 0 if run is None else int(run.state.round)
            if job.plan.members[index].split == split and done < last:
                left.setdefault(done, {}).setdefault(split, []).append(index)
    work = []
    for done, members in left.items():
        if len(members) == len(bundle.splits):
            parts = [(bundle.shared, [*members.values()])]
        else:  # Some are done with all of theirs.
            parts = [(bundle.alone(split), [own]) for split, own in members.items()]
        for shared, columns in parts:
            most = max(map(len, columns))
            size = min(_size(job, group, shared, most), most)
            level = [column + column[-1:] * (most - len(column)) for column in columns]
            for rows in zip(*(chunks(column, size) for column in level), strict=True):
                work.append(
                    _Chunk(shared, [i for row in rows for i in row], done, last)
                )
    return work


def _size(job, group, shared, most):
    """Members of each split to train at once."""
    if job.chunk is not None:
        return max(1, job.chunk // shared.splits)
    key = jax.random.key(job.plan.members[group.indices[0]].seed)
    like = jax.eval_shape(group.method.init, key)
    return program.chunk_size(shared, most, like)


def _train(job, group, chunk, runs, tell):
    """Trains one chunk, and saves it."""
    places = [job.plan.members[index] for index in chunk.indices]
    seeds = [place.seed for place in places]
    if chunk.first:
        states = program.stack([runs[index].state for index in chunk.indices])
    else:
        hyper = dict(zip(group.indices, group.hyper, strict=True))
        hyper = [hyper[index] for index in chunk.indices]
        states = program.start(chunk.shared.method, seeds, hyper)
    trained = program.run_members(
        chunk.shared, seeds, states, first=chunk.first, last=chunk.last, tell=tell
    )
    configs = job.kept["configs"]  # Of a group and split, for all data is read.
    for split in {place.split for place in places} - set(configs):
        configs[split] = run_folder.describe(
            group.methods[split],
            job.data[split],
            trained[0][0],
            epochs=job.epochs,
            seed=0,
        )
    done = {}
    for index, place, one in zip(chunk.indices, places, trained, strict=True):
        if index not in done:  # Else it was there to fill the chunk.
            config, before = configs[place.split], runs[index]
            run = _run(job, group, index, place, one, config, before)
            ended = chunk.last == job.epochs * chunk.shared.per_epoch
            _tell_useless(run, index, ended)
            done[index] = run
    yield from done.items()


def _run(job, group, index, place, trained, config, before):
    """A trained member as a run, saved where there is a folder."""
    state, history = trained
    values = {name: float(value) for name, value in state.hyper.items()}
    config = config | {"seed": place.seed, "hyper": values}
    history = ([] if before is None else before.history) + history
    method, out = group.methods[place.split], job.out
    folder = None if out is None else sweeps_folder.member_folder(out, index)
    run = Run(method, state, method.spec, folder, history, config)
    if out is None:
        return run
    return sweeps_folder.save(run)


def _tell_useless(run, index, ended):
    """Warns where a method would have stopped; the others are none the worse."""
    check_history = run.method.schedule.check_history
    if check_history is not None:
        try:
            check_history(run.history, ended=ended)
        except ValueError as error:
            warnings.warn(f"member {index}: {error}", UserWarning, stacklevel=2)
