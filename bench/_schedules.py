"""What DySan's schedules come to, after so many rounds."""

import pathlib
import shutil

import blinder

import jaxanon as ja
from jaxanon import evaluation, methods
from jaxanon.sweep_summary import scores

MODEL = {"alpha": 0.6, "lambda_": 0.3}  # The one that DySan calls MSDA.
# Steps of the judges in a round, and the epochs after which the model is tried.
SCHEDULES = {
    "ours": (1, (10, 20, 40, 60, 120)),
    "10 steps": (10, (5, 10, 20)),
    "as released": (50, (2, 4, 8, 12)),
}
SCHEDULES_SMOKE = {"ours": (1, (1, 2))}


def quality(report, smoke, folder, settings):
    """Trains one model by every schedule, and tries it as it grows.

    Args:
      report: ``_timing.Report``.
      smoke: whether a few windows and epochs are enough.
      folder: where the models are kept, so that the next call goes on with them.
      settings: of the method, beside its schedule.
    """
    data = load(smoke)
    judges = evaluation.raw_judges(data)
    for name, (steps, checks) in (SCHEDULES_SMOKE if smoke else SCHEDULES).items():
        method = methods.dysan(data.spec, inner_steps=steps, **MODEL, **settings)
        before = None
        for epochs in checks:
            out = pathlib.Path(folder) / name.replace(" ", "-") / f"{epochs}-epochs"
            if before is not None and not out.exists():
                shutil.copytree(before, out)  # To go on from, and to keep as it is.
            before = out
            run = ja.train(method, data, epochs=epochs, out=out, resume=True)
            found = scores(evaluation.evaluate(run, data, judges=judges))
            rounds = run.history[-1]["round"]
            for what, value in found.items():
                report.add(
                    f"{name}, {epochs} epochs: {what}",
                    100 * value,
                    "%",
                    f"{rounds} rounds of 1 + {steps} + {steps} steps",
                    rounds=rounds,
                )


def load(smoke):
    """MotionSense as DySan cuts it; for a smoke test, or without it, the smartwatch."""
    if smoke:
        return blinder.thin(ja.load("smartwatch", private=["side"]))
    return ja.load("motion_sense", preset="raw6", private=["gender"])
