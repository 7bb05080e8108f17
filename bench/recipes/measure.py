"""Training and measurement of a recipe of Blinder."""

import time
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxanon as ja
from harness import timing
from jaxanon import attacks, metrics
from jaxanon.attacks import attacker_data, linkage
from jaxanon.evaluation import protocol

ATTACKERS = ("mlp", "forest", "boosting")
SHARE = 0.2  # fraction of the training labels known to an attacker
STREAM = 30  # windows of one person


class Case(NamedTuple):
    """Data and limits for the measurement of a recipe."""

    load: dict[str, Any]  # arguments of ``jaxanon.load``
    seeds: int
    limits: dict[str, tuple[str, float]]  # sign and limit of figures, in percent


CASES = {
    "MotionSense": Case(
        {"name_or_npz": "motion_sense", "preset": "mag4", "private": ["gender"]},
        5,
        {
            "kept": (">=", 96.5),
            "raw_classifier_off_chance": ("<=", 2.0),
            "retrained": ("<=", 58.0),
            "retrained_stream": ("<=", 63.0),
            "cpu_minutes": ("<=", 10.0),
        },
    ),
    "smartwatch": Case(
        {"name_or_npz": "smartwatch", "private": ["side"]},
        5,
        {
            "kept": (">=", 93.0),
            "raw_classifier_off_chance": ("<=", 3.0),
            "retrained": ("<=", 58.0),
            "retrained_stream": ("<=", 65.0),
        },
    ),
    "MotionSense, new people": Case(
        {
            "name_or_npz": "motion_sense",
            "preset": "mag4",
            "private": ["gender"],
            "split": "subject",
        },
        1,
        {"lost": ("<=", 4.0)},
    ),
    "UCI HAPT": Case({"name_or_npz": "uci_hapt", "private": ["subject"]}, 1, {}),
    "WISDM": Case(
        {"name_or_npz": "wisdm", "preset": "watch-accel", "private": ["subject"]}, 1, {}
    ),
}


def measure(
    data, raw_classifiers, seed: int, recipe: str, epochs=None, settings=None
) -> dict:
    """Returns figures of one training, in percent unless their name says otherwise.

    Args:
      data: result of ``jaxanon.load``.
      raw_classifiers: raw-data classifiers, from ``train_raw_classifiers``.
      seed: random seed of training and evaluation.
      recipe: name of one of Blinder's recipes.
      epochs, settings: values that override the recipe's.
    """
    method = ja.methods.blinder(data.spec, recipe=recipe, **settings or {})
    wall, cpu = time.monotonic(), time.process_time()
    run = ja.train(method, data, seed=seed, epochs=epochs, progress=False)
    found = {
        "seed": seed,
        "rounds": int(run.state.round),
        "minutes": (time.monotonic() - wall) / 60,
        "cpu_minutes": (time.process_time() - cpu) / 60,
        "loss": run.history[-1]["losses"]["loss"],
    }
    trial = protocol.prepare_evaluation(
        run, seed, data, ATTACKERS, SHARE, lambda what: None
    )
    scores = protocol.score_classifiers(trial, raw_classifiers)
    (private,) = data.spec.private
    kept = scores[data.spec.public]
    found["raw"] = 100 * kept["raw"]["accuracy"]
    found["kept"] = 100 * kept["anonymized"]["accuracy"]
    found["lost"] = found["raw"] - found["kept"]
    if private in scores:  # A classifier cannot name people that it has not seen.
        read = scores[private]
        chance = 100 / len(np.unique(data.test.labels[private]))
        found["raw_classifier_of_raw"] = 100 * read["raw"]["balanced_accuracy"]
        found["raw_classifier"] = 100 * read["anonymized"]["balanced_accuracy"]
        found["raw_classifier_off_chance"] = abs(found["raw_classifier"] - chance)
        found |= retrained(trial, private)
    return found | timing.about()


def retrained(trial, private: str) -> dict:
    """Returns scores of the attackers retrained on anonymized windows.

    The attacker knows the labels of ``SHARE`` of the training windows, chooses the
    architecture on other training windows, and is scored on all test windows.
    """
    spec, train, test = trial.data
    labels = np.asarray(train.labels[private])
    validation = attacker_data.blocks(labels)  # a tenth of each class
    held, rest = np.flatnonzero(validation), np.flatnonzero(~validation)
    (key,) = protocol.folded([trial], protocol.purposes(trial.data, [private]))
    safe_held = trial.anonymize(jax.random.fold_in(key, 0), train.windows[held])
    target = attacks.Target(
        trial.anonymize,
        train.windows[rest],
        labels[rest],
        spec.num_classes(private),
        np.concatenate([safe_held, trial.safe]),
        private,
    )
    truth = np.asarray(test.labels[private])
    runs = streams(test.labels["subject"], truth)
    found, chosen_by = {}, {}
    for number, name in enumerate(trial.attackers):
        own = jax.random.fold_in(key, 1 + number)[None]
        share = SHARE * len(labels) / len(rest)
        (evidence,) = attacks.reidentify(own, name, [target], share=share)
        chosen_by[name] = balanced(evidence[: len(held)], labels[held])
        evidence = evidence[len(held) :]
        found[name] = {
            "validation": chosen_by[name],
            "window": balanced(evidence, truth),
            "window_auc": auc(evidence, truth),
        }
        if len(runs):
            added = attacks.mean_log_odds(evidence[runs])
            found[name]["stream"] = balanced(added, truth[runs[:, 0]])
            found[name]["stream_auc"] = auc(added, truth[runs[:, 0]])
    strongest = max(chosen_by, key=lambda name: chosen_by[name])
    worst = lambda figure: max(
        (each[figure] for each in found.values() if figure in each), default=None
    )
    return {
        "attackers": found,
        "strongest": strongest,
        "retrained": found[strongest]["window"],
        "retrained_auc": found[strongest]["window_auc"],
        "retrained_stream": found[strongest].get("stream"),
        "retrained_stream_auc": found[strongest].get("stream_auc"),
        "retrained_worst_of_three": worst("window"),
        "retrained_stream_worst_of_three": worst("stream"),
    }


def streams(subjects, truth):
    """Returns rows of ``STREAM`` consecutive windows of one person and one class."""
    both = np.stack([np.asarray(subjects), truth], 1)
    persons = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    return linkage.runs(persons, STREAM)


def balanced(evidence, truth) -> float:
    """Returns the balanced accuracy in percent."""
    guess = evidence.argmax(1)
    return 100 * float(
        np.mean([np.mean(guess[truth == label] == label) for label in np.unique(truth)])
    )


def auc(evidence, truth) -> float:
    """Returns the mean AUC over the classes that occur, in percent."""
    return 100 * float(np.nanmean(metrics.auc(truth, evidence)))
