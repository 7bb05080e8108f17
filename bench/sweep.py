"""Compares the time of a sweep with that of separate runs.

Example: ``python bench sweep --smoke``.

Trains Blinder on MotionSense (or the smartwatch recordings if missing) with 10 seeds x
12 settings: with ``jaxanon sweep`` in a new process, as separate runs each in a new
process like ``jaxanon train``, and as separate runs in one warm process. Only a few of
the separate runs are timed; the rows state that the others are extrapolated. Except
with ``--smoke``, no process uses a compilation cache on disk. ``--ray yes`` also times
the sweep by Ray. ``--data F`` reads MotionSense's windows from F, written by
``datasets.export(data, "all", F)`` with preset ``mag4``, if the recordings are missing.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# The processes of the runs need the GPU's memory; this process hardly does.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import numpy as np

import jaxanon as ja
from harness import data as shared
from harness import timing
from jaxanon import datasets, methods
from jaxanon.sweeps import folder as sweeps_folder
from jaxanon.training import run_folder

GRID = {"gamma": [1.0, 10.0, 30.0, 60.0], "beta": [0.5, 2.0, 6.0]}
GRID_SMOKE = {"gamma": [1.0, 10.0]}
ALONE = {"discriminator_rounds": 0}  # No rounds that train only the discriminator.
SETTINGS = {"hidden_sizes": (64,), "latent_dim": 10, "samples_per_class": 128}
MAIN = "import sys; from jaxanon import cli; sys.exit(cli.main(sys.argv[1:]))"
CLOSE = 1e-2  # Tolerance of losses between a member of a sweep and a separate run.


def main():
    """Times the sweep and the separate runs."""
    args = timing.arguments(
        __doc__,
        epochs=timing.number(2, "training epochs"),
        runs=timing.number(6, "number of timed separate runs"),
        ray="yes: also time the sweep by Ray",
        data="file of MotionSense's windows; the recordings by default",
    )
    if not args.smoke:
        os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
        jax.config.update("jax_compilation_cache_dir", None)
    report = timing.Report(args.json, smoke=args.smoke)
    epochs = 1 if args.smoke else args.epochs
    timed = 1 if args.smoke else args.runs
    seeds, grid = (2, GRID_SMOKE) if args.smoke else (10, GRID)
    settings = SETTINGS | (shared.SMOKE | ALONE if args.smoke else {})
    data = load(args.data, args.smoke)
    cells = [dict(zip(grid, each, strict=True)) for each in _product(grid)]
    members = seeds * len(cells)
    shapes = f"{members} members, {len(data.train.windows)} windows, {epochs} epochs"
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        words = _words(data, folder, settings, epochs)
        of_grid = [f"{name}={','.join(map(str, v))}" for name, v in grid.items()]
        swept = ["sweep", *words, "--num-seeds", str(seeds), "--grid", *of_grid]
        swept.append("--no-evaluate")
        whole = _process([*swept, "--output-dir", str(folder / "sweep")])
        report.add("sweep, fresh process", whole, "s", shapes)
        fresh = _alone(words, folder, cells, 1 if args.smoke else timed)
        said = f"{shapes}; extrapolated from {1 if args.smoke else timed} runs"
        report.add("runs, fresh process each", members * fresh, "s", said)
        warm = _warm(data, settings, folder, cells, epochs, timed)
        said = f"{shapes}; extrapolated from {timed} runs, the first apart"
        report.add("runs, one warm process", members * warm, "s", said)
        ratio = lambda name, value: report.add(name, value, "x as fast", shapes)
        ratio("sweep over runs in fresh processes", members * fresh / whole)
        ratio("sweep over runs in a warm process", members * warm / whole)
        if args.ray:
            by_ray = _process([*swept, "--output-dir", str(folder / "ray"), "--ray"])
            report.add("sweep by Ray, fresh process", by_ray, "s", shapes)
            ratio("sweep by Ray over runs in fresh processes", members * fresh / by_ray)
    report.write()


def load(file, smoke):
    """Loads MotionSense from ``file``, or the data of ``harness.data``."""
    if not file:
        return shared.load(smoke)
    data = ja.load(file, public="activity", private=["gender"])
    return shared.thin(data) if smoke else data


def _product(grid):
    return np.array(np.meshgrid(*grid.values(), indexing="ij")).reshape(len(grid), -1).T


def _words(data, folder, settings, epochs):
    """Returns the arguments shared by sweep and runs; the data are in a file."""
    path = datasets.export(data, "all", folder / "data.npz")
    words = ["blinder", "--dataset", str(path), "--epochs", str(epochs)]
    words += ["--public", data.spec.public, "--private", ",".join(data.spec.private)]
    defaults = methods.BlinderConfig()
    for name, value in settings.items():
        option = name.replace("_", "-")
        if value == getattr(defaults, name):
            continue
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
            continue
        values = value if isinstance(value, tuple) else (value,)
        words += [f"--{option}", *map(str, values)]
    return words


def _process(words) -> float:
    """Returns seconds of a command in a new process."""
    start = time.perf_counter()
    command = [sys.executable, "-P", "-c", MAIN, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"jaxanon {words[0]} failed: {done.stderr}")
    return time.perf_counter() - start


def _alone(words, folder, cells, timed) -> float:
    """Returns mean seconds of a few ``jaxanon train`` commands."""
    seconds = []
    for number in range(timed):
        own = [
            f"--{name}={value}" for name, value in cells[number % len(cells)].items()
        ]
        out = str(folder / f"alone-{number}")
        seconds.append(_process(["train", *words, *own, "--output-dir", out]))
    return statistics.mean(seconds)


def _warm(data, settings, folder, cells, epochs, timed) -> float:
    """Returns mean seconds of runs in this process, without the first one.

    Compares the runs of seed 0 with the members of the sweep.
    """
    method = methods.blinder(data.spec, **settings)
    seeds = _seeds(folder)
    seconds = []
    for number in range(timed + 1):
        place = number % len(cells)
        start = time.perf_counter()
        run = ja.train(
            method,
            data,
            epochs=epochs,
            hyper=cells[place],
            output_dir=folder / f"warm-{number}",
            progress=False,
        )
        seconds.append(time.perf_counter() - start)
        _check(run, sweeps_folder.member_folder(folder / "sweep", place * seeds))
    return statistics.mean(seconds[1:])


def _seeds(folder):
    return sweeps_folder.read(folder / "sweep")["seeds"]


def _check(run, folder):
    """Raises SystemExit if a member of the sweep differs from the separate run."""
    member = run_folder.open_run(folder)
    for name, value in run.history[0]["losses"].items():
        found = member.history[0]["losses"][name]
        if not np.isclose(found, value, rtol=CLOSE, atol=CLOSE):
            raise SystemExit(f"{name} is {found} in {folder.name} and {value} alone.")
