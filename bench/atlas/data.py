"""Subsets of clients or windows, clients that join later, and local fine-tuning."""

import dataclasses

import jax
import numpy as np

from atlas import applications
from jaxanon.datasets import Data
from jaxanon.datasets.spec import take
from jaxanon.datasets.splits import draw_test_subjects
from jaxanon.datasets.targets import moments
from jaxanon.evaluation import federated, newcomers
from jaxanon.federated import Steps
from jaxanon.federated.engine import local as engine_local
from jaxanon.learners.learner import loss_of


def some(data: Data, count: int, seed: int) -> Data:
    """Returns the windows of ``count`` random people as a data set."""
    people = np.unique(data.train.labels["subject"])
    if count >= len(people):
        return data
    drawn = np.random.default_rng(seed).permutation(people)[:count]
    return of_people(data, np.sort(drawn))


def of_people(data: Data, people: np.ndarray) -> Data:
    """Returns the windows of the given people as a data set without other people."""

    def side(windows):
        kept = take(windows, np.isin(windows.labels["subject"], people))
        subject = np.searchsorted(people, kept.labels["subject"]).astype(np.int32)
        return kept._replace(labels=kept.labels | {"subject": subject})

    train, test = side(data.train), side(data.test)
    names = [data.spec.classes["subject"][one] for one in people]
    targets = {}
    for name, target in data.spec.targets.items():
        mean, std = moments(train.labels[name])
        targets[name] = dataclasses.replace(target, mean=mean, std=std)
    spec = dataclasses.replace(
        data.spec,
        classes=data.spec.classes | {"subject": tuple(names)},
        mean=tuple(train.windows.mean(axis=(0, 1), dtype=np.float64).tolist()),
        std=tuple(train.windows.std(axis=(0, 1), dtype=np.float64).tolist()),
        targets=targets,
    )
    return Data(spec, train, test)


def joining(
    bench, entry, data: Data, seed: int, learning_rate: float, more: dict
) -> dict:
    """Returns scores of clients that join after training, joined and alone.

    Three in ten clients join later. They train on their own windows from the shared
    model or from scratch, for the same number of rounds, and send nothing.
    """
    everybody = np.unique(data.train.labels["subject"])
    new = draw_test_subjects(everybody, 0.3, seed)
    others = of_people(data, np.setdiff1d(everybody, new))
    fresh = of_people(data, new)
    rounds = max(1, bench.rounds() // 3)
    joined = _joined(bench, entry, others, fresh, seed, learning_rate, more, rounds)
    local = applications.ENTRIES["localized"]
    own_size = bench.learning_rate(local)
    options = {"epochs": 1}  # Training of other clients has no effect here.
    alone = _joined(bench, local, others, fresh, seed, own_size, {}, rounds, **options)
    return {
        "value": float(np.mean(joined)),
        "spread": float(np.std(joined)),
        "joined": joined,
        "alone": alone,
        "rounds_alone": rounds,
    }


def number_of_first(data) -> int:
    """Returns the number of clients that train before others join."""
    everybody = np.unique(data.train.labels["subject"])
    return len(everybody) - len(draw_test_subjects(everybody, 0.3, 0))


def _joined(bench, entry, others, fresh, seed, learning_rate, more, rounds, **options):
    run = bench.train(entry, others, seed, learning_rate, more, **options)
    report = federated.evaluate(newcomers.join(run, fresh, num_rounds=rounds), fresh)
    return [row[bench.application.metric] for row in report["clients"]]


def fifth_apart(data):
    """Splits training windows: the last fifth per client and class is for testing.

    For a continuous attribute, it is the last fifth of each client's windows.
    """
    labels = data.train.labels
    groups = labels["subject"].astype(np.int64)
    if data.spec.public in data.spec.classes:
        groups = groups * 1000 + labels[data.spec.public]
    later = np.zeros(len(groups), bool)
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        later[own[len(own) * 4 // 5 :]] = True
    return data._replace(train=take(data.train, ~later), test=take(data.train, later))


def fitted(run, num_steps: int, learning_rate: float):
    """Returns the run with local fine-tuning of each client before it predicts.

    Batches are as large as in training and each client starts from the model that it
    would predict with. Clients send nothing and spend no privacy budget.

    Args:
      run: ``jaxanon.Run`` of a learner without a folder.
      num_steps: number of steps, at least 1.
      learning_rate: learning rate of these steps.
    """
    learner = run.method
    steps = Steps(num_steps=num_steps, batch_size=learner.config.batch_size)
    loss_fn = loss_of(learner.predict.network, learner.spec)

    def model(key, state, data, client):
        model_key, fit_key = jax.random.split(key)
        layers = learner.predict.model(model_key, state, data, client)
        rows = jax.tree.map(lambda leaf: leaf[client], data.rows)
        return engine_local.local_sgd(
            loss_fn,
            *(fit_key, layers, rows, data.mask[client]),
            learning_rate=learning_rate,
            num_steps=steps.num_steps,
            batch_size=steps.batch_size,
        )[0]

    predict = learner.predict._replace(model=model)
    return dataclasses.replace(run, method=learner._replace(predict=predict))
