"""Measures the cost of DySan against the authors' program and a phone.

Example: ``python bench dysan --part training --smoke``.

``--part training`` times an iteration of the official program (one step of the
sanitizer, 50 each of the predictor and the discriminator) and a round of our schedule
(one step of each), and computes the hours for the grid of 36 models. ``--part choice``
times the choice among 36 models for one window on one core. Both use random windows of
the published shape (125 samples of 6 channels) and untrained models, which does not
affect the cost. ``--part quality`` trains one model on MotionSense with each schedule
and evaluates checkpoints. (``anonymizers`` attacks the choice among the models.)
"""

import functools
import json
import os
import shutil
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxanon as ja
from harness import timing
from harness.data import made_spec, thin
from harness.results import plain
from jaxanon import datasets, methods
from jaxanon.core.programs import rounds_program
from jaxanon.datasets import Data, Windows
from jaxanon.evaluation import anonymizers
from jaxanon.methods.dysan import online_selection
from jaxanon.sweeps.summary import scores

PARTS = ("training", "choice", "quality")
# An iteration of the official program on 2 cores.
AUTHORS_S = 17.5
PHONE_MS = 658  # 36 models on a Redmi Note 7, Boutet et al. 2021.
ROUNDS = 38 * 60  # In our schedule: 60 passes over MotionSense's 9,629 windows.
GRID = 36
# Multiplications and additions per window of a forward pass: sanitizer, predictor,
# discriminator. A training step costs three times that.
SANITIZER = 2 * (116 * 60 * 128 + 14_854 * 64 + 64 * 14_848 + 116 * 60 * 128)
PREDICTOR = 2 * (120 * 36 * 100 + 56 * 500 * 100 + 24 * 500 * 160 + 8 * 800 * 160)
DISCRIMINATOR = 2 * (120 * 36 * 64 + 64 * 60 * 64)
CLASSES = {"activity": tuple("wxyz"), "gender": ("f", "m"), "subject": ("0", "1")}
SMALL = {
    "filters": (2, 3),
    "hidden_sizes": (4, 3),
    "predictor_filters": (3,),
    "discriminator_filters": 2,
    "classifier_hidden_sizes": 3,
    "batch_size": 8,
}


def main():
    """Measures both schedules and the choice; prints the table."""
    args = timing.arguments(
        __doc__,
        folder="dysan",
        part=timing.one_of(PARTS, "training by default"),
    )
    if args.part == "choice":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    report = timing.Report(args.json, smoke=args.smoke)
    if args.part == "choice":
        choice(report, args.smoke)
    elif args.part == "quality":
        quality(report, args.smoke, args.folder, SMALL if args.smoke else {})
    else:
        training(report, args.smoke)
    report.write()


def training(report, smoke):
    """Times an iteration of the official program and a round of ours."""
    data = waves(512 if smoke else 9_629)
    inner = 3 if smoke else 50
    settings = SMALL if smoke else {}
    took = {}
    for name, steps in (("as released", inner), ("ours", 1)):
        took[name] = seconds = a_round(data, steps, settings)
        work = operations(steps)
        report.add(
            f"round, {name}",
            seconds,
            "s",
            f"batch 256, 1 + {steps} + {steps} steps",
            flops=None if smoke else work / seconds,
            gflop=work / 1e9,
        )
    ratio = AUTHORS_S / took["as released"]
    report.add("authors' iteration over ours", ratio, "x", f"{AUTHORS_S} s there")
    hours = took["ours"] * ROUNDS * GRID / 3600
    report.add("grid of 36, our schedule", hours, "h", f"{ROUNDS} rounds each")


