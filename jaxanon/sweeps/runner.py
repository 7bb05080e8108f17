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
from jaxanon.privacy.guarantee import epochs_within_budget
from jaxanon.sweeps import folder, program, ray_backend, scheduler, space
from jaxanon.sweeps import halving as sweeps_halving
from jaxanon.sweeps import homes as sweeps_homes
from jaxanon.sweeps import members as sweeps_members
from jaxanon.sweeps import splits as sweeps_splits
from jaxanon.sweeps.summary import reference, summarize, table
from jaxanon.training import checkpoint, run_folder, trainer

__all__ = ["Member", "Sweep", "sweep", "table"]


class Member(NamedTuple):
    """Settings and final losses of one run of a sweep."""

    settings: dict[str, Any]  # values of the grid
    seed: int
    # Means over the last rounds; nan if it diverged, empty if its Ray task failed.
    losses: dict[str, float]
    split: int = 0  # 0 is ``data``, 1 the first of ``splits``
    stopped: int | None = None  # epoch at which halving stopped it, or None


class Sweep(NamedTuple):
    """Result of ``sweep``; entry i of members, runs and reports is member i."""

    members: tuple[Any, ...]  # ``Member``, or ``sweeps.homes.Member`` for homes
    runs: tuple[Run | None, ...]  # None for a lost member
    # With ``evaluate``: None for a diverged or stopped member, {} for a lost one.
    reports: tuple[dict | None, ...]
    summary: list[dict]  # mean and standard deviation by setting

    def run(self, index: int) -> Run | None:
        """Returns the run of member ``index``."""
        return self.runs[index]


