"""``sweep``: a grid of hyper-parameters times seeds, trained as one program."""

import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxanon import (
    checks,
    evaluation,
    report,
    sweep_course,
    sweep_folder,
    sweep_grid,
    sweep_program,
    sweep_splits,
    sweep_training,
    trial,
)
from jaxanon.methods import rounds
from jaxanon.run import Run
from jaxanon.sweep_summary import summarise, table

__all__ = ["Member", "Sweep", "sweep", "table"]


class Member(NamedTuple):
    """One of a sweep's runs."""

    settings: dict[str, Any]  # its values of the grid
    seed: int
    losses: dict[str, float]  # means over the last rounds; nan if it diverged
    split: int = 0  # 0 is ``data``, 1 the first of ``splits``
    stopped: int | None = None  # after which epoch, by ``halving``; else None


class Sweep(NamedTuple):
    """What ``sweep`` returns; the i-th entry of each belongs to the i-th member."""

    members: tuple[Member, ...]
    runs: tuple[Run, ...]
    reports: tuple[dict | None, ...]  # of ``evaluate``; empty if not asked for
    summary: list[dict]  # by setting: mean and deviation over seeds, splits

    def run(self, index: int) -> Run:
        """The run of member ``index``, as ``train`` would have returned it."""
        return self.runs[index]


