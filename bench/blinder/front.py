"""What Blinder, guided, keeps over what it leaks: python bench blinder.front [options].

Trains a grid of its weights on MotionSense (``--preset``: mag4, 4 activities, or mag5,
with the statistics of 5), hiding gender, tries all members with the same judges and
attackers, and prints activity, gender and distortion. The front is drawn into
``--folder``, as ``jaxanon sweep`` draws it: by default one of each preset, epochs and
seeds (runs/front-mag4-12-epochs-1-seeds). With ``--json F`` a row for every setting
goes to F, where rows of other settings stay, and the figure beside.
"""

import json
import pathlib
import shutil

import numpy as np

import jaxanon as ja
from blinder import command as blinder
from harness import data as shared
from harness import timing
from jaxanon import methods

# Weights of the information in the latent, of the critic of what leaves, and of the
# public attribute in it.
GRID = {
    "beta": [0.6, 2.0, 6.0],
    "output_discriminator_weight": [90.0, 180.0],
    "utility": [30.0, 60.0],
}
GRID_SMOKE = {"beta": [0.5, 2.0]}
ATTACKERS = ("mlp", "forest", "lstm", "boosting", "logistic", "tree", "svm")
ATTACKERS_SMOKE = ("forest",)
PRESETS = ("mag4", "mag5")
WEIGHTS = (
    "beta",
    "output_discriminator_weight",
    "utility",
    "epochs",
)  # That tell settings apart.


def main():
    """Trains, tries and draws the grid."""
    args = timing.arguments(
        __doc__,
        folder=timing.Option(
            "where the members are kept, by default "
            "runs/front-PRESET-EPOCHS-epochs-SEEDS-seeds"
        ),
        epochs=timing.number(12, "passes of training"),
        seeds=timing.number(1, "seeds trained together"),
        preset=timing.one_of(PRESETS, "of MotionSense, mag4 by default"),
    )
    report = timing.Report(smoke=args.smoke)
    base = blinder.VARIANTS["guided"] | (shared.SMOKE if args.smoke else {})
    data = load(args.smoke, args.preset)
    epochs, seeds = 1 if args.smoke else args.epochs, args.seeds
    # A folder holds one sweep, and another setting of these is another sweep.
    default = f"runs/front-{data.spec.preset}-{epochs}-epochs-{seeds}-seeds"
    folder = pathlib.Path(args.folder or default + "-smoke" * args.smoke)
    found = ja.sweep(
        methods.blinder,
        data,
        grid=GRID_SMOKE if args.smoke else GRID,
        num_seeds=seeds,
        epochs=epochs,
        evaluate=True,
        attacks=ATTACKERS_SMOKE if args.smoke else ATTACKERS,
        output_dir=folder,
        resume=True,
        **base,
    )
    smoke = " --smoke" * args.smoke
    command = f"python bench blinder.front{smoke} --seeds {seeds} --epochs {epochs}"
    if args.preset:
        command += f" --preset {args.preset}"
    how = {"preset": data.spec.preset, "command": command, **report.about}
    rows = settled(found, base | {"epochs": epochs}, how)
    tell(report, rows)
    if args.json is not None:
        args.json.write_text(json.dumps(together(args.json, rows), indent=1) + "\n")
        shutil.copy(folder / "pareto_front.png", args.json.with_suffix(".png"))


def load(smoke, preset):
    """What Blinder's benchmark loads, or MotionSense as ``preset`` cuts it."""
    if smoke or preset is None:
        return shared.load(smoke)
    return ja.load("motion_sense", preset=preset, private=["gender"])


def settled(found, base, how) -> list[dict]:
    """A row for every setting that there is a report of, over its seeds.

    Args:
      found: of ``jaxanon.sweep``.
      base: the settings of all members, and their epochs.
      how: what all rows say.
    """
    rows = []
    for one in found.summary:
        reports = [
            report
            for member, report in zip(found.members, found.reports, strict=True)
            if member.settings == one["settings"] and report
        ]
        if not reports:
            continue
        settings = base | one["settings"]
        told = {name: one[name] for name in ("seeds", "diverged", "scores")}
        tried = {name: settings[name] for name in WEIGHTS}
        rows.append(row(tried, told, reports, how))
    return rows


def row(settings, told, reports, how) -> dict:
    """Of one setting.

    Args:
      settings: that tell it from others.
      told: ``seeds``, ``diverged`` and ``scores`` of it.
      reports: of ``evaluate``, one a seed.
      how: what all rows say.
    """
    warping = [each["distortion"]["warping"]["mean"] for each in reports]
    return {
        "settings": settings,
        **told,
        "retrained": retrained(reports),
        "warping": float(np.mean(warping)),
        **how,
    }


def retrained(reports) -> dict[str, float]:
    """Balanced accuracies of retrained attackers on the private attribute, on the mean.

    Example:
      >>> one = lambda x: {"attackers": {"mlp": {"balanced_accuracy": x}}}
      >>> retrained([{"reidentification": {"side": one(x)}} for x in (0.5, 0.75)])
      {'mlp': 0.625}
    """
    told = [
        attacked["attackers"]
        for report in reports
        for attacked in report["reidentification"].values()
    ]
    return {
        name: float(np.mean([one[name]["balanced_accuracy"] for one in told]))
        for name in told[0]
    }


def together(path, rows) -> list[dict]:
    """Rows, before them those of ``path`` that are of another preset or setting."""
    which = lambda row: (row["preset"], row["settings"])
    before = json.loads(path.read_text()) if path.is_file() else []
    now = [which(row) for row in rows]
    return [row for row in before if which(row) not in now] + rows


def tell(report, rows):
    """Prints every figure of every row."""
    for row in rows:
        name = ", ".join(f"{key} {value:g}" for key, value in row["settings"].items())
        shapes = f"{row['seeds']} seeds"
        for what, value in row["scores"].items():
            std = None if value["std"] is None else 100 * value["std"]
            report.add(f"{name}: {what}", 100 * value["mean"], "%", shapes, std=std)
        for what, value in row["retrained"].items():
            report.add(f"{name}: retrained {what}", 100 * value, "%", shapes)
        report.add(f"{name}: warping", row["warping"], "deviations", shapes)
