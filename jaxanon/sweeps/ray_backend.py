"""Ray backend of sweeps: chunks of members as tasks on a cluster."""

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
from jaxanon.sweeps.members import Job, load_runs, train_all
from jaxanon.sweeps.space import Plan, plan

QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}

TOKEN = ".shared-by-all"


class Cluster(NamedTuple):
    """Ray cluster with access to the sweep's folder."""

    ray: Any  # the module
    task: Any  # remote function with the arguments of ``work``
    sweep: tuple  # name of the sweep, and a list with a reference to its definition
    workers: int  # number of tasks that run at once


@contextlib.contextmanager
def cluster(address: str | None, recipe: tuple, job: Job, output_dir: pathlib.Path):
    """Connects to a Ray cluster, or starts a local one and shuts it down afterwards.

    Args:
      address: address of a cluster for ``ray.init``; None starts a local one. An
        existing connection is reused and stays open.
      recipe: arguments of ``space.plan``, from which workers rebuild the plan.
      job: the sweep.
      output_dir: folder of the sweep, shared by all machines.

    Yields:
      ``Cluster``.

    Raises:
      ImportError: if Ray is not installed.
      FileNotFoundError: if a machine cannot access the folder.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own warnings.
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        ray = need("ray", "sweep", "a sweep by Ray")
        started = not ray.is_initialized()
        if started:
            local = {"include_dashboard": False} if address is None else {}
            ray.init(
                address or "local", log_to_driver=False, logging_level="ERROR", **local
            )
    try:
        _check_folder(ray, output_dir)
        cloudpickle = need("ray.cloudpickle", "sweep", "a sweep by Ray")
        remote_job = dataclasses.replace(
            job,
            plan=Plan([], []),
            output_dir=output_dir.absolute(),
            show=False,
            cache={},
        )
        sweep = (
            uuid.uuid4().hex,
            [ray.put(cloudpickle.dumps((recipe, remote_job, registry.plugins())))],
        )
        available = ray.cluster_resources()
        gpus = int(available.get("GPU", 0))
        needed = {"num_gpus": 1} if gpus else {"num_cpus": 1}
        task = ray.remote(**needed, max_retries=1)(_by_value(_strays()))
        yield Cluster(ray, task, sweep, gpus or max(1, int(available.get("CPU", 1))))
    finally:
        if started:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.shutdown()


def train(cluster: Cluster, job: Job, runs: dict, epochs: int) -> Iterator:
    """Runs ``members.train_all`` as tasks; yields None for a lost run.

    If a task fails, its members are lost, with a warning; other tasks continue.
    """
    parts = []
    for group in job.plan.groups:
        left = [i for i in group.indices if i in runs and not _trained(runs[i], epochs)]
        parts += _parts(left, _task_size(cluster, job, len(left)))
    for indices, _ in _results(cluster, job, parts, "trained", "train", epochs):
        for index, run in load_runs(job, indices).items():
            yield index, run if _trained(run, epochs) else None


def _trained(run, epochs):
    return run is not None and run.history[-1]["epoch"] >= epochs


def evaluate(cluster: Cluster, job: Job, runs: dict, attacks) -> Iterator:
    """Runs ``members.evaluate_all`` as tasks; yields empty reports of lost members."""
    parts = _parts([*runs], max(1, len(runs) // (4 * cluster.workers)))
    results = _results(cluster, job, parts, "evaluated", "evaluate", attacks)
    for indices, reports in results:
        yield from (reports or {index: {} for index in indices}).items()


def _task_size(cluster, job, count):
    """Members per task, so that all workers have tasks and save regularly."""
    if job.chunk is not None:
        return job.chunk
    size = math.ceil(max(count, 1) / cluster.workers)
    sequential = job.layout == program.LAYOUTS[1]
    return min(size, program.SAVE_EVERY) if sequential else size


def _parts(indices, max_size):
    size = memory.even(len(indices), max_size) if indices else 1
    return [indices[at : at + size] for at in range(0, len(indices), size)]


def _results(cluster: Cluster, job: Job, parts, verb, name, argument):
    """Yields ``(members, result)`` of finished tasks; None for a failed task."""
    submit = lambda part: cluster.task.remote(*cluster.sweep, name, part, argument)
    pending = {submit(part): part for part in parts}
    try:
        yield from _as_completed(cluster.ray, job, pending, verb)
    finally:  # Running tasks would write to the folder while the caller continues.
        for task in pending:
            cluster.ray.cancel(task, force=True)


def _as_completed(ray, job, pending, verb):
    console = Console(markup=False, emoji=False)
    total, done = sum(map(len, pending.values())), 0
    while pending:
        (first,), _ = ray.wait([*pending], num_returns=1)
        part, result = pending.pop(first), None
        try:
            result = ray.get(first)
        except ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None) or error
            line = first_line(cause)
            warnings.warn(
                f"members {part} of the sweep were not {verb}, because their task "
                f"failed ({type(cause).__name__}: {line[:300]}); continue them with "
                "resume=True (--resume).",
                UserWarning,
                stacklevel=2,
            )
        done += len(part)
        if job.show:
            console.print(f"member {done}/{total} {verb}", highlight=False)
        yield part, result


def _strays() -> list[str]:
    """Working folder, if Ray adds it to the path of workers and Python does not here.

    In a checkout, a folder there could shadow the installed package.
    """
    here = str(pathlib.Path.cwd())
    return [] if here in sys.path or "" in sys.path else [here]


def _by_value(strays):
    """Returns ``work`` as a function that is pickled by value and imports jaxanon."""

    def task(*arguments):
        import importlib
        import sys

        sys.path[:] = [folder for folder in sys.path if folder not in strays]
        return importlib.import_module("jaxanon.sweeps.ray_backend").work(*arguments)

    return task


_JOBS: dict[str, Job] = {}  # The current sweep of this worker, by name.


def work(sweep: str, definition: list, name: str, indices: list[int], argument) -> dict:
    """Trains or evaluates members on a worker.

    Members are read from the sweep's folder and written to it.

    Args:
      sweep: name of the sweep.
      definition: list with a reference to the sweep's definition.
      name: ``"train"`` or ``"evaluate"``.
      indices: indices of the members.
      argument: epochs for ``"train"``, attacks for ``"evaluate"``.

    Returns:
      Reports by member; empty for ``"train"``.
    """
    job = _job(sweep, definition)
    runs = load_runs(job, indices)
    if name == "evaluate":
        saved = {index: run for index, run in runs.items() if run is not None}
        return dict(members.evaluate_all(job, saved, argument))
    for _ in train_all(job, runs, argument):
        pass
    return {}


def _job(sweep, definition):
    if sweep not in _JOBS:
        ray = need("ray", "sweep", "a sweep by Ray")
        cloudpickle = need("ray.cloudpickle", "sweep", "a sweep by Ray")
        recipe, job, plugins = cloudpickle.loads(ray.get(definition[0]))
        registry.load_plugins(*plugins)
        _JOBS.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The main process has shown them.
            _JOBS[sweep] = dataclasses.replace(job, plan=plan(*recipe), cache={})
    return _JOBS[sweep]


def _check_folder(ray, output_dir: pathlib.Path) -> None:
    """Raises FileNotFoundError unless all machines can access ``output_dir``."""
    path = (output_dir / TOKEN).absolute()
    path.write_text(uuid.uuid4().hex, encoding="utf-8")
    try:
        unable = [
            node["NodeManagerAddress"]
            for node in ray.nodes()
            if node["Alive"] and not _can_read(ray, node["NodeID"], path)
        ]
    finally:
        path.unlink(missing_ok=True)
    if unable:
        raise FileNotFoundError(
            f"{output_dir} must be shared by all machines of the cluster, but is "
            f"missing on {unable}; choose a folder on a shared disk (--output-dir)."
        )


def _can_read(ray, node, path) -> bool:
    text, name = path.read_text(encoding="utf-8"), str(path)

    def read():
        import pathlib

        path = pathlib.Path(name)
        return path.is_file() and path.read_text(encoding="utf-8") == text

    scheduling = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    strategy = scheduling(node_id=node, soft=False)
    task = ray.remote(num_cpus=0, scheduling_strategy=strategy)(read)
    return ray.get(task.remote())