def sweep(
    method,
    data,
    *,
    grid: dict[str, list] | None = None,
    seeds: int = 1,
    splits: Sequence = (),
    epochs: int = 20,
    out: str | os.PathLike | None = None,
    resume: bool = False,
    evaluate: bool = False,
    attacks=("mlp", "forest"),
    halving: int | None = None,
    layout: str | None = None,
    chunk: int | None = None,
    progress: bool = True,
    **settings,
) -> Sweep:
    """Trains every combination of ``grid`` with every seed, on every split.

    Hyper-parameters and seeds are one axis of one program, which is compiled once;
    with the same ``Method`` another sweep of as many members compiles nothing. A
    setting that is compiled into the method, such as a layer's width, may be swept as
    well: for each of its values there is one more program, one after the other.

    Args:
      method: a builder such as ``jaxanon.methods.blinder``, its name, or a ``Method``.
      data: of ``jaxanon.load``.
      grid: name of a setting -> its values; ``None`` varies the seed alone.
      seeds: how many; member seeds are 0, 1, ..., as ``train`` takes them.
      splits: further splits of the data set that ``data`` is one of, such as
        ``load(..., split="subject", seed=1)``, each a member's own to train on and to
        be tested on. They are a further axis of the program where their arrays have
        equal shapes (Blinder's are padded for it) and its method compiles to the same
        for all of them; else each has a program, or one after the other.
      epochs: as ``train`` takes it.
      out: folder for ``sweep.json`` and a run folder for each member, which
        ``open_run`` opens; written when a chunk ends. Where members are evaluated
        also ``front.png`` and ``sweep.html``, what each setting keeps over what it
        leaks. ``None`` keeps nothing.
      resume: go on with the sweep in ``out``; members that were saved whole are not
        trained again.
      evaluate: whether to evaluate every member, with judges that they share.
      attacks: of ``evaluate``.
      halving: stop settings early that others beat, by successive halving; ``None``
        trains all to the end. With 3, after 1/9 and 1/3 of the epochs (as far as there
        are settings to third) the settings are compared, by means over seeds and
        splits: by what a classifier of raw windows reads of the public attribute, and a
        quick retrained attacker of each private one, in held-out *training* windows,
        never in test windows. Of those that another beats in all of it the most beaten
        are stopped, two thirds of the settings at most, and the others go on where they
        were. One that was stopped keeps its run, is told with its epoch and is not
        evaluated. A setting that is slow to learn may be stopped wrongly.
      layout: ``"side by side"`` (``vmap``) or ``"one after another"`` inside the
        program; ``None`` is the latter on a CPU, the former elsewhere. It changes no
        result beyond rounding.
      chunk: how many members to train at once; ``None`` is as many as fit the memory
        that the device reports (a CPU: that is free), and at most 8 one after another.
        All chunks run the same program; one that is done is saved at once, so that a
        killed sweep goes on after it. It changes no result beyond rounding.
      progress: show a progress bar, or lines where there is no terminal.
      **settings: of the builder.

    Returns:
      ``Sweep``: members in the order of the grid, seeds running fastest. A member is
      the run that ``train`` makes of its seed and hyper-parameters, up to rounding; one
      that diverges stops nobody else, and its report is None.

    Raises:
      ValueError: for a grid name that is no setting of the method, an axis without
        values, seeds, epochs or a chunk below 1, halving below 2, an unknown layout,
        splits of other data sets or equal ones, another sweep in ``out``.
      TypeError: for seeds, epochs, halving or a chunk that is no whole number.
      FileExistsError: if ``out`` holds a sweep and ``resume`` is False.

    Example:
      >>> import jaxanon as ja
      >>> data = ja.load("smartwatch", public="exercise", private=["side"])
      >>> tiny = {"hidden": (8,), "latent": 2, "per_class": 4}
      >>> found = sweep(
      ...     ja.methods.blinder, data, grid={"gamma": [0.1, 0.5]}, epochs=1,
      ...     progress=False, **tiny)
      >>> [(member.settings, member.seed) for member in found.members]
      [({'gamma': 0.1}, 0), ({'gamma': 0.5}, 0)]
    """
    checks.whole(epochs=epochs, seeds=seeds)
    checks.positive(epochs=epochs)
    epochs, seeds = int(epochs), int(seeds)
    layout = sweep_program.choose_layout(layout)
    if chunk is not None:
        checks.whole(chunk=chunk)
        checks.positive(chunk=chunk)
    if halving is not None:
        checks.whole(halving=halving)
        if halving < 2:
            raise ValueError(
                f"halving must be >= 2, for one setting in so many goes on; got "
                f"{halving!r}; None trains all of them to the end."
            )
    grid = dict(grid or {})
    every = (data, *splits)
    prints = sweep_splits.check(every)
    specs = tuple(each.spec for each in splits)
    plan = sweep_grid.plan(method, data.spec, grid, seeds, settings, specs)
    described = _describe(plan.groups[0].method, prints, grid, seeds, epochs, halving)
    if out is not None:
        sweep_folder.claim(out, described, resume=resume)
    job = sweep_training.Job(
        plan=plan,
        data=every,
        epochs=epochs,
        layout=layout,
        chunk=chunk,
        out=None if out is None else pathlib.Path(out),
        show=progress,
    )
    found, stopped, rungs = sweep_course.run(job, sweep_training.train_all, halving)
    runs = tuple(found.values())
    members = tuple(
        Member(*place[:2], run.history[-1]["losses"], place.split, stopped.get(index))
        for index, (place, run) in enumerate(zip(plan.members, runs, strict=True))
    )
    reports = _evaluate(runs, members, every, attacks) if evaluate else ()
    summary = summarise(members, reports)
    if out is not None:
        rows = [member._asdict() for member in members]
        found = {"rungs": rungs, "members": rows, "summary": summary}
        sweep_folder.write(out, described | found)
        told = [one for one in reports if one is not None]
        if told:
            title = (
                f"{described['method']} on {data.spec.name}: {len(summary)} settings"
            )
            report.write_front(out, title, summary, told[0])
    return Sweep(members, runs, reports, summary)


def _describe(method, prints, grid, seeds, epochs, halving):
    """What makes a sweep this one; swept settings stand in the grid alone."""
    settings = dataclasses.asdict(method.config)
    return {
        "method": method.name,
        "settings": {k: v for k, v in settings.items() if k not in grid},
        "grid": {name: list(values) for name, values in grid.items()},
        "seeds": seeds,
        "epochs": epochs,
        "halving": halving,
        "fingerprint": prints[0],
        "splits": prints[1:],
        "spec": json.loads(method.spec.to_json()),
    }


def _evaluate(runs, members, data, attacks):
    judges = [evaluation.raw_judges(split) for split in data]
    return tuple(
        evaluation.evaluate(
            run,
            data[member.split],
            attacks=attacks,
            seed=member.seed,
            judges=judges[member.split],
        )
        if member.stopped is None and _sound(run, member, data[member.split])
        else None
        for run, member in zip(runs, members, strict=True)
    )


def _sound(run, member, data):
    """Whether a member is fit for an evaluation, or diverged."""
    losses = member.losses.values()
    if not (all(map(math.isfinite, losses)) and rounds.sound(run.state)):
        return False
    try:
        run.anonymize(trial.root(member.seed), data.test.windows)
    except FloatingPointError:
        return False
    return True
