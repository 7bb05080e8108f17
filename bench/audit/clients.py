"""Client-level noise and noisy scores: measured and claimed ε."""

import jax
import jax.numpy as jnp

from jaxanon import federated
from jaxanon.attacks import auditing
from jaxanon.federated import PoissonSampling, Steps
from jaxanon.privacy import SampledGaussian, epsilon_spent, responses_spent

DELTA = 1e-3
# Joint confidence of all bounds. LDP-FL spends exactly its accounted ε, so a separate
# bound of 95 % would exceed it once in twenty.
TOGETHER = 0.95
EVERY = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=2.0, max_examples=2
)
SOME = PoissonSampling(
    sampling_probability=0.4, expected_batch_size=1.0, max_examples=2
)
ONE = Steps(num_steps=1)
NOTHING = jnp.zeros(1)


def cases():
    """Yields name, audit, claimed ε, and whether the claim holds."""
    yield "Atlas, of clients, z* of 2", atlas(), epsilon(1.0), True
    twice = atlas(num_rounds=3)
    yield "Atlas, of clients, z* of 2, 3 rounds", twice, epsilon(1.0, 3), True
    yield "Atlas, of clients, z* of 2 as if of one", atlas(), epsilon(2.0), False
    beside = _spent(SampledGaussian(noise_multiplier=z) for z in (1.0, 2.0))
    both = atlas(scores="released", score_multiplier=4.0)
    yield "Atlas, of clients, scores released", both, beside, True
    bare = atlas(scores="released", score_multiplier=0.1)
    yield "Atlas, of clients, scores released bare", bare, beside, False
    hidden = atlas(scores="hidden", max_layers=1)
    yield "Atlas, of clients, scores hidden", hidden, epsilon(1.0), True
    shown = _spent(SampledGaussian(noise_multiplier=z) for z in (1.0, 2.0))
    yield "Atlas, of examples, scores released", _examples(2.0), shown, True
    yield (
        "Atlas, of examples, scores not counted",
        _examples(0.25),
        epsilon(1.0),
        False,
    )
    together = responses_spent(1.0, 3, DELTA)
    yield "LDP-FL, 3 weights of ε 1", ldp_fl(), together, True
    yield "LDP-FL, 3 weights, ε of one", ldp_fl(), 1.0, False
    yield "DP-FedAvg", dp_fedavg(EVERY, 1), epsilon(1.0), True
    sampled = epsilon(1.0, 3, SOME)
    yield "DP-FedAvg, samples, 3 rounds", dp_fedavg(SOME, 3), sampled, True
    loose = dp_fedavg(EVERY, 1, noise_multiplier=0.29, count_stddev=0.15)
    yield "DP-FedAvg, counts not counted", loose, epsilon(1.0), False


def found(given, runs):
    """Runs ``attacks.Membership`` on which of two worlds contains a client."""
    algorithm, worlds, options, hyper = given
    state = algorithm.init(jax.random.key(0), **hyper)
    see = auditing.client_observer(algorithm, state, worlds, **options)
    key = jax.random.key(1)
    each = 1 - (1 - TOGETHER) / sum(1 for _ in cases())
    told = auditing.audit(
        key, see, 1, runs, delta=DELTA, spread="pooled", confidence=each
    )
    return told["seen"]


def loss_fn(params, x, key):
    """Returns x times the sum of all three weights for a row x."""
    return x * (params["a"].sum() + params["b"].sum())


def start(key):
    """Returns a model of three numbers in two layers."""
    return {"a": jnp.ones(2), "b": jnp.ones(1)}


def _opposite():
    """Returns a client whose rows pull all weights in one of two directions."""
    return [federated.stack([jnp.array([x])]) for x in (-9.0, 9.0)]


def _there_or_not():
    """Returns a client with a clipped row, or without it."""
    clients = federated.stack([jnp.array([0.0, 9.0])])
    return [clients._replace(mask=clients.mask.at[0, 1].set(False)), clients]


def atlas(num_rounds=1, score_multiplier=1.0, **settings):
    """A client sends a clipped update in one of two opposite directions."""
    algorithm = federated.atlas(
        start, loss_fn, steps=ONE, num_clients=1, privacy_unit="client", **settings
    )
    hyper = {"learning_rate": 1.0, "mask_learning_rate": 0.5, "noise_multiplier": 2.0}
    hyper |= {"threshold": 0.3, "score_multiplier": score_multiplier}
    options = {"num_rounds": num_rounds, "sees": "layers"}
    return algorithm, _opposite(), options, hyper


def _examples(score_multiplier):
    algorithm = federated.atlas(
        start, loss_fn, steps=ONE, num_clients=1, lots=EVERY, scores="released"
    )
    hyper = {"threshold": 0.3, "score_multiplier": score_multiplier}
    options = {"num_rounds": 1, "sees": "layers"}
    return algorithm, _there_or_not(), options, hyper


def ldp_fl():
    """A client has three weights at the lower or upper end of their range."""
    algorithm = federated.ldp_fl(start, loss_fn, steps=ONE, radii=1.0, num_clients=1)
    hyper = {"learning_rate": 1.0, "weight_epsilon": 1.0}
    return algorithm, _opposite(), {"num_rounds": 1}, hyper


def dp_fedavg(cohorts=EVERY, num_rounds=1, noise_multiplier=1.0, count_stddev=2.0):
    """One of two clients sends a zero update, the other participates or not."""
    algorithm = federated.dp_fedavg(
        start, loss_fn, steps=ONE, cohorts=cohorts, count_stddev=count_stddev
    )
    there = federated.stack([jnp.array([9.0]), NOTHING])
    worlds = [there._replace(mask=there.mask.at[0].set(False)), there]
    hyper = {"learning_rate": 1.0, "noise_multiplier": noise_multiplier}
    return algorithm, worlds, {"num_rounds": num_rounds, "sees": "released"}, hyper


def epsilon(multiplier, steps=1, lots=EVERY):
    """Returns the ε claimed for a number of steps."""
    return _spent([federated.sampled_gaussian(lots, multiplier, steps)])


def _spent(releases):
    return epsilon_spent(list(releases), DELTA)
