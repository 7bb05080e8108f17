"""Audits of clients and scores: lower bounds stay below the accounted ε."""

import jax
import jax.numpy as jnp
import pytest

from jaxanon import federated
from jaxanon.attacks import auditing
from jaxanon.federated import PoissonSampling, Steps
from jaxanon.privacy import SampledGaussian, epsilon_spent, responses_spent

pytestmark = pytest.mark.slow

DELTA, ONE = 1e-3, Steps(num_steps=1)
EVERY = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=2.0, max_examples=2
)


def loss_fn(params, x, key):
    return x * (params["a"].sum() + params["b"].sum())


def init_fn(key):
    return {"a": jnp.ones(2), "b": jnp.ones(1)}


def opposite():
    """Returns a client whose rows pull all weights in one direction."""
    return [federated.stack([jnp.array([x])]) for x in (-9.0, 9.0)]


def seen(algorithm, worlds, sees, num_rounds=1, runs=20_000, **hyper):
    """Returns one run's observation, and the ε that many runs prove."""
    state = algorithm.init(jax.random.key(0), learning_rate=1.0, **hyper)
    see = auditing.client_observer(
        algorithm, state, worlds, num_rounds=num_rounds, sees=sees
    )
    once = jax.eval_shape(see, jax.random.key(2), 0, True)["seen"]
    # For responses the loss equals the accounted ε, and one bound in 20 exceeds it.
    options = {"delta": DELTA, "spread": "pooled", "confidence": 0.9999}
    told = auditing.audit(jax.random.key(1), see, 1, runs, **options)
    return once, told["seen"].epsilon


def spent(*multipliers):
    each = [SampledGaussian(noise_multiplier=z) for z in multipliers]
    return epsilon_spent(each, DELTA)


def test_a_client_of_atlas_loses_what_half_its_multiplier_is_worth():
    """The loss exceeds that of the whole multiplier at one clip norm apart."""
    algorithm = federated.atlas(
        init_fn, loss_fn, steps=ONE, num_clients=1, privacy_unit="client"
    )
    hyper = {"noise_multiplier": 1.0, "mask_learning_rate": 0.0}
    once, counted = seen(algorithm, opposite(), "layers", **hyper)
    assert once.shape == (4,)  # Two layers, and two flags of sent layers.
    assert spent(1.0) < counted < spent(0.5)


def test_released_scores_are_seen_and_count():
    """Almost noiseless scores reveal what the noise on updates hides."""
    algorithm = federated.atlas(
        init_fn,
        loss_fn,
        steps=ONE,
        num_clients=1,
        privacy_unit="client",
        scores="released",
    )
    hyper = {"noise_multiplier": 8.0, "mask_learning_rate": 0.5, "threshold": 0.3}
    worlds, claimed = opposite(), spent(4.0, 2.0)
    once, kept = seen(algorithm, worlds, "layers", score_multiplier=4.0, **hyper)
    assert once.shape == (6,)  # And two scores.
    _, lost = seen(algorithm, worlds, "layers", score_multiplier=0.1, **hyper)
    assert 0 <= kept <= claimed < lost


def test_every_weight_of_ldp_fl_costs_its_epsilon():
    algorithm = federated.ldp_fl(init_fn, loss_fn, steps=ONE, radii=1.0, num_clients=1)
    once, counted = seen(algorithm, opposite(), "params", weight_epsilon=1.0)
    assert once.shape == (2,)
    assert 2.5 < counted <= responses_spent(1.0, 3, DELTA) <= 3.0


@pytest.mark.parametrize(
    ("noise_multiplier", "count_stddev", "holds"),
    [(1.0, 2.0, True), (0.29, 0.15, False)],
)
def test_counts_of_dp_fedavg_are_released_too(noise_multiplier, count_stddev, holds):
    """Sums have noise of at least their clip norm, and counts have none accounted."""
    algorithm = federated.dp_fedavg(
        init_fn, loss_fn, steps=ONE, cohorts=EVERY, count_stddev=count_stddev
    )
    there = federated.stack([jnp.array([9.0]), jnp.zeros(1)])
    worlds = [there._replace(mask=there.mask.at[0].set(False)), there]
    hyper = {"noise_multiplier": noise_multiplier}
    once, counted = seen(algorithm, worlds, "released", **hyper)
    assert once.shape == (3,)  # Two layers, and the clip norm.
    assert 0.5 < counted and (counted <= spent(1.0)) == holds


def test_says_what_was_wrong():
    algorithm = federated.ldp_fl(init_fn, loss_fn, steps=ONE, radii=1.0, num_clients=1)
    state, worlds = algorithm.init(jax.random.key(0)), opposite()
    with pytest.raises(ValueError, match="sees must be one of .* got 'moves'"):
        auditing.client_observer(algorithm, state, worlds, num_rounds=1, sees="moves")
    with pytest.raises(ValueError, match=r"client must be in \[0, 1\), got 1"):
        auditing.client_observer(algorithm, state, worlds, num_rounds=1, client=1)