def a_round(data, steps, settings):
    """Returns seconds per round; one call of the trainer runs several."""
    method = methods.dysan(data.spec, inner_steps=steps, **settings)
    prepared = method.prepare(datasets.by_client(data.train))
    call, key = rounds_program(method.update), jax.random.key(0)
    state = method.init(jax.random.key(1))
    rounds = max(1, 20 // steps)

    def again():
        nonlocal state
        state, *told = call(key, state, prepared, rounds)
        return state, told

    return timing.timed(again, repeats=3).seconds / rounds


def operations(steps):
    """Returns operations per round; classifiers train on fresh sanitized batches."""
    classifiers = 3 * (PREDICTOR + DISCRIMINATOR)
    return 256 * (3 * SANITIZER + classifiers + steps * (SANITIZER + classifiers))


def choice(report, smoke):
    """Times all models on one window on one core."""
    data, models = waves(64), 4 if smoke else GRID
    method = methods.dysan(data.spec, **(SMALL if smoke else {}))
    states = [method.init(jax.random.key(number)) for number in range(models)]
    trier = online_selection.trier(method, states)
    window, public = data.test.windows[:1], np.zeros(1, np.int32)
    key = jax.random.key(0)
    seconds = timing.timed(lambda: trier(key, window, public), repeats=21).seconds
    work = models * (SANITIZER + PREDICTOR + DISCRIMINATOR)
    report.add(
        "choice among models for one window",
        seconds * 1e3,
        "ms",
        f"{models} models, one core; published on a phone: {PHONE_MS} ms",
        flops=None if smoke else work / seconds,
        gflop=work / 1e9,
    )


def waves(count) -> Data:
    """Returns random windows of MotionSense's shape with labels."""
    spec = made_spec(
        *("waves", 125, tuple("abcdef")), preset="raw6", split="trial", classes=CLASSES
    )
    number = np.arange(count, dtype=np.int32)
    labels = {"activity": number % 4, "gender": number // 4 % 2, "subject": number % 2}
    windows = jax.random.normal(jax.random.key(0), (count, 125, 6), jnp.float32)
    part = Windows(np.asarray(windows), labels)
    return Data(spec, part, part)


class Schedule(NamedTuple):
    """A training schedule and the epochs at which to evaluate."""

    steps: int  # classifier steps per round
    checks: tuple[int, ...]  # epochs


SCHEDULES = {
    "ours": Schedule(1, (10, 20, 40)),
    "as released": Schedule(50, (1, 2)),
}
SCHEDULES_SMOKE = {"ours": Schedule(1, (1, 2))}


def quality(report, smoke, folder, settings):
    """Trains a model with each schedule and evaluates checkpoints.

    Args:
      report: ``timing.Report``.
      smoke: whether to use few windows and epochs.
      folder: folder that saves models and results, so that the next call resumes.
      settings: settings of the method without its schedule.
    """
    data = load(smoke)
    raw_classifiers = functools.cache(lambda: anonymizers.train_raw_classifiers(data))
    for name, schedule in (SCHEDULES_SMOKE if smoke else SCHEDULES).items():
        steps, checks = schedule
        method = methods.dysan(data.spec, inner_steps=steps, **settings)
        before = None
        for epochs in checks:
            kept = folder / plain(name)
            out = kept / f"{epochs}-epochs"
            answer = out / "found.json"
            if not answer.exists():
                if before is not None and not out.exists():
                    _copy(before, out)
                run = ja.train(method, data, epochs=epochs, output_dir=out, resume=True)
                found = scores(
                    anonymizers.evaluate(run, data, raw_classifiers=raw_classifiers())
                )
                told = {"rounds": run.history[-1]["round"], "scores": found}
                answer.write_text(json.dumps(told))
            before = out
            rounds, found = json.loads(answer.read_text()).values()
            for what, value in found.items():
                report.add(
                    f"{name}, {epochs} epochs: {what}",
                    100 * value,
                    "%",
                    f"{rounds} rounds of 1 + {steps} + {steps} steps",
                    rounds=rounds,
                )


def _copy(before, out):
    """Copies a model, without its results, to continue training the copy."""
    shutil.copytree(before, out, ignore=shutil.ignore_patterns("found.json"))


def load(smoke):
    """Loads MotionSense as DySan cuts it; smartwatch for smoke tests or if missing."""
    if smoke:
        return thin(ja.load("smartwatch", private=["side"]))
    return ja.load("motion_sense", preset="raw6", private=["gender"])
