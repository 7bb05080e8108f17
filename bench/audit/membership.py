"""Membership inference against learners on windows of a data set."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import jaxanon as ja
from jaxanon import attacks, datasets, federated, learners, metrics
from jaxanon.attacks import auditing
from jaxanon.learners.learner import loss_of

DELTA = 1e-4
CLIENTS, ROUNDS, EXAMPLES = 3, 3, 8  # Examples per kind.
NETWORK = {
    **{"model": "mlp", "hidden_sizes": (16,), "local_steps": 4, "batch_size": 16},
    "learning_rate": 0.3,
}
# Learner, content of messages, observer, and ε.
NOISY = ("fedsgd_ldp", "params", "each", 8.0)  # Shows noise without learned masks.
SETTINGS = (
    ("fedavg", "moves", "each", None),
    ("fedavg", "moves", "mean", None),
    NOISY,
    ("fedsgd_ldp", "params", "each", 2.0),
    ("atlas", "layers", "each", 0.0),
    ("atlas", "layers", "each", 8.0),
    ("atlas", "layers", "each", 2.0),
)
PRESETS = {"uci_hapt": "mag3"}


def rows(dataset, smoke, runs):
    """Returns rows for two kinds of examples and two statistics per setting."""
    data = few(
        ja.load(dataset, preset=PRESETS.get(dataset), private=["subject"]), smoke
    )
    for name, messages, view, epsilon in [NOISY] if smoke else SETTINGS:
        learner, population, state = begun(name, epsilon, data)
        examples = 2 if smoke else EXAMPLES
        population, chosen = with_canaries(population, data.spec, examples)
        observe = auditing.observer(
            learner.federation.algorithm,
            loss_of(learner.predict.network, data.spec),
            state,
            population,
            client=0,
            rows=chosen,
            num_rounds=ROUNDS,
            messages=messages,
            view=view,
            apply_fn=learner.predict.network.apply,
        )
        count = 4 if smoke else runs
        seen = attacks.shadow(jax.random.key(1), observe, len(chosen), count, chunk=16)
        about = {
            "dataset": dataset,
            "learner": name,
            "view": view,
            "claimed": None
            if not learner.guarantee
            else learner.guarantee.epsilon(ROUNDS),
            "noise_multiplier": getattr(learner.guarantee, "noise_multiplier", 0.0),
            "delta": DELTA,
            "runs": count,
            "accuracy": accuracy(learner, state, data),
        }
        for kind, own in (("own", slice(examples)), ("wrong", slice(examples, None))):
            for statistic, values in seen.items():
                told = attacks.infer_members(
                    values[:, :, own], delta=DELTA, spread="pooled"
                )
                yield about | {"examples": kind, "statistic": statistic} | told_of(told)


def few(data, smoke):
    """Keeps windows of the first people, thinned if they are many."""
    spec, names = data.spec, data.spec.classes["subject"][:CLIENTS]
    spec = dataclasses.replace(spec, classes=spec.classes | {"subject": names})

    def cut(side):
        own = np.flatnonzero(side.labels["subject"] < CLIENTS)[:: 35 if smoke else 1]
        labels = {name: label[own] for name, label in side.labels.items()}
        return datasets.Windows(side.windows[own], labels)

    return type(data)(spec, cut(data.train), cut(data.test))


def begun(name, epsilon, data):
    """Returns a learner, its clients' windows and the initial state."""
    clients = datasets.by_client(data.train)
    budget = {}
    if epsilon is not None:
        records = clients.mask.shape[1]
        budget = {"epsilon": epsilon, "delta": DELTA, "max_rounds": ROUNDS}
        budget |= {"max_examples": records}
    learner = learners.build(name, data.spec, **NETWORK, **budget)
    return learner, learner.prepare(clients), learner.init(jax.random.key(0))


def with_canaries(population, spec, examples):
    """Returns windows of the first client, and as many copies with wrong labels."""
    count = int(population.mask[0].sum())
    chosen = np.linspace(0, count - 1, 2 * examples).round().astype(int)
    chosen = np.concatenate([chosen[::2], chosen[1::2]])
    wrong = chosen[examples:]
    labels = population.rows["y"]
    labels = labels.at[0, wrong].set(
        (labels[0, wrong] + 1) % spec.num_classes(spec.public)
    )
    return population._replace(rows=population.rows | {"y": labels}), chosen


def accuracy(learner, state, data):
    """Returns the accuracy of personal models on test windows after the rounds."""
    population = learner.prepare(datasets.by_client(data.train))
    state = jax.tree.map(jnp.copy, state)  # simulate donates its input.
    key = jax.random.key(2)
    algorithm = federated.FederatedAlgorithm(learner.init, learner.update)
    state, _ = federated.simulate(algorithm, key, state, population, ROUNDS)
    spec, test = data.spec, data.test
    windows = (test.windows - np.float32(spec.mean)) / np.float32(spec.std)
    right = []
    for client in range(CLIENTS):
        params = learner.predict.model(key, state, population, jnp.int32(client))
        own = test.labels["subject"] == client
        said = learner.predict.network.apply(params, windows[own]).argmax(-1)
        right.append(np.asarray(said) == test.labels[spec.public][own])
    return float(np.concatenate(right).mean())


def told_of(told):
    """Returns the fields of a row from ``attacks.Membership``."""
    flat = told.evidence.reshape(-1)
    member = np.repeat([False, True], len(flat) // 2)
    false, true = metrics.roc(member, flat)
    apart = np.stack([np.zeros(len(flat) // 2), np.ones(len(flat) // 2)])
    return {
        "auc": told.auc,
        "true_positives": {str(k): v for k, v in told.true_positives.items()},
        "counted": told.epsilon,
        "provable": metrics.epsilon_lower_bound(apart, apart, DELTA),
        "roc": [[round(float(x), 4) for x in rates] for rates in corners(false, true)],
    }


def corners(false, true):
    """Returns the upper corners of a ROC staircase, thinned towards the end."""
    turns = np.flatnonzero(np.diff(false, append=2.0) > 0)
    turns = turns[np.unique(np.geomspace(1, len(turns), 60).astype(int)) - 1]
    return false[turns], true[turns]
