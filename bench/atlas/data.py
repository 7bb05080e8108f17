"""Data of fewer people or windows, people who join later, and a last fit."""

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
    """The windows of so many people, drawn by ``seed``, as a data set of their own."""
    people = np.unique(data.train.labels["subject"])
    if count >= len(people):
        return data
    drawn = np.random.default_rng(seed).permutation(people)[:count]
    return of_people(data, np.sort(drawn))


def of_people(data: Data, people: np.ndarray) -> Data:
    """The windows of some people, who are all the people of the new data set."""

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
    """What people get who join when the others have trained, and what they get alone.

    Three in ten are newcomers. They fit to their own training windows for as many
    rounds as alone, from what is shared or from scratch, and send nothing.
    """
    everybody = np.unique(data.train.labels["subject"])
    new = draw_test_subjects(everybody, 0.3, seed)
    others = of_people(data, np.setdiff1d(everybody, new))
    fresh = of_people(data, new)
    rounds = max(1, bench.rounds() // 3)
    joined = _joined(bench, entry, others, fresh, seed, learning_rate, more, rounds)
    local = applications.ENTRIES["localized"]
    own_size = bench.learning_rate(local)
    options = {"epochs": 1}  # Nothing of it is anybody's but theirs.
    alone = _joined(bench, local, others, fresh, seed, own_size, {}, rounds, **options)
    return {
        "value": float(np.mean(joined)),
        "spread": float(np.std(joined)),
        "joined": joined,
        "alone": alone,
        "rounds_alone": rounds,
    }


def number_of_first(data) -> int:
    """How many train before others join."""
    everybody = np.unique(data.train.labels["subject"])
    return len(everybody) - len(draw_test_subjects(everybody, 0.3, 0))


def _joined(bench, entry, others, fresh, seed, learning_rate, more, rounds, **options):
    run = bench.train(entry, others, seed, learning_rate, more, **options)
    report = federated.evaluate(newcomers.join(run, fresh, num_rounds=rounds), fresh)
    return [row[bench.application.metric] for row in report["clients"]]


def fifth_apart(data):
    """Training windows alone: the last fifth of each client's class is the test side.

    Of a continuous attribute, the last fifth of each client's windows.
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
    """The run, whose clients predict after so many steps on their own windows.

    Batches are as large as in training; whatever a client would have predicted with is
    where it begins. Nothing is sent, and no budget spent.

    Args:
      run: ``jaxanon.Run`` of a learner, kept in no folder.
      num_steps: at least 1.
      learning_rate: of them.
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
