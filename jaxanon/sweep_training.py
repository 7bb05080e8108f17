"""Members of a sweep, trained in chunks that fit the memory, and saved with them."""

import dataclasses
import math
import pathlib
from collections.abc import Iterator

import jax

from jaxanon import datasets, progress, sweep_folder, sweep_program, training
from jaxanon.run import Run
from jaxanon.sweep_grid import Group, Plan


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """What all members of a sweep have in common."""

    plan: Plan
    data: datasets.Data
    epochs: int  # that were asked for
    layout: str  # one of ``sweep_program.LAYOUTS``
    chunk: int | None  # members trained at once; None is what fits
    out: pathlib.Path | None
    show: bool


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


def found(job: Job, group: Group) -> dict[int, Run | None]:
    """The members of a group as an earlier call saved them."""
    if job.out is None:
        return dict.fromkeys(group.indices)
    return {
        index: sweep_folder.opened(job.out, index, group.method)
        for index in group.indices
    }


def train(job: Job, group: Group, runs: dict[int, Run | None]) -> Iterator:
    """Trains those members of a group that are not done.

    Args:
      job: of the sweep.
      group: of its plan.
      runs: of the group's members, as far as they are; None of one that is new.

    Yields:
      ``(index, Run)`` of each member, saved, as soon as its chunk is done.
    """
    method = group.method
    prepared = method.prepare(datasets.by_client(job.data.train))
    shared = sweep_program.program(method, prepared, job.layout)
    last = job.epochs * shared.per_epoch
    work = _work(job, shared, group, runs, last)
    total = sum(last - first for first, _ in work)
    told = 0
    with progress.rounds(total, 0, show=job.show, epochs=job.epochs) as tell:
        for first, indices in work:
            said = lambda row, ago=told - first: tell(
                row | {"round": row["round"] + ago}
            )
            yield from _chunk(job, shared, group, runs, indices, (first, last), said)
            told += last - first


def _work(job, shared, group, runs, last):
    """``(rounds done, members)`` of every chunk that is left."""
    left: dict[int, list[int]] = {}
    for index, run in runs.items():
        done = 0 if run is None else int(run.state.round)
        if done < last:
            left.setdefault(done, []).append(index)
    work = []
    for done, indices in left.items():
        size = job.chunk
        if size is None:
            key = jax.random.key(job.plan.members[indices[0]][1])
            like = jax.eval_shape(group.method.init, key)
            size = sweep_program.chunk_size(shared, len(indices), like)
        size = min(size, len(indices))
        work += [(done, part) for part in chunks(indices, size)]
    return work


def _chunk(job, shared, group, runs, indices, rounds, tell):
    """Trains one chunk, from a round to another, and saves it."""
    method, out = group.method, job.out
    seeds = [job.plan.members[index][1] for index in indices]
    if rounds[0]:
        states = sweep_program.stack([runs[index].state for index in indices])
    else:
        hyper = dict(zip(group.indices, group.hyper, strict=True))
        states = sweep_program.start(method, seeds, [hyper[i] for i in indices])
    first, last = rounds
    trained = sweep_program.run_members(
        shared, seeds, states, first=first, last=last, tell=tell
    )
    state = trained[0][0]
    config = training.describe(method, job.data, state, epochs=job.epochs, seed=0)
    done = {}
    for index, seed, (state, history) in zip(indices, seeds, trained, strict=True):
        if index in done:
            continue  # It was there to fill the chunk.
        values = {name: float(value) for name, value in state.hyper.items()}
        own = config | {"seed": seed, "hyper": values}
        folder = None if out is None else sweep_folder.member_folder(out, index)
        before = [] if runs[index] is None else runs[index].history
        run = Run(method, state, job.data.spec, folder, before + history, own)
        done[index] = run if out is None else sweep_folder.save(run)
    yield from done.items()
