"""Gradient inversion of the message of a client that has one window."""

import dp_accounting
import jax
import jax.numpy as jnp
import numpy as np

import jaxanon as ja
from jaxanon import attacks, federated
from jaxanon.attacks.auditing import MESSAGES
from jaxanon.federated import PoissonSampling, Steps

DELTA, STEP_SIZE, HIDDEN = 1e-3, 0.1, 48
ALONE = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=1.0, max_examples=1
)
VICTIMS = 4
# Learner and noise multiplier; None disables clipping and noise.
SETTINGS = (
    ("FedAvg", None),
    ("FedSGD-LDP", 0.0),
    ("FedSGD-LDP", 0.01),
    ("FedSGD-LDP", 0.05),
    ("FedSGD-LDP", 0.5),
    ("Atlas", 0.0),
    ("Atlas", 0.01),
    ("Atlas", 0.05),
    ("Atlas", 0.5),
)


def rows(dataset, smoke, runs):
    """Returns a row per learner and noise multiplier, averaged over victims."""
    del runs
    data = ja.load(dataset, private=["subject"])
    spec, count = data.spec, 1 if smoke else VICTIMS
    windows = (data.test.windows - np.float32(spec.mean)) / np.float32(spec.std)
    chosen = moving(windows, count)
    windows = windows[chosen]
    classes = spec.num_classes(spec.public)
    labels = jax.nn.one_hot(data.test.labels[spec.public][chosen], classes)
    start = begin(windows[0].size, classes)
    for learner, multiplier in SETTINGS[1:2] if smoke else SETTINGS:
        alike, ratios, shown = [], [], None
        for victim, (window, label) in enumerate(zip(windows, labels, strict=True)):
            key = jax.random.fold_in(jax.random.key(3), victim)
            gradient = message(learner, multiplier, start, key, window, label)
            found = attacks.invert_gradient(
                key,
                loss_of_one,
                start,
                gradient,
                window.shape,
                label.shape,
                steps=20 if smoke else 200,
                restarts=1 if smoke else 2,
            )
            alike.append(abs(float(attacks.correlation(window, found.window))))
            # Error that remains with the best scale and offset.
            ratios.append(-10 * np.log10(max(1 - alike[-1] ** 2, 1e-9)))
            if victim == 0:
                shown = window, rescaled(window, found.window)
        epsilon = None
        if multiplier:
            epsilon = dp_accounting.get_epsilon_gaussian(multiplier, DELTA)
        yield {
            "dataset": dataset,
            "learner": learner,
            "noise_multiplier": multiplier,
            "claimed": epsilon,
            "delta": DELTA,
            "victims": count,
            "correlation": float(np.mean(alike)),
            "snr_db": float(np.median(ratios)),
            **shown_of(*shown),
        }


def moving(windows, count):
    """Returns ``count`` windows, evenly spaced, of the half with the most motion."""
    moves = windows.std(axis=1).mean(axis=-1)
    places = np.flatnonzero(moves >= np.median(moves))
    return places[np.linspace(0, len(places) - 1, count + 2).round().astype(int)[1:-1]]


def shown_of(window, rebuilt):
    """Returns the channel of a window with the largest variance, for the figure."""
    channel = window.std(axis=0).argmax()
    sides = {"window": window, "rebuilt": rebuilt}
    return {name: np.round(x[:, channel], 3).tolist() for name, x in sides.items()}


def rescaled(window, found):
    """Returns the reconstruction with the scale, sign and offset that fit best."""
    slope, offset = np.polyfit(np.ravel(found), np.ravel(window), 1)
    return slope * np.asarray(found) + offset


def begin(inputs, classes):
    """Returns a twice differentiable network, which deep leakage requires."""
    keys = jax.random.split(jax.random.key(0))
    return {
        "first": {
            "kernel": jax.random.normal(keys[0], (inputs, HIDDEN)) / inputs**0.5,
            "bias": jnp.zeros(HIDDEN),
        },
        "last": {
            "kernel": jax.random.normal(keys[1], (HIDDEN, classes)) / HIDDEN**0.5,
            "bias": jnp.zeros(classes),
        },
    }


def logits(params, x):
    """Returns logits: ``float[B, time, channels] -> float[B, classes]``."""
    x = x.reshape(len(x), -1)
    x = jnp.tanh(x @ params["first"]["kernel"] + params["first"]["bias"])
    return x @ params["last"]["kernel"] + params["last"]["bias"]


def loss_of_one(params, window, label):
    """Returns the cross-entropy of one window."""
    return -jnp.sum(label * jax.nn.log_softmax(logits(params, window[None])[0]))


def loss_fn(params, batch, key):
    """Returns the mean cross-entropy of a batch, as clients compute it."""
    del key
    return jax.vmap(loss_of_one, in_axes=(None, 0, 0))(params, batch["x"], batch["y"])


def message(learner, multiplier, start, key, window, label):
    """Returns the gradient that the server recovers from the client's message."""
    init = lambda key: jax.tree.map(jnp.copy, start)
    own = {"num_clients": 1}
    hyper = {"learning_rate": STEP_SIZE, "noise_multiplier": multiplier}
    if learner == "FedAvg":
        algorithm = federated.fedavg(init, loss_fn, steps=federated.Steps(num_steps=1))
        hyper, kind = {"learning_rate": STEP_SIZE}, "moves"
    elif learner == "FedSGD-LDP":
        algorithm = federated.fedsgd_ldp(
            init, loss_fn, lots=ALONE, steps=federated.Steps(num_steps=1), **own
        )
        kind = "params"
    else:
        algorithm = federated.atlas(
            init, loss_fn, steps=Steps(num_steps=1), lots=ALONE, **own
        )
        kind = "layers"
    clients = federated.stack([{"x": window[None], "y": np.asarray(label)[None]}])
    state = algorithm.init(jax.random.key(0), **hyper)
    _, seen = federated.simulate_observed(algorithm, key, state, clients, 1, 0)
    before, sent = jax.tree.map(lambda leaf: leaf[0], (seen.before, seen.message))
    after, _ = MESSAGES[kind](before, sent)
    return jax.tree.map(lambda old, new: (old - new) / STEP_SIZE, before, after)
