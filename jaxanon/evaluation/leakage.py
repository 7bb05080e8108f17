"""Further attacks that retrain none of the chosen attackers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import attacks, datasets
from jaxanon.datasets import spec as datasets_spec
from jaxanon.datasets.spec import take
from jaxanon.evaluation import checks, protocol
from jaxanon.evaluation.protocol import EvaluationContext, empty, keys, row

FEW = 0.01  # Of each class, and at least two windows: what has labels.

VICTIMS = 4  # Windows whose gradients are inverted.

MAX_NORM, NOISE_MULTIPLIER = 1.0, 1.0

MEMBERS, MADE = 512, 1024  # Windows of either side at most, and synthetic ones.


def self_training(case: EvaluationContext) -> list[list[dict]]:
    """A support vector machine with labels of one training window in a hundred."""
    rows, places = empty(case)
    data = case.trials[0].data
    names = protocol.attacked(data)
    split = jax.vmap(lambda key: jax.random.split(key, 4))
    own_keys = split(keys(case, "self-training", names))
    aims = protocol.targets(case.trials, names)
    for (own, attribute), aim, key in zip(places, aims, own_keys, strict=True):
        known = attacks.know(key[:2], aim, FEW, at_least=2)
        for rounds, variant, one in (
            (0, "alone", key[2]), (8, "and self-training", key[3]),
        ):  # fmt: skip
            told = attacks.self_train(
                one, known.windows, known.labels, aim.safe_test, aim.num_classes,
                rounds=rounds,
            )  # fmt: skip
            found = protocol.score(data, attribute, told)
            variant = f"{len(known.labels)} labels {variant}"
            own.append(row(attribute, "svm", variant, found))
    return rows


def inversion(case: EvaluationContext) -> list[list[dict]]:
    """What of a window the gradient of ``run.client_loss()`` tells.

    By deep leakage from gradients, and where the loss begins with a dense layer with
    biases, by what these tell of what went into it.
    """
    rows, _ = empty(case)
    data = case.trials[0].data
    public, classes = data.spec.public, data.spec.num_classes(data.spec.public)
    chosen = np.linspace(0, len(data.test.windows) - 1, VICTIMS).round().astype(int)
    windows = jnp.asarray(
        datasets_spec.standardise(data.spec, data.test.windows[chosen])
    )
    labels = jax.nn.one_hot(data.test.labels[public][chosen], classes)
    protections = {
        "no noise": {},
        f"clipped to {MAX_NORM:g}, noise multiplier {NOISE_MULTIPLIER:g}": {
            "clip_norm": MAX_NORM,
            "noise_multiplier": NOISE_MULTIPLIER,
        },
    }
    own_keys = keys(case, "inversion", [public])
    for own, one, key in zip(rows, case.trials, own_keys, strict=True):
        loss_fn, params = one.run.client_loss()
        for number, (variant, options) in enumerate(protections.items()):
            alike, distances, direct = [], [], []
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
                # Classifiers lay a window out channel after channel.
                flat = attacks.dense_input(sent, windows[victim].size)
                if flat is not None:
                    whole = windows[victim].T.ravel()
                    direct.append(abs(attacks.correlation(whole, flat)))
            figures = {"correlation": alike, "distance": distances}
            figures = {name: float(np.mean(x)) for name, x in figures.items()}
            own.append(row("the window", "gradient inversion", variant, **figures))
            if direct:
                told = {"correlation": float(np.mean(direct))}
                own.append(row("the window", "first dense layer", variant, **told))
    return rows


def fingerprint(case: EvaluationContext) -> list[list[dict]]:
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


def membership(case: EvaluationContext) -> list[list[dict]]:
    """Training windows told from test windows by what a generator makes, and knows."""
    rows, _ = empty(case)
    spec, whole, test = case.trials[0].data
    own_keys = keys(case, "membership", [spec.public])
    for own, one, key in zip(rows, case.trials, own_keys, strict=True):
        train = _learned(one.run.method, whole)
        kinds = [checks.kinds_of(part, spec.public) for part in (train, test)]
        match_key, made_key, *rest = jax.random.split(key, 4)
        chosen = attacks.match(match_key, kinds[0], kinds[1], MEMBERS)
        windows = np.concatenate([train.windows[chosen[0]], test.windows[chosen[1]]])
        labels = {
            name: np.concatenate([train.labels[name][chosen[0]], other[chosen[1]]])
            for name, other in test.labels.items()
        }
        wanted = {spec.public: np.resize(labels[spec.public], MADE)}
        made = one.run.sample(made_key, wanted)
        standard = [datasets_spec.standardise(spec, x) for x in (windows, made)]
        told = {("nearest synthetic window", f"of {MADE}"): attacks.nearness(*standard)}
        told |= _explained(one.run, rest, windows, labels)
        for (who, how), evidence in told.items():
            found = attacks.score_membership(*np.split(evidence, 2))
            own.append(row("training window", who, how, **_figures(found)))
    return rows


def _learned(method, train):
    """Training windows without those that only said when to stop."""
    if method.generate is None or method.generate.learned is None:
        return train
    row = {"row": np.arange(len(train.windows))}
    clients = datasets.by_client(train._replace(labels=train.labels | row))
    chosen = np.zeros(len(train.windows), bool)
    chosen[clients.labels["row"][method.generate.learned(clients)]] = True
    return take(train, chosen)


def _explained(run, loss_keys, windows, labels):
    """Evidence by how badly a generator, trained and not, explains windows."""
    if run.method.generate is None or run.method.generate.losses is None:
        return {}
    fresh_key, key = loss_keys
    found = run.window_losses(key, windows, labels)
    told = {("its losses", name): -loss for name, loss in found.items()}
    told["its losses", "all of these"] = -sum(found.values())
    fresh = dataclasses.replace(run, state=run.method.init(fresh_key))
    nothing = sum(fresh.window_losses(key, windows, labels).values())
    return told | {("untrained", "all of these"): -nothing}


def _figures(found):
    low, high = found.interval
    rates = found.true_positives.items()
    told = {f"found at {100 * rate:g} %": share for rate, share in rates}
    return {"AUC": found.auc, "from": low, "to": high, **told}
