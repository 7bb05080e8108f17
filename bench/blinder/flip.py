"""Compares flip probabilities of one Blinder model by privacy and utility.

Example: ``python bench blinder.flip --smoke``.

Trains Blinder, guided, on MotionSense (``mag5``, hiding gender). The model then shows
the class after the predicted one in a fraction of the windows, for several fractions.
Prints accuracies of raw-data classifiers on anonymized *training* windows, by which a
fraction may be chosen, then those on test windows. ``--json F`` writes a row per
fraction to F and keeps rows of other settings, such as those of ``blinder.front``.
``--folder`` (runs/flip) saves the model, and later calls load it.
"""

import dataclasses
import json

import jax

import jaxanon as ja
from blinder import command as blinder
from blinder import front
from harness import data as shared
from harness import timing
from jaxanon import methods
from jaxanon.datasets import spec as datasets_spec
from jaxanon.evaluation import anonymizers, protocol
from jaxanon.evaluation.summary import aggregate
from jaxanon.metrics import balanced_accuracy, confusion_matrix
from jaxanon.sweeps.summary import scores

SHARES = (0.5, 0.51, 0.52)
# The setting in front_motion_sense.json that is closest to the requirement.
WEIGHTS = {"beta": 0.5, "output_discriminator_weight": 60.0, "utility": 30.0}
EPOCHS = 14
ATTACKERS = ("mlp", "forest")
THIN = 5  # Use every fifth training window.
COMMAND = "python bench blinder.flip"


def main():
    """Trains one model and evaluates every fraction."""
    args = timing.arguments(__doc__, folder="flip")
    report = timing.Report(smoke=args.smoke)
    smoke = args.smoke
    settings = blinder.VARIANTS["guided"] | WEIGHTS | (shared.SMOKE if smoke else {})
    settings |= {"anonymization": "probabilistic"}
    data = front.load(smoke, "mag5")
    method = methods.blinder(data.spec, **settings)
    epochs = 1 if smoke else EPOCHS
    run = ja.train(
        method, data, epochs=epochs, seed=0, output_dir=args.folder, resume=True
    )
    raw_classifiers = anonymizers.train_raw_classifiers(data)
    shares = SHARES[:1] if smoke else SHARES
    for share in shares:
        told = read_of_training(flipping(run, share), data, raw_classifiers)
        for name, value in told.items():
            report.add(f"flip {share:g}, training windows: {name}", value, "%", "raw")
    how = {"preset": data.spec.preset, "command": COMMAND, **report.about}
    rows = []
    for share in shares:
        found = anonymizers.evaluate(
            flipping(run, share),
            data,
            attacks=ATTACKERS[1:] if smoke else ATTACKERS,
            raw_classifiers=raw_classifiers,
        )
        tried = {name: settings[name] for name in WEIGHTS}
        tried |= {"epochs": epochs, "flip_probability": share}
        told = {"seeds": 1, "diverged": 0, "scores": aggregate([scores(found)])}
        rows.append(front.row(tried, told, [found], how))
    front.tell(report, rows)
    if args.json is not None:
        kept = front.together(args.json, rows)
        args.json.write_text(json.dumps(kept, indent=1) + "\n")


def flipping(run, share):
    """Returns the run without a folder, with a fraction of windows flipped."""
    config = dataclasses.asdict(run.method.config) | {"flip_probability": share}
    method = methods.build("blinder", run.spec, **config)
    return dataclasses.replace(run, method=method, folder=None)


def read_of_training(run, data, raw_classifiers) -> dict[str, float]:
    """Returns balanced accuracies in percent on anonymized training windows."""
    spec, part = data.spec, jax.tree.map(lambda rows: rows[::THIN], data.train)
    safe = run.anonymize(protocol.root(0), part.windows)
    found = {}
    for name in (spec.public, *spec.private):
        told = raw_classifiers.infer[name](
            datasets_spec.standardise(spec, safe)
        ).argmax(axis=1)
        matrix = confusion_matrix(part.labels[name], told, spec.num_classes(name))
        found[name] = 100 * float(balanced_accuracy(matrix))
    return found
