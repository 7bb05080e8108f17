"""A sweep's chunks as tasks of Ray, on the cores and machines of a cluster."""

import contextlib
import dataclasses
import math
import os
import pathlib
import sys
import uuid
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.console import Console

from jaxanon.core import registry
from jaxanon.core.checks import first_line
from jaxanon.datasets.extras import need
from jaxanon.federated.engine import memory
from jaxanon.sweeps import members, program
from jaxanon.sweeps.members import Job, found, train_all
from jaxanon.sweeps.space import Plan, plan

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}

TOKEN = ".shared-by-all"


class Cluster(NamedTuple):
    """A Ray cluster that sees the sweep's folder, and holds what its members share."""

    ray: Any  # the module
    task: Any  # a remote function, of the arguments of ``work``
    sweep: tuple  # the sweep's name, and a reference to what it is made from, in a list
    workers: int  # tasks that run at once


@contextlib.contextmanager
def cluster(address: str | None, recipe: tuple, job: Job, output_dir: pathlib.Path):
    """Connects to a cluster, or starts one of this machine's cores and ends it.

    Args:
      address: of a cluster, as ``ray.init`` takes it; None starts a local one. Where
        Ray is connected already, that is used, and stays.
      recipe: arguments of ``space.plan``, by which a machine lays out the plan.
      job: of the sweep.
      out: its folder, one that all machines see.

    Yields:
      ``Cluster``.

    Raises:
      ImportError: if Ray is not installed.
      FileNotFoundError: if a machine does not see the folder.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # What Ray says of itself.
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        ray = need("ray", "sweep", "a sweep by Ray")
        own = not ray.is_initialized()
        if own:
            alone = {"include_dashboard": False} if address is None else {}
            ray.init(
                address or "local", log_to_driver=False, logging_level="ERROR", **alone
            )
    try:
        _check_folder(ray, output_dir)
        cloudpickle = need("ray.cloudpickle", "sweep", "a sweep by Ray")
        there = dataclasses.replace(
            job,
            plan=Plan([], []),
            output_dir=output_dir.absolute(),
            show=False,
            kept={},
        )
        sweep = (
            uuid.uuid4().hex,
            [ray.put(cloudpickle.dumps((recipe, there, registry.plugins())))],
        )
        has = ray.cluster_resources()
        gpus = int(has.get("GPU", 0))
        asked = {"num_gpus": 1} if gpus else {"num_cpus": 1}
        task = ray.remote(**asked, max_retries=1)(_by_value(_strays()))
        yield Cluster(ray, task, sweep, gpus or max(1, int(has.get("CPU", 1))))
    finally:
        if own:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.shutdown()


def train(of: Cluster, job: Job, runs: dict, epochs: int) -> Iterator:
    """``members.train_all``, by tasks; None in place of a run that got lost.

    A task that fails costs its members, of which a warning tells; the others go on.
    """
    parts = []
    for group in job.plan.groups:
        left = [i for i in group.indices if i in runs and not _trained(runs[i], epochs)]
        parts += _parts(left, _most(of, job, len(left)))
    for indices, _ in _done(of, job, parts, "trained", "train", epochs):
        for index, run in found(job, indices).items():
            yield index, run if _trained(run, epochs) else None


def _trained(run, epochs):
    return run is not None and run.history[-1]["epoch"] >= epochs


def evaluate(of: Cluster, job: Job, runs: dict, attacks) -> Iterator:
    """``members.evaluate_all``, by tasks; an empty report of a lost one."""
    parts = _parts([*runs], max(1, len(runs) // (4 * of.workers)))
    for indices, told in _done(of, job, parts, "evaluated", "evaluate", attacks):
        yield from (told or {index: {} for index in indices}).items()


def _most(of, job, count):
    """Members of a task: every worker has some, and no more than are saved at once."""
    if job.chunk is not None:
        return job.chunk
    most = math.ceil(max(count, 1) / of.workers)
    few = job.layout == program.LAYOUTS[1]
    return min(most, program.SAVED) if few else most


def _parts(indices, most):
    size = memory.even(len(indices), most) if indices else 1
    return [indices[at : at + size] for at in range(0, len(indices), size)]


def _done(of: Cluster, job: Job, parts, said, name, argument):
    """``(members, result)`` of each task when it is done; None of one that failed."""
    wait = {of.task.remote(*of.sweep, name, part, argument): part for part in parts}
    try:
        yield from _as_done(of, job, wait, said)
    finally:  # Else they would write beside those who go on.
        for task in wait:
            of.ray.cancel(task, force=True)


def _as_done(of, job, wait, said):
    total, ready, console = sum(map(len, wait.values())), 0, Console()
    while wait:
        (first,), _ = of.ray.wait([*wait], num_returns=1)
        part, result = wait.pop(first), None
        try:
            result = of.ray.get(first)
        except of.ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            line = first_line(cause)
            warnings.warn(
                f"members {part} of the sweep were not {said}, for their task failed "
                f"({type(cause).__name__}: {line[:300]}); go on with them by "
                "resume=True (--resume).",
                UserWarning,
                stacklevel=2,
            )
        ready += len(part)
        if job.show:
            console.print(f"member {ready}/{total} {said}", highlight=False)
        yield part, result


def _strays() -> list[str]:
    """Folders that Ray puts first on its workers' path, and Python not on ours.

    In a checkout the folder of that name would be taken for the installed package.
    """
    here = str(pathlib.Path.cwd())
    return [] if here in sys.path or "" in sys.path else [here]


def _by_value(strays):
    """``work`` for a task: it travels whole, and imports jaxanon where it arrives."""

    def task(*arguments):
        import importlib
        import sys

        sys.path[:] = [folder for folder in sys.path if folder not in strays]
        return importlib.import_module("jaxanon.sweeps.ray_backend").work(*arguments)

    return task


_HERE: dict[str, Job] = {}  # The sweep that this worker works for, by its name.


def work(sweep: str, made_from: list, name: str, indices: list[int], argument) -> dict:
    """What a task does on its machine: trains members, or evaluates them.

    Args:
      sweep: its name.
      made_from: a reference to what it is made from, in a list.
      name: ``"train"`` or ``"evaluate"``.
      indices: of the members, which are read from the sweep's folder and written there.
      argument: epochs, or attacks.

    Returns:
      Reports by member, or nothing.
    """
    job = _job(sweep, made_from)
    runs = found(job, indices)
    if name == "evaluate":
        whole = {index: run for index, run in runs.items() if run is not None}
        return dict(members.evaluate_all(job, whole, argument))
    for _ in train_all(job, runs, argument):
        pass
    return {}


def _job(sweep, made_from):
    if sweep not in _HERE:
        ray = need("ray", "sweep", "a sweep by Ray")
        cloudpickle = need("ray.cloudpickle", "sweep", "a sweep by Ray")
        recipe, job, plugins = cloudpickle.loads(ray.get(made_from[0]))
        registry.load_plugins(*plugins)
        _HERE.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It has been said.
            _HERE[sweep] = dataclasses.replace(job, plan=plan(*recipe), kept={})
    return _HERE[sweep]


def _check_folder(ray, output_dir: pathlib.Path) -> None:
    """FileNotFoundError unless all machines find in ``out`` what is put there."""
    path = (output_dir / TOKEN).absolute()
    path.write_text(uuid.uuid4().hex, encoding="utf-8")
    try:
        blind = [
            node["NodeManagerAddress"]
            for node in ray.nodes()
            if node["Alive"] and not _sees(ray, node["NodeID"], path)
        ]
    finally:
        path.unlink(missing_ok=True)
    if blind:
        raise FileNotFoundError(
            f"{output_dir} is not seen by {blind}: a sweep by Ray keeps its members in "
            "one "
            "folder that all machines share; choose one on a shared disk "
            "(--output-dir)."
        )


def _sees(ray, node, path) -> bool:
    text, place = path.read_text(encoding="utf-8"), str(path)

    def look():
        import pathlib

        path = pathlib.Path(place)
        return path.is_file() and path.read_text(encoding="utf-8") == text

    scheduling = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    there = scheduling(node_id=node, soft=False)
    task = ray.remote(num_cpus=0, scheduling_strategy=there)(look)
    return ray.get(task.remote())
