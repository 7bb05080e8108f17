"""Audits: lower bounds stay below the accounted ε, and broken noise is detected."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.attacks import auditing
from jaxanon.federated import PoissonSampling, RoundConfig, Steps
from jaxanon.federated.engine import local
from jaxanon.federated.engine.personal import Reply, personal, replace_params
from jaxanon.privacy import epsilon_spent, noise_multiplier_of_layers

DELTA, RUNS = 1e-3, 10_000
EVERY = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=4.0, max_examples=2
)
SOME = PoissonSampling(
    sampling_probability=0.4, expected_batch_size=1.0, max_examples=2
)


def loss_fn(params, x, key):
    """Linear loss, so an example's gradient is constant."""
    return x * (params["a"].sum() + params["b"].sum())


def init_fn(key):
    return {"a": jnp.ones(2), "b": jnp.ones(1)}


def population():
    """Returns one clipped example among several with zero gradient."""
    return federated.stack([jnp.array([0.0, 9.0]), jnp.zeros(2)])


def fedsgd_ldp(lots, num_steps):
    return federated.fedsgd_ldp(
        init_fn,
        loss_fn,
        lots=lots,
        steps=federated.Steps(num_steps=num_steps),
        num_clients=2,
    )


def atlas(lots, num_steps, **options):
    steps = Steps(num_steps=num_steps)
    return federated.atlas(
        init_fn, loss_fn, steps=steps, lots=lots, num_clients=2, **options
    )


def found(algorithm, num_rounds, messages="params", view="each", runs=RUNS, **hyper):
    """Returns a lower bound of ε for the second row of the first client."""
    state = algorithm.init(jax.random.key(0), **hyper)
    see = auditing.observer(
        algorithm,
        loss_fn,
        state,
        population(),
        client=0,
        rows=[1],
        num_rounds=num_rounds,
        messages=messages,
        view=view,
    )
    told = auditing.audit(jax.random.key(1), see, 1, runs, delta=DELTA, spread="pooled")
    return told["updates"].epsilon


@functools.cache
def accounted(multiplier=1.0, lots=EVERY, steps=1):
    release = federated.sampled_gaussian(lots, multiplier, steps)
    return epsilon_spent([release], DELTA)


@pytest.mark.slow
@pytest.mark.parametrize(
    "num_steps, num_rounds, multiplier", [(1, 1, 1.0), (2, 2, 2.0)]
)
def test_what_fedsgd_ldp_loses_is_accounted_for(num_steps, num_rounds, multiplier):
    algorithm = fedsgd_ldp(EVERY, num_steps)
    told = found(algorithm, num_rounds, noise_multiplier=multiplier)
    spent = accounted(multiplier, EVERY, num_steps * num_rounds)
    assert 0.5 * spent < told <= spent


def test_samples_hide_what_they_are_said_to():
    """Three rounds of two steps, which include each row with probability 0.4."""
    told = found(fedsgd_ldp(SOME, 2), 3, noise_multiplier=1.0)
    assert 0.3 * accounted(1.0, SOME, 6) < told <= accounted(1.0, SOME, 6)
    # Less is lost than without sampling, where the bound is nearly tight.
    assert told < 0.6 * accounted(1.0, EVERY, 6)


WATCHED = {"messages": "layers", "mask_learning_rate": 0.5, "threshold": 0.58}


@pytest.mark.parametrize("reading", ["rescaled", "A", "B"])
def test_what_atlas_loses_is_accounted_for(reading):
    """The observer also sees the layers sent."""
    told = found(atlas(EVERY, 1, noise_interpretation=reading), 1, **WATCHED)
    worth = 1.0
    if reading == "B":  # More private than claimed: scores are 0.6.
        even = [2**0.5] * 2
        worth = noise_multiplier_of_layers(even, [0.6] * 2, reading="B")
    assert 0.4 * accounted(worth) < told <= accounted(worth) <= accounted()


def test_masks_that_learn_are_accounted_for():
    """Three rounds of two steps on samples; scores come from noisy gradients."""
    told = found(atlas(SOME, 2), 3, **WATCHED)
    assert 0.2 * accounted(1.0, SOME, 6) < told <= accounted(1.0, SOME, 6)


def test_the_noise_of_reading_c_is_less_than_it_claims():
    hyper = {"noise_multiplier": 2.0, "first_score": 0.3, "threshold": 0.2}
    told = found(atlas(EVERY, 1, noise_interpretation="C"), 1, "layers", **hyper)
    even = [2 * 2**0.5] * 2
    true = noise_multiplier_of_layers(even, [0.3] * 2, reading="C")
    assert 2 * accounted(2.0) < told <= accounted(true)


def test_published_scores_tell_by_the_layers_that_are_sent():
    """One example moves the score from 0.6 to below 0.58; noise may not."""
    hyper = {"noise_multiplier": 4.0, "mask_learning_rate": 8.0, "threshold": 0.58}
    told = {
        scores: found(atlas(EVERY, 1, scores=scores), 1, "layers", **hyper)
        for scores in ("privatised", "published")
    }
    assert told["privatised"] <= accounted(4.0)
    assert told["published"] > 2 * accounted(4.0)


