"""Attacks with models of their own, in place of the chosen attackers."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import attacks, datasets
from jaxanon.datasets import spec as datasets_spec
from jaxanon.datasets.spec import take
from jaxanon.evaluation import checks, protocol
from jaxanon.evaluation.protocol import EvaluationContext, empty, keys, row

LABELED = 0.01  # Fraction of each class with labels, at least two windows.

VICTIMS = 4  # Number of inverted gradients, of one window each.

MAX_NORM, NOISE_MULTIPLIER = 1.0, 1.0

MAX_MEMBERS, NUM_SAMPLES = 512, 1024  # Windows of each side, synthetic windows.


def self_training(context: EvaluationContext) -> list[list[dict]]:
    """Trains a support vector machine with labels of 1 % of the training windows."""
    rows, slots = empty(context)
    data = context.evaluations[0].data
    names = protocol.attacked(data)
    split = jax.vmap(lambda key: jax.random.split(key, 4))
    attack_keys = split(keys(context, "self-training", names))
    aims = protocol.targets(context.evaluations, names)
    for (by_run, attribute), aim, key in zip(slots, aims, attack_keys, strict=True):
        known = attacks.know(key[:2], aim, LABELED, at_least=2)
        for rounds, variant, one in (
            (0, "alone", key[2]), (8, "and self-training", key[3]),
        ):  # fmt: skip
            evidence = attacks.self_train(
                one, known.windows, known.labels, aim.safe_test, aim.num_classes,
                rounds=rounds,
            )  # fmt: skip
            scores = protocol.score(data, attribute, evidence)
            variant = f"{len(known.labels)} labels {variant}"
            by_run.append(row(attribute, "svm", variant, scores))
    return rows


def inversion(context: EvaluationContext) -> list[list[dict]]:
    """Reconstructs windows from gradients of ``run.client_loss()``.

    The attack is deep leakage from gradients and, if the loss starts with a dense layer
    with biases, the closed form for its input.
    """
    rows, _ = empty(context)
    data = context.evaluations[0].data
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
    attack_keys = keys(context, "inversion", [public])
    for by_run, one, key in zip(rows, context.evaluations, attack_keys, strict=True):
        loss_fn, params = one.run.client_loss()
        for number, (variant, options) in enumerate(protections.items()):
            alike, distances, direct = [], [], []
            for victim in range(VICTIMS):
                victim_key = jax.random.fold_in(key, VICTIMS * number + victim)
                noise_key, start_key = jax.random.split(victim_key)
                only = slice(victim, victim + 1)
                sent = attacks.client_gradient(
                    noise_key, loss_fn, params, windows[only], labels[only], **options
                )
                found = attacks.invert_gradient(
                    start_key, loss_fn, params, sent, windows.shape[1:], (classes,)
                )
                alike.append(abs(attacks.correlation(windows[victim], found.window)))
                distances.append(found.distance)
                # Classifiers flatten a window channel by channel.
                flat = attacks.dense_input(sent, windows[victim].size)
                if flat is not None:
                    whole = windows[victim].T.ravel()
                    direct.append(abs(attacks.correlation(whole, flat)))
            figures = {"correlation": alike, "distance": distances}
            figures = {name: float(np.mean(x)) for name, x in figures.items()}
            by_run.append(row("the window", "gradient inversion", variant, **figures))
            if direct:
                figures = {"correlation": float(np.mean(direct))}
                by_run.append(
                    row("the window", "first dense layer", variant, **figures)
                )
    return rows


def fingerprint(context: EvaluationContext) -> list[list[dict]]:
    """Measures the uniqueness of a subject's models, ``run.choices(key, windows)``."""
    rows, _ = empty(context)
    data = context.evaluations[0].data
    subjects = np.asarray(data.test.labels["subject"])
    attack_keys = keys(context, "fingerprint", ["subject"])
    for by_run, one, key in zip(rows, context.evaluations, attack_keys, strict=True):
        choice_key, draw_key = jax.random.split(key)
        choices = np.asarray(one.run.choices(choice_key, data.test.windows))
        by_user = [choices[subjects == subject] for subject in np.unique(subjects)]
        unique = attacks.uniqueness(draw_key, by_user)
        for size, column in zip(attacks.SIZES, unique.T, strict=True):
            figures = {"uniqueness": float(column.mean()), "std": float(column.std())}
            by_run.append(row("subject", "model choices", f"p = {size}", **figures))
    return rows


def membership(context: EvaluationContext) -> list[list[dict]]:
    """Infers training windows from a generator's samples and losses."""
    rows, _ = empty(context)
    spec, whole, test = context.evaluations[0].data
    attack_keys = keys(context, "membership", [spec.public])
    for by_run, one, key in zip(rows, context.evaluations, attack_keys, strict=True):
        train = _learned(one.run.method, whole)
        kinds = [checks.kinds_of(part, spec.public) for part in (train, test)]
        match_key, made_key, *rest = jax.random.split(key, 4)
        chosen = attacks.match(match_key, kinds[0], kinds[1], MAX_MEMBERS)
        windows = np.concatenate([train.windows[chosen[0]], test.windows[chosen[1]]])
        labels = {
            name: np.concatenate([train.labels[name][chosen[0]], other[chosen[1]]])
            for name, other in test.labels.items()
        }
        wanted = {spec.public: np.resize(labels[spec.public], NUM_SAMPLES)}
        made = one.run.sample(made_key, wanted)
        standard = [datasets_spec.standardise(spec, x) for x in (windows, made)]
        signals = {
            ("nearest synthetic window", f"of {NUM_SAMPLES}"): attacks.nearness(
                *standard
            )
        }
        signals |= _explained(one.run, rest, windows, labels)
        for (source, detail), evidence in signals.items():
            result = attacks.score_membership(*np.split(evidence, 2))
            by_run.append(row("training window", source, detail, **_figures(result)))
    return rows


def _learned(method, train):
    """Training windows without those held out for early stopping."""
    if method.generate is None or method.generate.learned is None:
        return train
    row = {"row": np.arange(len(train.windows))}
    clients = datasets.by_client(train._replace(labels=train.labels | row))
    chosen = np.zeros(len(train.windows), bool)
    chosen[clients.labels["row"][method.generate.learned(clients)]] = True
    return take(train, chosen)


def _explained(run, loss_keys, windows, labels):
    """Evidence from the losses of the trained and of an untrained generator."""
    if run.method.generate is None or run.method.generate.losses is None:
        return {}
    fresh_key, key = loss_keys
    found = run.window_losses(key, windows, labels)
    signals = {("its losses", name): -loss for name, loss in found.items()}
    signals["its losses", "all of these"] = -sum(found.values())
    fresh = dataclasses.replace(run, state=run.method.init(fresh_key))
    untrained = sum(fresh.window_losses(key, windows, labels).values())
    return signals | {("untrained", "all of these"): -untrained}


def _figures(result):
    low, high = result.interval
    rates = result.true_positives.items()
    found_at = {f"found at {100 * rate:g} %": share for rate, share in rates}
    return {"AUC": result.auc, "from": low, "to": high, **found_at}
