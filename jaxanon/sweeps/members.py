"""Training of a sweep's members in chunks, and evaluation with shared classifiers."""

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

GROUP = 8  # Members whose attackers train together; a killed sweep loses at most these.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """Settings and caches shared by all members of a sweep."""

    plan: Plan
    data: tuple[datasets.Data, ...]  # by split
    epochs: int  # epochs of a complete training
    layout: str  # one of ``program.LAYOUTS``
    chunk: int | None  # members trained at once; None is as many as fit
    output_dir: pathlib.Path | None
    show: bool
    # Bundles and configs of the last group, and raw-data classifiers by split.
    cache: dict = dataclasses.field(default_factory=dict)


def evaluate_all(job: Job, runs: dict[int, Run], attacks) -> Iterator:
    """Evaluates members of a sweep, each on the test windows of its split.

    Args:
      job: the sweep.
      runs: completely trained runs by member.
      attacks: attacks, as for ``evaluate``.

    Yields:
      ``(index, report)`` of each member; the report is None if the member diverged.
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
        if ("classifiers", split) not in job.cache:
            progress.note("training raw-data classifiers ...", show=job.show)
            classifiers = anonymizers.train_raw_classifiers(data)
            job.cache["classifiers", split] = classifiers
        finite = []
        for index in (index for index in runs if members[index].split == split):
            if _can_anonymize(runs[index], members[index].seed, data):
                finite.append(index)
            else:
                yield index, None
        size = memory.even(len(finite), GROUP) if finite else 1
        for group in (finite[at : at + size] for at in range(0, len(finite), size)):
            names = ", ".join(map(str, group))
            progress.note(f"attacking members {names} ...", show=job.show)
            reports = anonymizers.evaluate_each(
                [runs[index] for index in group],
                data,
                [members[index].seed for index in group],
                attacks=attacks,
                raw_classifiers=job.cache["classifiers", split],
            )
            yield from zip(group, reports, strict=True)


def _can_anonymize(run, seed, data):
    """Returns whether a member's state and its anonymized windows are finite."""
    if not _all_finite(run):
        return False
    try:
        run.anonymize(protocol.root(seed), data.test.windows)
    except FloatingPointError:
        return False
    return True


def _all_finite(run):
    """Returns whether a member's last losses and its state are finite."""
    losses = run.history[-1]["losses"].values()
    return all(map(math.isfinite, losses)) and programs.state_is_finite(run.state)


def chunks(indices: list[int], size: int) -> list[list[int]]:
    """Splits members into chunks of equal size, so that one program serves them.

    The last chunk repeats the last member if necessary.

    Example:
      >>> chunks([3, 5, 7, 8, 9], 2)
      [[3, 5], [7, 8], [9, 9]]
    """
    count = size * math.ceil(len(indices) / size)
    padded = [indices[min(i, len(indices) - 1)] for i in range(count)]
    return [padded[at : at + size] for at in range(0, len(padded), size)]


def load_runs(job: Job, indices) -> dict[int, Run | None]:
    """Returns the saved runs of members, in order; None for members without one."""
    runs: dict[int, Run | None] = dict.fromkeys(indices)
    if job.output_dir is not None:
        for group in job.plan.groups:
            for index in set(group.indices) & set(runs):
                method = group.methods[job.plan.members[index].split]
                runs[index] = sweeps_folder.open_member(job.output_dir, index, method)
    return runs


def train_all(job: Job, runs: dict[int, Run | None], epochs: int) -> Iterator:
    """Trains members up to an epoch, group after group.

    Args:
      job: the sweep.
      runs: current runs by member; None for a new member.
      epochs: number of epochs that members have afterwards.

    Yields:
      ``(index, Run)`` of each trained and saved member, when its chunk is finished.
    """
    for number, group in enumerate(job.plan.groups):
        group_runs = {index: runs[index] for index in group.indices if index in runs}
        if group_runs:
            if job.cache.get("group") != number:
                bundles = splits.bundles(job.data, group, job.layout, job.chunk)
                job.cache.update(group=number, bundles=bundles, configs={})
            yield from _train_group(job, group, group_runs, epochs)


