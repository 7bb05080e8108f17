"""``sweep``: a grid of hyper-parameters times seeds, trained as one program."""

import contextlib
import functools
import json
import os
import pathlib
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxanon import report
from jaxanon.core.method import warn_of_epochs
from jaxanon.core.programs import single
from jaxanon.core.run import Run
from jaxanon.datasets.extras import need
from jaxanon.energy import Homes
from jaxanon.evaluation import attackers
from jaxanon.kernels.checks import whole
from jaxanon.privacy.guarantee import paid_for
from jaxanon.sweeps import folder, program, ray_backend, scheduler, space
from jaxanon.sweeps import halving as sweeps_halving
from jaxanon.sweeps import homes as sweeps_homes
from jaxanon.sweeps import members as sweeps_members
from jaxanon.sweeps import splits as sweeps_splits
from jaxanon.sweeps.summary import reference, summarise, table
from jaxanon.training import checkpoint, run_folder, trainer

__all__ = ["Member", "Sweep", "sweep", "table"]


class Member(NamedTuple):
    """One of a sweep's runs."""

    settings: dict[str, Any]  # its values of the grid
    seed: int
    losses: dict[str, float]  # means over the last rounds; nan if it diverged; none if
    # it got lost, for the task that was to train it failed
    split: int = 0  # 0 is ``data``, 1 the first of ``splits``
    stopped: int | None = None  # after which epoch, by ``halving``; else None


class Sweep(NamedTuple):
    """What ``sweep`` returns; the i-th entry of each belongs to the i-th member."""

    members: tuple[Any, ...]  # ``Member``; of homes, ``sweeps.homes.Member``
    runs: tuple[Run | None, ...]  # None of one that got lost
    # Of ``evaluate``, if asked for: None of who diverged, {} where it got lost.
    reports: tuple[dict | None, ...]
    summary: list[dict]  # by setting: mean and deviation over seeds, splits

    def run(self, index: int) -> Run | None:
        """The run of member ``index``, as ``train`` would have returned it."""
        return self.runs[index]


