"""Further attacks that retrain none of the chosen attackers."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import attacks, trial
from jaxanon.trial_case import Case, empty, keys, row

FEW = 0.01  # Of each class, and at least two windows: what has labels.
VICTIMS = 4  # Windows whose gradients are inverted.
MAX_NORM, NOISE_MULTIPLIER = 1.0, 1.0
HOOKS = {"inversion": "client_loss", "fingerprint": "choices"}


def self_training(case: Case) -> list[list[dict]]:
    """A support vector machine with labels of one training window in a hundred."""
    rows, places = empty(case)
    data = case.trials[0].data
    names = trial.attacked(data)
    split = jax.vmap(lambda key: jax.random.split(key, 4))
    own_keys = split(keys(case, "self-training", names))
    aims = trial.targets(case.trials, names)
    for (own, attribute), aim, key in zip(places, aims, own_keys, strict=True):
        known = attacks.know(key[:2], aim, FEW, at_least=2)
        for rounds, variant, one in (
            (0, "alone", key[2]), (8, "and self-training", key[3]),
        ):  # fmt: skip
            told = attacks.self_train(
                one, known.windows, known.labels, aim.safe_test, aim.num_classes,
                rounds=rounds,
            )  # fmt: skip
            found = trial.score(data, attribute, told)
            variant = f"{len(known.labels)} labels {variant}"
            own.append(row(attribute, "svm", variant, found))
    return rows


def inversion(case: Case) -> list[list[dict]]:
    """Deep leakage from gradients, against what ``run.client_loss()`` is sent for."""
    rows, _ = empty(case)
    data = case.trials[0].data
    public, classes = data.spec.public, data.spec.num_classes(data.spec.public)
    chosen = np.linspace(0, len(data.test.windows) - 1, VICTIMS).round().astype(int)
    windows = jnp.asarray(trial.standardise(data.spec, data.test.windows[chosen]))
    labels = jax.nn.one_hot(data.test.labels[public][chosen], classes)
    protections = {
        "no noise": {},
        f"clipped to {MAX_NORM:g}, noise multiplier {NOISE_MULTIPLIER:g}": {
            "max_norm": MAX_NORM,
            "noise_multiplier": NOISE_MULTIPLIER,
        },
    }
    own_keys = keys(case, "inversion", [public])
    for own, one, key in zip(rows, case.trials, own_keys, strict=True):
        loss_fn, params = one.run.client_loss()
        for number, (variant, options) in enumerate(protections.items()):
            alike, distances = [], []
            for victim in range(VICTIMS):
                place = jax.random.fold_in(key, VICTIMS * number + victim)
                noise_key, start_key = jax.random.split(place)
                only = slice(victim, victim + 1)
                sent = attacks.client_gradient(
                    noise_key, loss_fn, params, windows[only], labels[only], **options
                )
                found = attacks.invert_gradient(
                    start_key, loss_fn, params, sent, windows.shape[1:], (classes,)
                )
                alike.append(abs(attacks.correlation(windows[victim], found.window)))
                distances.append(found.distance)
            figures = {"correlation": alike, "distance": distances}
            figures = {name: float(np.mean(x)) for name, x in figures.items()}
            own.append(row("the window", "gradient inversion", variant, **figures))
    return rows


def fingerprint(case: Case) -> list[list[dict]]:
    """How unique a subject's models are, by ``run.choices(key, windows)``."""
    rows, _ = empty(case)
    data = case.trials[0].data
    subjects = np.asarray(data.test.labels["subject"])
    own_keys = keys(case, "fingerprint", ["subject"])
    for own, one, key in zip(rows, case.trials, own_keys, strict=True):
        choice_key, draw_key = jax.random.split(key)
        choices = np.asarray(one.run.choices(choice_key, data.test.windows))
        by_user = [choices[subjects == subject] for subject in np.unique(subjects)]
        unique = attacks.uniqueness(draw_key, by_user)
        for size, column in zip(attacks.SIZES, unique.T, strict=True):
            figures = {"uniqueness": float(column.mean()), "std": float(column.std())}
            own.append(row("subject", "model choices", f"p = {size}", **figures))
    return rows
