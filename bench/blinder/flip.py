"""How often Blinder shows another private class: python bench blinder.flip [--smoke].

Trains Blinder, guided, on MotionSense (``mag5``, hiding gender) to show the class after
the predicted one in a share of windows, and tries that with several shares of the same
model. What a classifier of raw windows reads of anonymized *training* windows is told
first, by which a share may be chosen; then what is read of test windows. ``--json F``
writes a row for every share to F, where rows of other settings stay: those of
``blinder.front``. The model is kept in ``--folder`` (runs/flip), and trained no more
where it is there.
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
# Of those in front_motion_sense.json, the one that is nearest to what is asked for.
WEIGHTS = {"beta": 0.5, "output_discriminator_weight": 60.0, "utility": 30.0}
EPOCHS = 14
ATTACKERS = ("mlp", "forest")
THIN = 5  # Every so many training windows are looked at.
COMMAND = "python bench blinder.flip"


def main():
    """Trains one model, and tries every share."""
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
    judges = anonymizers.train_raw_classifiers(data)
    shares = SHARES[:1] if smoke else SHARES
    for share in shares:
        told = read_of_training(flipping(run, share), data, judges)
        for name, value in told.items():
            report.add(f"flip {share:g}, training windows: {name}", value, "%", "raw")
    how = {"preset": data.spec.preset, "command": COMMAND, **report.about}
    rows = []
    for share in shares:
        found = anonymizers.evaluate(
            flipping(run, share),
            data,
            attacks=ATTACKERS[1:] if smoke else ATTACKERS,
            judges=judges,
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
    """The run, without a folder, showing another class in a share of windows."""
    config = dataclasses.asdict(run.method.config) | {"flip_probability": share}
    method = methods.build("blinder", run.spec, **config)
    return dataclasses.replace(run, method=method, folder=None)


def read_of_training(run, data, judges) -> dict[str, float]:
    """Balanced accuracies of judges in per cent, on anonymized training windows."""
    spec, part = data.spec, jax.tree.map(lambda rows: rows[::THIN], data.train)
    safe = run.anonymize(protocol.root(0), part.windows)
    found = {}
    for name in (spec.public, *spec.private):
        told = judges.infer[name](datasets_spec.standardise(spec, safe)).argmax(axis=1)
        matrix = confusion_matrix(part.labels[name], told, spec.num_classes(name))
        found[name] = 100 * float(balanced_accuracy(matrix))
    return found
