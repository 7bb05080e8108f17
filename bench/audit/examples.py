"""Example-level noise: ε measured on messages of a model of three numbers."""

import jax
import jax.numpy as jnp

from audit.clients import DELTA, epsilon, loss_fn, start
from jaxanon import federated
from jaxanon.attacks import auditing
from jaxanon.federated import PoissonSampling, Steps
from jaxanon.privacy import noise_multiplier_of_layers

EVERY = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=4.0, max_examples=2
)
SOME = PoissonSampling(
    sampling_probability=0.4, expected_batch_size=4.0, max_examples=2
)
ATLAS = {"threshold": 0.58, "mask_learning_rate": 0.5, "noise_multiplier": 1.0}


def cases():
    """Yields name, algorithm, rounds, hyperparameters, claimed ε, whether it holds."""
    once, often = epsilon(1.0), epsilon(1.0, 6, SOME)
    b = epsilon(noise_multiplier_of_layers([2**0.5] * 2, [0.6] * 2, reading="B"))
    few = {"first_score": 0.3, "threshold": 0.2, "noise_multiplier": 2.0}
    sharp = {"noise_multiplier": 4.0, "mask_learning_rate": 8.0}
    at_four = epsilon(4.0)
    yield "FedSGD-LDP, one step", _sgd(EVERY, 1), 1, {}, once, True
    yield "FedSGD-LDP, samples, 3 rounds of 2", _sgd(SOME, 2), 3, {}, often, True
    yield "Atlas, one step", _atlas(EVERY, 1), 1, {}, once, True
    yield "Atlas, samples, 3 rounds of 2", _atlas(SOME, 2), 3, {}, often, True
    yield (
        "Atlas, reading A",
        _atlas(EVERY, 1, noise_interpretation="A"),
        1,
        {},
        once,
        True,
    )
    yield "Atlas, reading B", _atlas(EVERY, 1, noise_interpretation="B"), 1, {}, b, True
    yield "Atlas, z* of 4", _atlas(EVERY, 1), 1, sharp, at_four, True
    broken = _atlas(EVERY, 1, scores="published")
    yield "Atlas, z* of 4, scores as published", broken, 1, sharp, at_four, False
    two = epsilon(2.0)
    yield (
        "Atlas, reading C, z* of 2",
        _atlas(EVERY, 1, noise_interpretation="C"),
        1,
        few,
        two,
        False,
    )
    quarter = {"noise_multiplier": 1 / EVERY.expected_batch_size}
    yield "FedSGD-LDP, noise of the mean", _sgd(EVERY, 1), 1, quarter, once, False
    claimed = epsilon(
        1.0,
        3,
        PoissonSampling(
            sampling_probability=0.1, expected_batch_size=4.0, max_examples=2
        ),
    )
    yield "FedSGD-LDP, samples not drawn", _sgd(EVERY, 1), 3, {}, claimed, False
    none = {"noise_multiplier": 0.0}
    yield "FedSGD-LDP, no noise", _sgd(EVERY, 1), 1, none, once, False


def atlas(runs):
    """Runs ``found`` on one step of Atlas with noise multiplier 1."""
    return found(_atlas(EVERY, 1), 1, ATLAS, runs)


def found(algorithm, num_rounds, hyper, runs):
    """Runs ``attacks.Membership`` on a clipped example from its messages."""
    state = algorithm.init(jax.random.key(0), **hyper)
    see = auditing.observer(
        algorithm,
        loss_fn,
        state,
        federated.stack([jnp.array([0.0, 9.0])]),
        client=0,
        rows=[1],
        num_rounds=num_rounds,
        messages="layers" if "threshold" in hyper else "params",
    )
    key = jax.random.key(1)
    told = auditing.audit(key, see, 1, runs, delta=DELTA, spread="pooled")
    return told["updates"]


def _sgd(lots, num_steps):
    return federated.fedsgd_ldp(
        start,
        loss_fn,
        lots=lots,
        steps=federated.Steps(num_steps=num_steps),
        num_clients=1,
    )


def _atlas(lots, num_steps, **options):
    steps = Steps(num_steps=num_steps)
    return federated.atlas(
        start, loss_fn, steps=steps, lots=lots, num_clients=1, **options
    )