@pytest.mark.parametrize("multiplier", [0.0, 1.0 / EVERY.expected_batch_size])
def test_no_noise_and_noise_of_the_mean_are_caught(multiplier):
    """The sum's noise, divided by the batch size once too often, or no noise."""
    told = found(fedsgd_ldp(EVERY, 1), 1, noise_multiplier=multiplier, runs=4_000)
    assert told > 1.5 * accounted(1.0)


def test_samples_that_are_not_drawn_are_caught():
    """Every row is in every batch, where the accountant assumes one in ten."""
    claimed = PoissonSampling(
        sampling_probability=0.1, expected_batch_size=4.0, max_examples=2
    )
    assert found(fedsgd_ldp(EVERY, 1), 3) > 1.5 * accounted(1.0, claimed, 3)


def test_a_client_that_clips_its_mean_and_not_its_examples_is_caught():
    def client(client):
        _, grads = local.gradient(
            loss_fn, client.key, client.params, client.rows, client.mask
        )
        leaves, treedef = jax.tree.flatten(grads)
        norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in leaves))
        keys = jax.random.split(jax.random.fold_in(client.key, 1), len(leaves))
        size = EVERY.expected_batch_size
        sent = [
            leaf / jnp.maximum(norm, 1.0) + jax.random.normal(k, leaf.shape) / size
            for k, leaf in zip(keys, leaves, strict=True)
        ]
        after = jax.tree.map(jnp.subtract, client.params, treedef.unflatten(sent))
        return Reply(after, None, {})

    broken = personal(
        lambda key: (init_fn(key), None, None),
        client,
        replace_params,
        lambda client: client.params,
        num_clients=2,
        hyper={},
        rounds=RoundConfig(weighting="clients"),
    )
    assert found(broken, 1, runs=4_000) > accounted(1.0)


def test_the_mean_of_two_clients_tells_less():
    algorithm = fedsgd_ldp(EVERY, 1)
    told = found(algorithm, 1, view="mean", noise_multiplier=1.0)
    # 1/2 of the example against 1/√2 of the noise.
    assert 0.5 * accounted(2**0.5) < told <= accounted(2**0.5)
    assert found(algorithm, 1, runs=40_000) > accounted(2**0.5)


def test_fedavg_tells_all_by_its_updates_and_by_its_models_outputs():
    """Without noise and with full batches, nothing hides the example."""
    apply_fn = lambda params, x: x @ params["w"]

    def loss(params, batch, key):
        odds = jax.nn.log_softmax(apply_fn(params, batch["x"]))
        return -jnp.take_along_axis(odds, batch["y"][:, None], axis=1)[:, 0]

    algorithm = federated.fedavg(
        lambda key: {"w": jnp.zeros((3, 2))}, loss, steps=federated.Steps(num_steps=3)
    )
    x = jax.random.normal(jax.random.key(5), (6, 3))
    y = jnp.array([0, 1, 0, 1, 0, 1])
    see = auditing.observer(
        algorithm,
        loss,
        algorithm.init(jax.random.key(0), learning_rate=1.0),
        federated.stack([{"x": x, "y": y}]),
        client=0,
        rows=[0, 3],
        num_rounds=2,
        messages="moves",
        apply_fn=apply_fn,
    )
    told = auditing.audit(jax.random.key(1), see, 2, 300, delta=1e-3, chunk=250)
    assert told["updates"].auc == told["outputs"].auc == 1.0
    assert told["updates"].evidence.shape == (2, 150, 2)
    # The maximum that 150 runs of two examples on each side can prove.
    most = 0.025 ** (1 / 300)
    want = np.log((most - 1e-3) / (1 - most))
    assert told["updates"].epsilon == pytest.approx(want, rel=1e-3)


def test_a_mean_of_layers_is_that_of_those_who_sent_them():
    before = {"w": jnp.zeros(2), "v": jnp.ones(2)}
    # One of four clients sent w, and none sent v.
    message = {"w": jnp.array([1.0, 2.0]), "v": jnp.zeros(2)}, {"w": 0.25, "v": 0.0}
    params, _ = auditing.MESSAGES["layers"](before, message)
    assert params["w"].tolist() == [4.0, 8.0] and params["v"].tolist() == [1.0, 1.0]


def test_says_what_was_wrong():
    algorithm = fedsgd_ldp(EVERY, 1)
    see = lambda **options: auditing.observer(
        algorithm,
        loss_fn,
        algorithm.init(jax.random.key(0)),
        population(),
        **{"client": 0, "rows": [1], "num_rounds": 1} | options,
    )
    with pytest.raises(ValueError, match=r"messages must be one of \['layers', 'moves"):
        see(messages="mail")
    with pytest.raises(ValueError, match=r"view must be one of \('each', 'mean'\)"):
        see(view="all")
    # JAX would silently use the last row.
    for rows in ([99], [-1]):
        with pytest.raises(ValueError, match=rf"client 0 has no rows \{rows}; choose"):
            see(rows=rows)
    with pytest.raises(ValueError, match=r"client must be in \[0, 2\), got 2"):
        see(client=2)
    clients = federated.stack([jnp.zeros(3), jnp.zeros(1)])
    with pytest.raises(ValueError, match=r"client 1 has no rows \[2\]; choose"):
        auditing.observer(
            algorithm, loss_fn, None, clients, client=1, rows=[0, 2], num_rounds=1
        )
