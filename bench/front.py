"""What Blinder, guided, keeps over what it leaks: python bench/front.py [options].

Trains a grid of its weights on MotionSense (4 activities, hiding gender), tries all
members with the same judges and attackers, and prints activity, gender and distortion.
The front is drawn into ``--folder`` (runs/front), as ``jaxanon sweep`` draws it; with
``--json F`` the rows go to F and the figure beside.
"""

import pathlib
import shutil

import _timing
import blinder
import numpy as np

import jaxanon as ja
from jaxanon import methods

# Weights of the information in the latent, of the critic of what leaves, and of the
# public attribute in it.
GRID = {"beta": [0.6, 2.0, 6.0], "critic": [90.0, 180.0], "utility": [30.0, 60.0]}
GRID_SMOKE = {"beta": [0.5, 2.0]}
ATTACKERS = ("mlp", "forest", "lstm", "boosting", "logistic", "tree", "svm")


def main():
    """Trains, tries and draws the grid."""
    args = _timing.arguments(
        __doc__.splitlines()[0],
        folder="where the members are kept, runs/front by default",
        epochs="passes of training, 12 by default",
        seeds="seeds trained together, 1 by default",
    )
    report = _timing.Report(smoke=args.smoke)
    folder = pathlib.Path(args.folder or "runs/front" + "-smoke" * args.smoke)
    settings = blinder.VARIANTS["guided"] | (blinder.SMOKE if args.smoke else {})
    found = ja.sweep(
        methods.blinder,
        blinder.load(args.smoke),
        grid=GRID_SMOKE if args.smoke else GRID,
        seeds=int(args.seeds or 1),
        epochs=1 if args.smoke else int(args.epochs or 12),
        evaluate=True,
        attacks=("forest",) if args.smoke else ATTACKERS,
        out=folder,
        resume=True,
        **settings,
    )
    tell(report, found)
    report.write(args.json)
    if args.json is not None:
        shutil.copy(folder / "front.png", args.json.with_suffix(".png"))


def tell(report, found):
    """A row for every figure of every setting, over its seeds."""
    for row in found.summary:
        name = ", ".join(f"{key} {value:g}" for key, value in row["settings"].items())
        shapes = f"{row['seeds']} seeds"
        for what, value in row["scores"].items():
            std = None if value["std"] is None else 100 * value["std"]
            report.add(f"{name}: {what}", 100 * value["mean"], "%", shapes, std=std)
        own = [
            one["distortion"]["warping"]["mean"]
            for member, one in zip(found.members, found.reports, strict=True)
            if member.settings == row["settings"] and one is not None
        ]
        if own:
            report.add(f"{name}: warping", np.mean(own), "deviations", shapes)


if __name__ == "__main__":
    main()