def _train_group(job, group, runs, epochs):
    parts = job.cache["bundles"]
    work = [
        chunk
        for bundle in parts
        for chunk in _work(job, group, bundle, runs, epochs * bundle.shared.per_epoch)
    ]
    total, done = sum(chunk.last - chunk.first for chunk in work), 0
    with progress.rounds(total, 0, show=job.show, epochs=epochs) as show:
        for chunk in work:
            offset = done - chunk.first
            show_row = lambda row, n=offset: show(row | {"round": row["round"] + n})
            yield from _train(job, group, chunk, runs, show_row)
            done += chunk.last - chunk.first


class _Chunk(NamedTuple):
    """Members that are trained at once."""

    shared: program.Program
    indices: list[int]  # equal numbers of each split, one split after another
    first: int  # rounds done before
    last: int  # rounds done afterwards


def _work(job, group, bundle, runs, last) -> list[_Chunk]:
    """Remaining chunks of a bundle, up to a round."""
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
        else:  # Some splits are finished.
            parts = [(bundle.for_split(split), [i]) for split, i in members.items()]
        for shared, columns in parts:
            longest = max(map(len, columns))
            size = min(_size(job, group, shared, longest), longest)
            level = [
                column + column[-1:] * (longest - len(column)) for column in columns
            ]
            for rows in zip(*(chunks(column, size) for column in level), strict=True):
                work.append(
                    _Chunk(shared, [i for row in rows for i in row], done, last)
                )
    return work


def _size(job, group, shared, count):
    """Number of members of each split to train at once."""
    if job.chunk is not None:
        return max(1, job.chunk // shared.splits)
    key = jax.random.key(job.plan.members[group.indices[0]].seed)
    like = jax.eval_shape(group.method.init, key)
    return program.chunk_size(shared, count, like)


def _train(job, group, chunk, runs, show_row):
    """Trains and saves one chunk."""
    places = [job.plan.members[index] for index in chunk.indices]
    seeds = [place.seed for place in places]
    if chunk.first:
        states = program.stack([runs[index].state for index in chunk.indices])
    else:
        hyper = dict(zip(group.indices, group.hyper, strict=True))
        hyper = [hyper[index] for index in chunk.indices]
        states = program.start(chunk.shared.method, seeds, hyper)
    trained = program.run_members(
        chunk.shared,
        seeds,
        states,
        first=chunk.first,
        last=chunk.last,
        show_row=show_row,
    )
    configs = job.cache["configs"]  # Cached, because a fingerprint reads all data.
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
        if index not in done:  # Else it only pads the chunk.
            config, before = configs[place.split], runs[index]
            run = _run(job, group, index, place, one, config, before)
            ended = chunk.last == job.epochs * chunk.shared.per_epoch
            _warn_if_useless(run, index, ended)
            done[index] = run
    yield from done.items()


def _run(job, group, index, place, trained, config, before):
    """Returns a trained member as a run and saves it if there is a folder."""
    state, history = trained
    values = {name: float(value) for name, value in state.hyper.items()}
    config = config | {"seed": place.seed, "hyper": values}
    history = ([] if before is None else before.history) + history
    method, output_dir = group.methods[place.split], job.output_dir
    folder = (
        None if output_dir is None else sweeps_folder.member_folder(output_dir, index)
    )
    run = Run(method, state, method.spec, folder, history, config)
    if output_dir is None:
        return run
    return sweeps_folder.save(run)


def _warn_if_useless(run, index, ended):
    """Warns instead of raising, so that the other members continue."""
    check_history = run.method.schedule.check_history
    if check_history is not None:
        try:
            check_history(run.history, ended=ended)
        except ValueError as error:
            warnings.warn(f"member {index}: {error}", UserWarning, stacklevel=2)
