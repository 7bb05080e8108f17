"""What DySan's choice among a grid of models comes to, attacked as one anonymizer."""

import pathlib
import warnings

import _schedules
import jax

import jaxanon as ja
from jaxanon import evaluation, online_run
from jaxanon.sweep_summary import scores

TENTHS = [round(0.1 * n, 1) for n in range(1, 10)]
GRID = {"alpha": TENTHS, "lambda_": TENTHS}  # 36 of them leave something for change.
GRID_SMOKE = {"alpha": [0.2, 0.6]}
EPOCHS = 40  # As "ours" of the schedules.
ATTACKS = ("mlp", "forest", "stream", "fingerprint")
ATTACKS_SMOKE = ("forest", "fingerprint")


def online(report, smoke, folder, settings):
    """Trains the grid as one sweep, chooses among it, and attacks what was chosen.

    Args:
      report: ``_timing.Report``.
      smoke: whether a few windows, models and epochs are enough.
      folder: where the sweep is kept, so that the next call goes on with it.
      settings: of the method.
    """
    data, out = _schedules.load(smoke), pathlib.Path(folder) / "grid"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* points of the grid are left out")
        ja.sweep(
            "dysan",
            data,
            grid=GRID_SMOKE if smoke else GRID,
            epochs=1 if smoke else EPOCHS,
            out=out,
            resume=True,
            **settings,
        )
    runs, _ = online_run.members(out)
    run = online_run.choose_online(jax.random.key(0), runs, data)
    attacks = ATTACKS_SMOKE if smoke else ATTACKS
    found = evaluation.evaluate(run, data, attacks=attacks)
    name, shapes = "chosen online", f"of {len(runs)} models, {len(data.test.windows)}"
    for what, value in scores(found).items():
        report.add(f"{name}: {what}", 100 * value, "%", f"{shapes} windows")
    for row in found["attacks"]["fingerprint"]:
        value = 100 * row["figures"]["uniqueness"]
        report.add(f"{name}: unique, {row['variant']}", value, "%", f"{shapes} windows")
