"""Atlas's noise: its scale and the privacy that it buys."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optimized import optimized
from scipy import stats

from jaxanon import federated
from jaxanon.federated import PoissonSampling, Steps
from jaxanon.federated.private.atlas_noise import READINGS, layer_multipliers
from jaxanon.privacy import SampledGaussian, epsilon_spent, noise_multiplier_of_layers

SCORES = {"a": 0.9, "b": 0.5, "c": 0.7, "d": 0.3}
ZERO = jnp.zeros(())


@pytest.mark.parametrize("reading", READINGS)
def test_noise_of_the_readings_and_what_it_is_worth(reading):
    """z* measured as the effect of one example on each layer over its noise."""
    scores = {name: jnp.float32(x) for name, x in SCORES.items()}
    told = layer_multipliers(1.0, scores, reading)
    even = {"rescaled": None, "A": 2.0, "B": 2.0}.get(reading)
    values = [float(told[name]) for name in "abcd"]
    if even:
        assert values == [even] * 4
    as_read = {"rescaled": "A", "C": "A"}.get(reading, reading)
    worth = noise_multiplier_of_layers(values, [*SCORES.values()], reading=as_read)
    want = {"rescaled": 1.0, "A": 1.0, "B": 1.5617, "C": 0.4664}[reading]
    assert worth == pytest.approx(want, abs=1e-4)
    if reading in ("C", "rescaled"):
        ratios = np.divide(values, [*SCORES.values()])
        np.testing.assert_allclose(ratios, values[0] / 0.9)


EVERY = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=1.0, max_examples=1
)


def stepped(reading, gradient, noise_multiplier, scores="public", draws=20_000):
    """Returns the layers after one step of length 1 under a common gradient."""
    loss = lambda p, x, key: gradient * x * sum(p.values())
    algorithm = federated.atlas(
        lambda key: dict.fromkeys("abcd", ZERO),
        loss,
        steps=Steps(num_steps=1),
        num_clients=1,
        lots=EVERY,
        noise_interpretation=reading,
        scores=scores,
        public_scores=SCORES if scores == "public" else None,
        send_every_layer=True,
    )
    hyper = {
        "learning_rate": 1.0,
        "noise_multiplier": noise_multiplier,
        "threshold": 0.0,
    }
    state = algorithm.init(jax.random.key(0), **hyper, clip_norm=4.0)
    clients = federated.stack([jnp.ones(1)])
    move = lambda key: algorithm.update(key, state, clients)[0].params
    keys = jax.random.split(jax.random.key(1), draws)
    return {n: np.asarray(x) for n, x in optimized(jax.vmap(move))(keys).items()}


@pytest.mark.parametrize("reading", READINGS)
def test_one_step_moves_and_is_noisy_as_it_is_read(reading):
    """Each layer is clipped to 4 / √4 = 2; A and B move by the score of that."""
    found = stepped(reading, 9.0, 0.5)
    multipliers = layer_multipliers(
        0.5, {name: jnp.float32(x) for name, x in SCORES.items()}, reading
    )
    for name, score in SCORES.items():
        factor = score if reading in ("A", "B") else 1.0
        spread = 2.0 * float(multipliers[name]) * (score if reading == "A" else 1.0)
        assert found[name].std() == pytest.approx(spread, rel=0.03)
        error = spread / len(found[name]) ** 0.5
        assert found[name].mean() == pytest.approx(-2.0 * factor, abs=5 * error)


def most_told(reading):
    """Returns a lower bound of ε at δ = 1e-3 for a client's message, with or without a
    row.

    Uses thresholds on the sum of layers over their variances, and Clopper-Pearson
    intervals at 1e-4.
    """
    sides = [stepped(reading, row, 1.0, draws=100_000) for row in (-9.0, 0.0)]
    weights = {name: 1 / sides[1][name].var() for name in SCORES}
    seen = [sum(weights[n] * side[n] for n in SCORES) for side in sides]
    draws, told = len(seen[0]), 0.0
    for threshold in np.quantile(seen[1], np.linspace(0.5, 0.9999, 80)):
        hit, false = (int(np.sum(side > threshold)) for side in seen)
        low = stats.beta.ppf(1e-4, hit, draws - hit + 1)
        high = stats.beta.ppf(1 - 1e-4, false + 1, max(draws - false, 1e-9))
        if low > 1e-3:
            told = max(told, math.log((low - 1e-3) / high))
    return told


def test_the_published_accounting_claims_too_much_and_the_rescaled_noise_keeps_it():
    claimed = epsilon_spent([SampledGaussian(noise_multiplier=1.0)], 1e-3)
    assert 0.5 * claimed < most_told("rescaled") <= claimed
    assert most_told("C") > 1.2 * claimed


def test_the_least_of_z_is_that_of_all_steps():
    """Scores before each of nine steps, by hand; absent clients keep theirs.

    Noise moves scores both ways, so the last scores are not the smallest.
    """
    algorithm = federated.atlas(
        lambda key: {"a": jnp.ones(3), "b": jnp.ones(2)},
        lambda p, x, key: x * (p["a"].sum() + p["b"].sum()),
        steps=Steps(num_steps=1),
        num_clients=2,
        lots=EVERY,
        noise_interpretation="C",
        send_every_layer=True,
    )
    state = algorithm.init(
        jax.random.key(0),
        noise_multiplier=3.0,
        mask_learning_rate=2.0,
        first_score=0.75,
    )
    clients = federated.stack([jnp.ones(1), jnp.ones(1)])
    clients = clients._replace(mask=clients.mask.at[1].set(False))
    shares, update = [], jax.jit(algorithm.update)
    for _ in range(9):
        own = jax.tree.map(np.asarray, state.own.masks)
        masks = jax.tree.map(lambda leaf: leaf[0] + math.log(3.0), own)
        scores = [float((1 / (1 + np.exp(-leaf))).mean()) for leaf in masks.values()]
        claimed = layer_multipliers(1.0, {"a": 1.0, "b": 1.0}, "C")["a"]
        shares.append(noise_multiplier_of_layers([claimed] * 2, scores, reading="C"))
        state, _ = update(jax.random.key(2), state, clients)
    assert min(shares) < min(shares[0], shares[-1])
    assert state.own.least.tolist() == pytest.approx([min(shares), 1.0], rel=1e-5)


def test_masks_see_the_noise_unless_they_are_as_published():
    """Weights are 1: a mask's gradient is the weight's times the sigmoid's slope."""
    told, clients = {}, federated.stack([jnp.ones(1)])
    for scores in ("privatised", "published"):
        algorithm = federated.atlas(
            lambda key: {"a": jnp.ones(()), "b": jnp.ones(())},
            lambda p, x, key: x * (p["a"] + p["b"]),
            steps=Steps(num_steps=1),
            num_clients=1,
            lots=EVERY,
            scores=scores,
        )
        state = algorithm.init(jax.random.key(0), clip_norm=1.0, first_score=0.75)
        move = lambda key, a=algorithm, s=state, c=clients: (
            a.update(key, s, c)[0].own.masks
        )
        keys = jax.random.split(jax.random.key(1), 2_000)
        told[scores] = np.asarray(jax.jit(jax.vmap(move))(keys)["a"])
    assert told["published"].std() < 1e-6
    slope = 0.1 * 0.75 * 0.25
    assert told["published"][0] == pytest.approx(-slope / 2**0.5, rel=1e-4)
    assert told["privatised"].std() == pytest.approx(slope, rel=0.06)
