"""Atlas's client-level privacy: messages and their guarantee."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon import federated
from jaxanon.federated import Steps
from jaxanon.federated.private.atlas_noise import layer_multipliers
from jaxanon.privacy import SampledGaussian, epsilon_spent

pytestmark = pytest.mark.slow

ZERO = jnp.zeros(())
SCORES = {"a": 0.9, "b": 0.5, "c": 0.7, "d": 0.3}


def scalars(num_clients, gradient=1.0, **more):
    """Returns Atlas of four scalar layers, each with the gradient ``gradient * x``."""
    return federated.atlas(
        lambda key: dict.fromkeys("abcd", ZERO),
        lambda p, x, key: gradient * x * sum(p.values()),
        steps=Steps(num_steps=1),
        num_clients=num_clients,
        **more,
    )


def test_two_clients_updates_by_hand():
    """Moves of 3 and -0.5 per layer, each clipped to 2 / √4, not divided by rows."""
    clients = federated.stack([jnp.array([-3.0, -3.0]), jnp.array([0.5])])
    algorithm = scalars(2, privacy_unit="client")
    hyper = {"learning_rate": 1.0, "clip_norm": 2.0, "noise_multiplier": 0.0}
    state = algorithm.init(jax.random.key(0), **hyper)
    state, _ = jax.jit(algorithm.update)(jax.random.key(1), state, clients)
    for name in "abcd":  # (1 - 0.5) / 2.
        assert float(state.params[name]) == pytest.approx(0.25)
        # The client's own parameters are not clipped.
        np.testing.assert_allclose(state.own.params[name], [3.0, -0.5], rtol=1e-6)


def sent(draws=20_000, row=1.0, noise_multiplier=0.5, **settings):
    """Returns the layers after a round of one client whose moves are all clipped."""
    public = {"scores": "public", "public_scores": SCORES}
    algorithm = scalars(
        1, 9.0, privacy_unit="client", send_every_layer=True, **(public | settings)
    )
    hyper = {
        "learning_rate": 1.0,
        "noise_multiplier": noise_multiplier,
        "threshold": 0.0,
    }
    state = algorithm.init(jax.random.key(0), clip_norm=4.0, **hyper)
    clients = federated.stack([jnp.full(1, row)])
    move = lambda key: algorithm.update(key, state, clients)[0].params
    keys = jax.random.split(jax.random.key(1), draws)
    return {n: np.asarray(x) for n, x in jax.jit(jax.vmap(move))(keys).items()}


@pytest.mark.parametrize("reading", ["rescaled", "B"])
def test_a_clients_noise_is_that_of_its_layers(reading):
    """Clip norms are 4 E_m / ‖E‖.

    Each layer has independent z_m times that as noise.
    """
    found = sent(noise_interpretation=reading, clipping="scores")
    root = np.sqrt(sum(x**2 for x in SCORES.values()))
    scores = {name: jnp.float32(x) for name, x in SCORES.items()}
    multipliers = layer_multipliers(0.5, scores, reading)
    for name, score in SCORES.items():
        norm = 4.0 * score / root
        spread = norm * float(multipliers[name])
        mean = -norm * (score if reading == "B" else 1.0)
        assert found[name].std() == pytest.approx(spread, rel=0.03)
        error = spread / len(found[name]) ** 0.5
        assert found[name].mean() == pytest.approx(mean, abs=5 * error)
    together = np.corrcoef([found[name] for name in SCORES]) - np.eye(4)
    assert np.abs(together).max() < 5 / len(found["a"]) ** 0.5


def test_a_client_is_hidden_among_all_others_at_half_the_multiplier():
    """Updates of 4 and -4 are twice as far apart as one of them and none."""
    sides = [sent(100_000, row, 1.0) for row in (1.0, -1.0)]
    weights = {name: 1 / sides[0][name].var() for name in SCORES}
    high, low = (sum(weights[n] * side[n] for n in SCORES) for side in sides)
    told = 0.0
    for threshold in np.quantile(high, np.linspace(0.5, 0.9999, 80)):
        hit, false = int(np.sum(low > threshold)), int(np.sum(high > threshold))
        least = stats.beta.ppf(1e-4, hit, len(low) - hit + 1)
        most = stats.beta.ppf(1 - 1e-4, false + 1, len(high) - false)
        told = max(told, math.log((least - 1e-3) / most))
    worth = lambda z: epsilon_spent([SampledGaussian(noise_multiplier=z)], 1e-3)
    assert 1.2 * worth(1.0) < told <= worth(0.5)


@pytest.mark.parametrize("scores", ["public", "hidden"])
def test_a_client_remembers_the_least_of_z_that_its_scores_left(scores):
    """With hidden scores there is none, because the noise does not depend on them."""
    public = SCORES if scores == "public" else None
    own = {"privacy_unit": "client", "scores": scores, "public_scores": public}
    algorithm = scalars(1, noise_interpretation="C", **own)
    state = algorithm.init(jax.random.key(0))
    clients = federated.stack([jnp.ones(1)])
    state, _ = jax.jit(algorithm.update)(jax.random.key(1), state, clients)
    want = 0.4664 if public else 1.0
    assert state.own.least.tolist() == pytest.approx([want], abs=1e-4)
    assert scalars(1, **own).init(jax.random.key(0)).own.least is None


def test_what_is_hidden_shows_in_nothing_that_is_sent():
    """Layers that stay private are sent too, with the noise of the other layers."""
    loss = lambda p, x, key: -x * (p["a"] + 0.25 * p["b"])
    algorithm = federated.atlas(
        lambda key: {"a": jnp.ones(()), "b": jnp.ones(())},
        loss,
        steps=Steps(num_steps=1),
        num_clients=1,
        privacy_unit="client",
        scores="hidden",
        max_layers=1,
    )
    hyper = {"learning_rate": 1.0, "clip_norm": 2**0.5, "noise_multiplier": 0.0}
    state = algorithm.init(jax.random.key(0), **hyper, mask_learning_rate=1.0)
    clients = federated.stack([jnp.array([8.0])])
    update = jax.jit(algorithm.update)
    state, info = update(jax.random.key(1), state, clients)
    assert [bool(state.own.shared[n][0]) for n in "ab"] == [True, False]
    # 8 and 2 are clipped to 1 each.
    assert [float(state.params[n]) for n in "ab"] == pytest.approx([2.0, 2.0])
    assert info["layers"] == 2.0 and info["bytes_up"] == 8 == info["bytes_down"]
    seen = algorithm.model(
        jax.random.key(0), state, jnp.int32(0), clients.rows[0], clients.mask[0]
    )
    assert [float(seen[n]) for n in "ab"] == pytest.approx([2.0, 3.0])
    # Again, from the server's 2 and its own 3, to 10 and 5: one each from 2.
    after, _ = update(jax.random.key(1), state, clients)
    assert [float(after.params[n]) for n in "ab"] == pytest.approx([3.0, 3.0])
    assert float(after.own.params["b"][0]) == pytest.approx(5.0)
