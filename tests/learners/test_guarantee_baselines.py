"""Tests of the guarantees of DP-FedAvg (clients) and LDP-FL (single weights)."""

import math

import jax
import numpy as np
import pytest

import jaxanon as ja
from jaxanon import datasets
from jaxanon.privacy import SampledGaussian, epsilon_spent, responses_spent
from jaxanon.training import trainer

WEIGHTS = (16 * 2 * 6 + 6) + (6 * 3 + 3)


def test_dp_fedavg_spends_on_sums_and_counts_together(small):
    learner = small(
        "dp_fedavg", epsilon=6.0, max_rounds=4, client_fraction=0.5, count_fraction=0.25
    )
    found = learner.guarantee
    assert (
        found.holds
        and found.lots.expected_batch_size == 2.5
        and found.most_windows is None
    )
    each = SampledGaussian(
        noise_multiplier=found.noise_multiplier, sampling_probability=0.5, steps=4
    )
    assert 5.9 < epsilon_spent([each], 1e-5) <= found.epsilon(4) <= 6.0
    state = learner.init(jax.random.key(0))
    assert float(state.hyper["noise_multiplier"]) == pytest.approx(
        found.noise_multiplier
    )


@pytest.mark.slow
def test_dp_fedavg_noise_is_what_is_left_beside_the_counts(small, data):
    """Checks the noise of the sum with a learning rate of 1e-30.

    It is z / √(1 - 1/4) clip norms over 5 clients.
    """
    learner = small(
        "dp_fedavg", epsilon=6.0, max_rounds=1, count_fraction=0.25, learning_rate=1e-30
    )
    clients = learner.prepare(datasets.by_client(data.train))
    begun = learner.init(jax.random.key(3))
    after, _ = learner.update(jax.random.key(4), begun, clients)
    moved = jax.tree.map(lambda a, b: np.asarray(a - b), after.params, begun.params)
    noise = np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(moved)])
    want = learner.guarantee.noise_multiplier / math.sqrt(0.75) / 5
    assert noise.std() == pytest.approx(want, rel=4 / math.sqrt(2 * len(noise)))


@pytest.mark.slow
def test_the_page_says_whose_eyes_dp_fedavg_guards_against(trained, data, tmp_path):
    ja.evaluate(trained("dp_fedavg", epochs=3), data, output_dir=tmp_path)
    page = " ".join((tmp_path / "report.html").read_text().split())
    assert "(not the messages it receives) satisfies epsilon 2" in page
    assert "a client with all its windows more or less, after 3 noisy steps" in page


def test_ldp_fl_keeps_a_budget_of_all_weights_in_all_rounds(small):
    found = small("ldp_fl", epsilon=3.0, max_rounds=4).guarantee
    assert found.holds and found.weights == WEIGHTS
    spent = responses_spent(found.weight_epsilon, 4 * WEIGHTS, 1e-5)
    assert 2.99 < spent == found.epsilon(4) <= 3.0 and found.epsilon(0) == 0.0
    state = small("ldp_fl", epsilon=3.0, max_rounds=4).init(jax.random.key(0))
    assert float(state.hyper["weight_epsilon"]) == pytest.approx(found.weight_epsilon)


def test_a_delta_that_allows_to_give_a_client_away_is_warned_of(small):
    with pytest.warns(UserWarning, match="delta"):
        small("ldp_fl", delta=0.5)


@pytest.mark.slow
def test_the_published_claim_is_of_one_weight_and_does_not_hold(
    trained, data, tmp_path
):
    run = trained("ldp_fl", epochs=2, privacy_unit="weight", epsilon=1.0)
    told = ja.evaluate(run, data, output_dir=tmp_path)["privacy"]
    assert told["holds"] is False and told["claimed"] == 1.0
    # An answer with odds e : 1 loses tanh(1/2) on average, and at most 1.
    count = 2 * WEIGHTS
    assert told["steps"] == count
    assert count * math.tanh(0.5) < told["epsilon"] < count
    page = " ".join((tmp_path / "report.html").read_text().split())
    assert "No guarantee: this variant claims epsilon 1, that of one of its" in page
    assert f"after {count} noisy weights" in page


@pytest.mark.parametrize(
    ("name", "rests_on"),
    [("dp_fedavg", "noise_multiplier"), ("ldp_fl", "weight_epsilon")],
)
def test_nobody_takes_the_noise_off_and_keeps_the_claim(name, rests_on, small, data):
    with pytest.raises(ValueError, match=f"{rests_on} follows from epsilon"):
        trainer.train(small(name), data, epochs=1, hyper={rests_on: 1e9})