@single
def sweep(
    method,
    data,
    *,
    grid: dict[str, list] | None = None,
    num_seeds: int = 1,
    splits: Sequence = (),
    epochs: int | None = None,
    output_dir: str | os.PathLike | None = None,
    resume: bool = False,
    evaluate: bool = False,
    attacks: Sequence[str] | None = None,
    halving_factor: int | None = None,
    layout: str | None = None,
    chunk_size: int | None = None,
    ray: bool | str = False,
    progress: bool = True,
    **settings,
) -> Sweep:
    """Trains every combination of ``grid`` with every seed, on every split.

    Hyper-parameters and seeds are one axis of one program, which is compiled once.
    Another sweep with the same ``Method`` and number of members does not recompile. A
    sweep over a compiled setting, such as the width of a layer, runs one program per
    value.

    A member equals the run of ``train`` with its seed and hyper-parameters, up to
    rounding. A diverged member does not affect the others. If training a member alone
    would raise an error because nothing is learned, the sweep warns instead.

    Args:
      method: a builder such as ``jaxanon.methods.blinder``, its name, or a ``Method``;
        an anonymizer, a learner or a controller.
      data: data from ``jaxanon.load``, or ``jaxanon.energy.Homes`` for ``pfdrl``. For
        homes, see ``jaxanon.sweeps.homes.search``; members then have scores on held-out
        days instead of losses and runs.
      grid: dict from names of settings to lists of values; None varies only the seed.
      num_seeds: number of seeds; members have the seeds 0, 1, ... of ``train``.
      splits: further splits of the data set of ``data``, such as
        ``load(..., split="subject", seed=1)``; each member trains and tests on one.
        Splits are another axis of the program if their arrays have equal shapes and the
        method compiles to the same program. Otherwise they run one after another.
      epochs: number of epochs, as for ``train``.
      output_dir: folder for ``sweep.json`` and a run folder per member, written after
        each chunk. With ``evaluate``, the sweep also writes a figure of utility and
        leakage by setting, and ``sweep.html``. None writes no files.
      resume: whether to continue the sweep in ``output_dir``; saved members are not
        retrained.
      evaluate: whether to evaluate every member, with shared raw-data classifiers.
      attacks: attacks, as for ``evaluate``.
      halving_factor: factor of successive halving, which stops dominated settings
        early; None trains all settings completely. See the notes below.
      layout: ``"vmap"`` or ``"scan"``, for members side by side or one after another;
        None is "scan" on a CPU, else "vmap". It only changes rounding.
      chunk_size: number of members trained at once; None is as many as fit in free
        memory, and at most 8 one after another. All chunks use one program and are
        saved when finished, so that an interrupted sweep can resume. It only changes
        rounding.
      ray: whether to use Ray, which requires ``jaxanon[sweep]``. True uses the cores or
        GPUs of this machine; a string is the address of a cluster whose machines have
        jaxanon and access to ``output_dir``. A task trains a chunk on a core or GPU.
        Members of a failed task have empty losses; ``resume`` retries them.
      progress: whether to show a progress bar, or lines without a terminal.
      **settings: settings of the builder.

    Returns:
      ``Sweep`` with members in the order of the grid; seeds vary fastest.

    Raises:
      ValueError: for an unknown or empty axis of the grid, an unknown layout or attack,
        a number out of range, splits that are equal or of different data sets, another
        sweep in ``output_dir``, or ``ray`` without ``output_dir``.
      ImportError: if ``ray`` is used and not installed.
      FileNotFoundError: if a machine of the cluster cannot access ``output_dir``.
      TypeError: if a number of seeds, epochs or members is not an integer.
      FileExistsError: if ``output_dir`` holds a sweep and ``resume`` is False.

    Notes:
      With a halving factor of 3, settings are compared after 1/9 and 1/3 of the epochs,
      as long as there are enough settings. Scores are means over seeds and splits on
      held-out *training* windows: utility by a raw-data classifier, and leakage of each
      private attribute by a fast retrained attacker. A setting is dominated if another
      is better in all scores. The most dominated settings are stopped, at most two
      thirds; the others continue. A stopped member keeps its run and its epoch and is
      not evaluated. Halving may stop a setting that learns slowly.

    Example:
      >>> import jaxanon as ja
      >>> data = ja.load("smartwatch", public="exercise", private=["side"])
      >>> result = sweep(
      ...     ja.methods.deeprotect, data, grid={"learning_rate": [1e-3, 1e-2]},
      ...     epochs=1, progress=False, hidden_sizes=(8, 4))
      >>> [(member.settings, member.seed) for member in result.members]
      [({'learning_rate': 0.001}, 0), ({'learning_rate': 0.01}, 0)]
    """
    if isinstance(data, Homes):
        unsupported = {"splits": splits, "epochs": epochs, "attacks": attacks}
        unsupported |= {"halving": halving_factor, "layout": layout, "ray": ray}
        if wrong := sorted(name for name, value in unsupported.items() if value):
            raise ValueError(
                f"a sweep of homes does not support {' and '.join(wrong)}; omit them."
            )
        chosen = sweeps_homes.settings_of(method, data, settings)
        members, summary = sweeps_homes.search(
            chosen,
            data,
            grid=grid or {},
            num_seeds=num_seeds,
            output_dir=output_dir,
            resume=resume,
            chunk_size=chunk_size,
        )
        none = (None,) * len(members)
        return Sweep(tuple(members), none, none, summary)
    if epochs is not None:
        epochs = whole("epochs", epochs, 1)
    num_seeds = whole("num_seeds", num_seeds, 1)
    layout = program.choose_layout(layout)
    if chunk_size is not None:
        whole("chunk_size", chunk_size, least=1)
    if halving_factor is not None:
        if whole("halving_factor", halving_factor, least=0) < 2:
            raise ValueError(
                f"halving_factor must be >= 2, got {halving_factor!r}; omit it to "
                "train all settings completely."
            )
    if evaluate and attacks is not None:
        attackers.choose(attacks)  # Raises before training.
    grid = dict(grid or {})
    every = (data, *splits)
    prints = sweeps_splits.check(every)
    specs = tuple(each.spec for each in splits)
    plan = space.plan(method, data.spec, grid, num_seeds, settings, specs)
    name = plan.groups[0].method.name
    if attacks is not None and plan.groups[0].method.predict is not None:
        raise ValueError(
            f"attacks must be None for a learner such as {name}, got {attacks!r}."
        )
    epochs = trainer.epochs_of(plan.groups[0].method, epochs)
    if halving_factor is not None and plan.groups[0].method.predict is not None:
        raise ValueError(
            f"halving_factor must be None for a learner such as {name}, got "
            f"{halving_factor!r}; it compares attacks on anonymized windows."
        )
    paid = []
    for group in plan.groups:
        paid.append(epochs_within_budget(group.method, epochs, stacklevel=3))
    if len({*paid}) > 1:
        raise ValueError(
            f"epochs must be <= {min(paid)}, the smallest number within all privacy "
            f"budgets of the grid, got {epochs}; sweep settings with different budgets "
            "separately."
        )
    epochs = paid[0]
    noisy = [group for group in plan.groups if group.method.guarantee is not None]
    private = sum(len(group.indices) for group in noisy)
    if private and len(plan.members) > 1:
        warnings.warn(
            f"{private} runs train on the same data, each with a separate privacy "
            "budget; releasing all of them costs the sum of their budgets.",
            UserWarning,
            stacklevel=3,
        )
    for group in plan.groups:
        for split_method, split_data in zip(group.methods, every, strict=True):
            trainer.check_data(split_method, split_data)
        rounds = sweeps_splits.rounds_per_epoch(group.method, data)
        warn_of_epochs(group.method, epochs, rounds)
    if ray is not False and output_dir is None:
        raise ValueError(
            "ray requires an output folder (--output-dir) that all machines share, got "
            "None."
        )
    if ray is not False:
        need("ray", "sweep", "a sweep by Ray")  # Before the folder is created.
    if halving_factor is not None:
        for each in every:
            sweeps_halving.hold_out(each)  # Raises if settings cannot be compared.
    described = _describe(
        plan.groups[0].method, prints, grid, num_seeds, epochs, halving_factor
    )
    with checkpoint.lock_folder(output_dir):
        if output_dir is not None:
            folder.claim(output_dir, described, resume=resume)
        job = sweeps_members.Job(
            plan=plan,
            data=every,
            epochs=epochs,
            layout=layout,
            chunk=chunk_size,
            output_dir=None if output_dir is None else pathlib.Path(output_dir),
            show=progress,
        )
        recipe = (method, data.spec, grid, num_seeds, settings, specs)
        with _where(ray, recipe, job) as (train_fn, evaluate_fn):
            trained, stopped, rungs = scheduler.run(job, train_fn, halving_factor)
            reports: tuple = ()
            if evaluate:
                finished = {
                    i: run for i, run in trained.items() if run and i not in stopped
                }
                by_member = dict(evaluate_fn(job, finished, attacks))
                reports = tuple(by_member.get(index) for index in trained)
        runs = tuple(trained.values())
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
        summary = summarize(members, reports)
        if output_dir is not None:
            rows = [member._asdict() for member in members]
            results = {"rungs": rungs, "members": rows, "summary": summary}
            folder.write(output_dir, described | results)
            raw = reference(members, reports) if reports else None
            title = f"{name} on {data.spec.name}: {len(summary)} settings"
            if raw is not None and "utility" in raw:
                report.write_pareto_front(output_dir, title, summary, raw)
            elif raw is not None:
                report.write_scores(output_dir, title, summary)
        return Sweep(members, runs, reports, summary)


def _describe(method, prints, grid, num_seeds, epochs, halving_factor):
    """Description that identifies a sweep; swept settings appear only in the grid."""
    settings = run_folder.settings_of(method)
    return {
        "method": method.name,
        "settings": {k: v for k, v in settings.items() if k not in grid},
        "grid": {name: list(values) for name, values in grid.items()},
        "seeds": num_seeds,
        "epochs": epochs,
        "halving": halving_factor,
        "fingerprint": prints[0],
        "splits": prints[1:],
        "spec": json.loads(method.spec.to_json()),
    }


@contextlib.contextmanager
def _where(ray, recipe, job):
    """Yields functions that train and evaluate members, locally or with Ray."""
    if ray is False:
        yield sweeps_members.train_all, sweeps_members.evaluate_all
        return
    address = ray if isinstance(ray, str) else None
    with ray_backend.cluster(address, recipe, job, job.output_dir) as cluster:
        part = functools.partial
        yield part(ray_backend.train, cluster), part(ray_backend.evaluate, cluster)
