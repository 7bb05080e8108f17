"""What DySan's schedules come to, after so many rounds."""

import functools
import json
import pathlib
import shutil
from typing import NamedTuple

import blinder

import jaxanon as ja
from jaxanon import methods
from jaxanon.evaluation import anonymizers
from jaxanon.sweeps.summary import scores


class Schedule(NamedTuple):
    """How one model is trained, and when it is tried."""

    steps: int  # of the judges in a round
    checks: tuple[int, ...]  # epochs


SCHEDULES = {
    "ours": Schedule(1, (10, 20, 40)),
    "as released": Schedule(50, (1, 2)),
}
SCHEDULES_SMOKE = {"ours": Schedule(1, (1, 2))}


def quality(report, smoke, folder, settings):
    """Trains a model by every schedule, and tries it as it grows.

    Args:
      report: ``_timing.Report``.
      smoke: whether a few windows and epochs are enough.
      folder: where models, and what was found of them, are kept, so that the next call
        goes on with them.
      settings: of the method, beside its schedule.
    """
    data = load(smoke)
    judges = functools.cache(lambda: anonymizers.raw_judges(data))
    for name, schedule in (SCHEDULES_SMOKE if smoke else SCHEDULES).items():
        steps, checks = schedule
        method = methods.dysan(data.spec, inner_steps=steps, **settings)
        before = None
        for epochs in checks:
            kept = pathlib.Path(folder) / name.replace(",", "").replace(" ", "-")
            out = kept / f"{epochs}-epochs"
            answer = out / "found.json"
            if not answer.exists():
                if before is not None and not out.exists():
                    _copy(before, out)
                run = ja.train(method, data, epochs=epochs, out=out, resume=True)
                found = scores(anonymizers.evaluate(run, data, judges=judges()))
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
    """A model to go on from, without what was found of it, which stays as it is."""
    shutil.copytree(before, out, ignore=shutil.ignore_patterns("found.json"))


def load(smoke):
    """MotionSense as DySan cuts it; for a smoke test, or without it, the smartwatch."""
    if smoke:
        return blinder.thin(ja.load("smartwatch", private=["side"]))
    return ja.load("motion_sense", preset="raw6", private=["gender"])