@single
def sweep(
    method,
    data,
    *,
    grid: dict[str, list] | None = None,
    seeds: int = 1,
    splits: Sequence = (),
    epochs: int | None = None,
    out: str | os.PathLike | None = None,
    resume: bool = False,
    evaluate: bool = False,
    attacks: Sequence[str] | None = None,
    halving: int | None = None,
    layout: str | None = None,
    chunk: int | None = None,
    ray: bool | str = False,
    progress: bool = True,
    **settings,
) -> Sweep:
    """Trains every combination of ``grid`` with every seed, on every split.

    Hyper-parameters and seeds are one axis of one program, which is compiled once;
    with the same ``Method`` another sweep of as many members compiles nothing. A
    setting that is compiled into the method, such as a layer's width, may be swept as
    well: for each of its values there is one more program, one after the other.

    Args:
      method: a builder such as ``jaxanon.methods.blinder``, its name, or a ``Method``:
        an anonymizer, a learner or a controller.
      data: of ``jaxanon.load``; of ``pfdrl`` ``jaxanon.energy.Homes``. Those are tested
        on their held-out days, and only sums leave the program: members have scores in
        place of losses, and no runs; see ``jaxanon.sweeps.homes.search``.
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
        also ``pareto_front.png`` and ``sweep.html``: utility over leakage of each
        setting. ``None`` keeps nothing.
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
      ray: train and evaluate by Ray, which takes the extra ``jaxanon[sweep]``: ``True``
        on the cores (or GPUs) of this machine, or the address of a cluster, all of
        whose machines must have jaxanon and see ``out``. A task is a chunk, and has a
        core or a GPU. One that fails costs its members: a warning tells, their losses
        are empty, and ``resume`` tries them again.
      progress: show a progress bar, or lines where there is no terminal.
      **settings: of the builder.

    Returns:
      ``Sweep``: members in the order of the grid, seeds running fastest. A member is
      the run that ``train`` makes of its seed and hyper-parameters, up to rounding; one
      that diverges stops nobody else, and its report is None.

    Warns where a member learned nothing for which a single run would have stopped, such
    as fine-tuning whose threshold filters everything.

    Raises:
      ValueError: for a grid name that is no setting of the method, an axis without
        values, seeds, epochs or a chunk below 1, halving below 2, an unknown layout or
        attack, splits of other data sets or equal ones, another sweep in ``out``;
        for ``ray`` without ``out``.
      ImportError: for ``ray`` where it is not installed.
      FileNotFoundError: if a machine of the cluster does not see ``out``.
      TypeError: for seeds, epochs, halving or a chunk that is no whole number.
      FileExistsError: if ``out`` holds a sweep and ``resume`` is False.

    Example:
      >>> import jaxanon as ja
      >>> data = ja.load("smartwatch", public="exercise", private=["side"])
      >>> found = sweep(
      ...     ja.methods.deeprotect, data, grid={"step_size": [1e-3, 1e-2]}, epochs=1,
      ...     progress=False, hidden=(8, 4))
      >>> [(member.settings, member.seed) for member in found.members]
      [({'step_size': 0.001}, 0), ({'step_size': 0.01}, 0)]
    """
    if isinstance(data, Homes):
        given = {"splits": splits, "epochs": epochs, "attacks": attacks}
        given |= {"halving": halving, "layout": layout, "ray": ray}
        if wrong := sorted(name for name, value in given.items() if value):
            raise ValueError(
                f"a sweep of homes takes no {' and no '.join(wrong)}; leave them out."
            )
        chosen = sweeps_homes.settings_of(method, data, settings)
        options = {"grid": grid or {}, "seeds": seeds, "out": out, "resume": resume}
        found, summary = sweeps_homes.search(chosen, data, chunk=chunk, **options)
        none = (None,) * len(found)
        return Sweep(tuple(found), none, none, summary)
    if epochs is not None:
        epochs = whole("epochs", epochs, 1)
    seeds = whole("seeds", seeds, 1)
    layout = program.choose_layout(layout)
    if chunk is not None:
        whole("chunk", chunk, least=1)
    if halving is not None:
        if whole("halving", halving, least=0) < 2:
            raise ValueError(
                f"halving must be >= 2, for one setting in so many goes on; got "
                f"{halving!r}; leave it out to train all of them to the end."
            )
    if evaluate and attacks is not None:
        attackers.choose(attacks)  # Refused now, and not after all are trained.
    grid = dict(grid or {})
    every = (data, *splits)
    prints = sweeps_splits.check(every)
    specs = tuple(each.spec for each in splits)
    plan = space.plan(method, data.spec, grid, seeds, settings, specs)
    name = plan.groups[0].method.name
    if attacks is not None and plan.groups[0].method.predict is not None:
        raise ValueError(
            f"attacks must be None for a learner such as {name}, got {attacks!r}."
        )
    epochs = trainer.epochs_of(plan.groups[0].method, epochs)
    if halving is not None and plan.groups[0].method.predict is not None:
        raise ValueError(
            f"halving must be None for a learner such as {name}, got {halving!r}: it "
            "compares settings by what an attacker infers from anonymized windows."
        )
    paid = []
    for group in plan.groups:
        paid.append(paid_for(group.method, epochs, stacklevel=3))
    if len({*paid}) > 1:
        raise ValueError(
            f"epochs must be at most {min(paid)}, which every budget of the grid pays "
            f"for, got {epochs}; ask for fewer, or sweep those settings separately."
        )
    epochs = paid[0]
    noisy = [group for group in plan.groups if group.method.guarantee is not None]
    private = sum(len(group.indices) for group in noisy)
    if private and len(plan.members) > 1:
        warnings.warn(
            f"{private} runs train on the same data, each with a privacy "
            "budget of its own; whoever sees all of them sees what their budgets add "
            "up to.",
            UserWarning,
            stacklevel=3,
        )
    for group in plan.groups:
        for method_of, own in zip(group.methods, every, strict=True):
            trainer.check_data(method_of, own)
        rounds = sweeps_splits.rounds_per_epoch(group.method, data)
        warn_of_epochs(group.method, epochs, rounds)
    if ray is not False and out is None:
        raise ValueError(
            "ray needs out (--out), a folder that all machines see: members are kept "
            "there, and collected from there."
        )
    if ray is not False:
        need("ray", "sweep", "a sweep by Ray")  # Before the folder is anybody's.
    if halving is not None:
        for each in every:
            sweeps_halving.held_out(each)  # Refuses what could not be compared.
    described = _describe(plan.groups[0].method, prints, grid, seeds, epochs, halving)
    with checkpoint.alone(out):
        if out is not None:
            folder.claim(out, described, resume=resume)
        job = sweeps_members.Job(
            plan=plan,
            data=every,
            epochs=epochs,
            layout=layout,
            chunk=chunk,
            out=None if out is None else pathlib.Path(out),
            show=progress,
        )
        recipe = (method, data.spec, grid, seeds, settings, specs)
        with _where(ray, recipe, job) as (train_fn, evaluate_fn):
            found, stopped, rungs = scheduler.run(job, train_fn, halving)
            reports: tuple = ()
            if evaluate:
                finished = {
                    i: run for i, run in found.items() if run and i not in stopped
                }
                told = dict(evaluate_fn(job, finished, attacks))
                reports = tuple(told.get(index) for index in found)
        runs = tuple(found.values())
        members = tuple(
            Member(
                place.settings,
                place.seed,
                run.history[-1]["losses"] if run else {},
                place.split,
                stopped.get(index),
            )
            for index, (place, run) in enumerate(zip(plan.members, runs, strict=True))
        )
        summary = summarise(members, reports)
        if out is not None:
            rows = [member._asdict() for member in members]
            found = {"rungs": rungs, "members": rows, "summary": summary}
            folder.write(out, described | found)
            raw = reference(members, reports) if reports else None
            title = f"{name} on {data.spec.name}: {len(summary)} settings"
            if raw is not None and "utility" in raw:
                report.write_pareto_front(out, title, summary, raw)
            elif raw is not None:
                report.write_scores(out, title, summary)
        return Sweep(members, runs, reports, summary)


def _describe(method, prints, grid, seeds, epochs, halving):
    """What makes a sweep this one; swept settings stand in the grid alone."""
    settings = run_folder.settings_of(method)
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


@contextlib.contextmanager
def _where(ray, recipe, job):
    """Functions that train and that evaluate members, here or by Ray."""
    if ray is False:
        yield sweeps_members.train_all, sweeps_members.evaluate_all
        return
    address = ray if isinstance(ray, str) else None
    with ray_backend.cluster(address, recipe, job, job.out) as cluster:
        part = functools.partial
        yield part(ray_backend.train, cluster), part(ray_backend.evaluate, cluster)
