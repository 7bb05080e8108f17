"""FedSGD-LDP, LDP-FL and DP-FedAvg: clients by hand, and their noise distributions."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated
from jaxanon.federated import PoissonSampling, Steps

EVERY = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=4.0, max_examples=4
)


def test_fedsgd_ldp_of_two_clients_by_hand():
    """Gradients -4 and -1, the first clipped to -2; the mean of 1 and 0.5."""
    algorithm = federated.fedsgd_ldp(
        lambda key: jnp.zeros(()),
        lambda w, x, key: 0.5 * (w - x) ** 2,
        lots=PoissonSampling(
            sampling_probability=1.0, expected_batch_size=1.0, max_examples=1
        ),
        steps=federated.Steps(num_steps=1),
        num_clients=2,
    )
    hyper = {"learning_rate": 0.5, "clip_norm": 2.0, "noise_multiplier": 0.0}
    clients = federated.stack([jnp.array([4.0]), jnp.array([1.0])])
    state = algorithm.init(jax.random.key(0), **hyper)
    state, info = jax.jit(algorithm.update)(jax.random.key(1), state, clients)
    assert state.params == 0.75 and info["loss"] == (8 + 0.5) / 2
    # Clients draw independent noise: a mean of two has half the variance.
    draw = lambda key: (
        algorithm.update(
            key,
            algorithm.init(jax.random.key(0), **hyper | {"noise_multiplier": 1.0}),
            clients,
        )[0].params
    )
    found = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(2), 20_000))
    assert np.std(found) == pytest.approx(0.5 * 2.0 / math.sqrt(2), rel=0.03)


def test_two_points_by_the_published_probabilities():
    epsilon, radius = 1.2, 0.5
    weights = jnp.array([-0.5, -0.2, 0.0, 0.3, 0.5, 9.0, jnp.nan])
    keys = jax.random.split(jax.random.key(0), 40_000)
    send = lambda key: federated.two_points(key, weights, radius, epsilon)
    sent = np.asarray(jax.jit(jax.vmap(send))(keys))
    far = radius * (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    np.testing.assert_allclose(np.unique(np.abs(sent)), far, rtol=1e-5)
    inside = np.nan_to_num(np.clip(weights, -radius, radius))
    e = math.exp(epsilon)
    up = (inside * (e - 1) + radius * (e + 1)) / (2 * radius * (e + 1))
    np.testing.assert_allclose((sent > 0).mean(0), up, atol=4 * 0.0025)
    np.testing.assert_allclose(sent.mean(0), inside, atol=4 * far / 200)
    # One end is e^ε times as likely to be sent as the other.
    assert up[4] / up[0] == pytest.approx(e)
    shares = (sent > 0).mean(0)
    assert shares[4] / shares[0] == pytest.approx(e, rel=0.04)


@pytest.mark.parametrize("epsilon", [1e-8, 6.578463e-05, 0.01, 1.2, 9.0, 16.0, 99.0])
def test_the_odds_of_no_value_differ_by_more_than_is_claimed(epsilon, monkeypatch):
    """Bisection counts how many of 2^32 draws round each weight up."""
    weights = jnp.linspace(-0.7, 0.7, 101)
    low, high = np.full(101, -1), np.full(101, 2**32)
    while (high - low > 1).any():
        middle = (low + high) // 2
        drawn = lambda *_, middle=middle: jnp.asarray(middle.astype(np.uint32))
        monkeypatch.setattr(jax.random, "bits", drawn)
        sent = federated.two_points(jax.random.key(0), weights, 0.7, epsilon)
        low, high = np.where(sent > 0, [middle, high], [low, middle])
    assert (np.diff(high) >= 0).all() and high[50] == 2**31
    spent = max(
        math.log(int(each.max()) / int(each.min())) for each in (high, 2**32 - high)
    )
    assert 0.9 * min(epsilon, 14.5) < spent <= epsilon
    # The values are also unbiased.
    far = np.abs(np.asarray(sent, np.float64))
    right = far * (2 * high / 2**32 - 1)
    np.testing.assert_allclose(right, weights, atol=max(2e-6, 1e-9 / epsilon))


def test_ldp_fl_of_two_clients_by_hand():
    """With ε = 60 weights at the ends of their range stay there: 2 and -2."""
    algorithm = federated.ldp_fl(
        lambda key: {"w": jnp.zeros(3)},
        lambda p, x, key: 0.5 * jnp.sum((p["w"][None] - x) ** 2, axis=1),
        steps=Steps(num_steps=1),
        radii={"w": 2.0},
        num_clients=2,
    )
    state = algorithm.init(jax.random.key(0), learning_rate=0.5, weight_epsilon=60.0)
    clients = federated.stack([jnp.full((1, 3), 8.0), jnp.array([[8.0, -8.0, -8.0]])])
    state, _ = jax.jit(algorithm.update)(jax.random.key(1), state, clients)
    np.testing.assert_allclose(state.params["w"], [2.0, 0.0, 0.0], rtol=1e-5)


@functools.cache
def ldp_fl_of_one(cut_mean, radius=0.5):
    """Returns LDP-FL of a client at 4 with one layer at ε = ln 3, 2 radii away."""
    algorithm = federated.ldp_fl(
        lambda key: {"w": jnp.zeros(64)},
        lambda p, x, key: 0.5 * jnp.sum((p["w"][None] - x) ** 2, axis=1),
        steps=Steps(num_steps=2),
        radii=radius,
        num_clients=1,
        cut_mean=cut_mean,
    )
    return algorithm, jax.jit(algorithm.update)


def test_a_mean_outside_the_range_is_cut_or_taken_as_published():
    clients = federated.stack([jnp.full((1, 64), 4.0)])
    for cut_mean, far in ((True, 0.5), (False, 1.0)):
        algorithm, update = ldp_fl_of_one(cut_mean)
        state = algorithm.init(
            jax.random.key(0), learning_rate=0.1, weight_epsilon=math.log(3.0)
        )
        state, info = update(jax.random.key(1), state, clients)
        np.testing.assert_allclose(np.abs(state.params["w"]), far, rtol=1e-6)
        assert len(np.unique(state.params["w"])) == 2
        # Steps end at the edge: 0.4, then 0.76, which is cut to 0.5. The client uploads
        # one bit for each of 64 weights and downloads a float32 each.
        assert (info["bytes_up"], info["bytes_down"]) == (8.0, 256.0)
        told = 64 * 0.5 * (4.0**2 + 3.6**2) / 2
        assert float(info["loss"]) == pytest.approx(told, rel=1e-5)


def test_ldp_fl_begins_and_stays_within_the_range():
    """From 1, outside 0.5: the first loss is that of 0.5."""
    clients = federated.stack([jnp.full((1, 64), 4.0)])
    algorithm, update = ldp_fl_of_one(False)
    state = algorithm.init(jax.random.key(0), learning_rate=0.1)
    state = state._replace(params={"w": jnp.ones(64)})
    _, info = update(jax.random.key(1), state, clients)
    assert float(info["loss"]) == pytest.approx(64 * 0.5 * 3.5**2, rel=1e-5)


def test_dp_fedavg_of_two_clients_by_hand():
    """Moves of 2 and 0.5, clipped at 1; one of two is within it, the quantile."""
    algorithm = federated.dp_fedavg(
        lambda key: jnp.zeros(()),
        lambda w, x, key: 0.5 * (w - x) ** 2,
        steps=Steps(num_steps=1),
        cohorts=PoissonSampling(
            sampling_probability=1.0, expected_batch_size=2.0, max_examples=2
        ),
        count_stddev=1e-4,
    )
    hyper = {"learning_rate": 0.5, "noise_multiplier": 1e-4}
    clients = federated.stack([jnp.array([4.0]), jnp.array([1.0])])
    state = algorithm.init(jax.random.key(0), **hyper)
    update = jax.jit(algorithm.update)
    state, info = update(jax.random.key(1), state, clients)
    assert state.params == pytest.approx(0.75, abs=1e-3)
    assert state.server == pytest.approx(1.0, abs=1e-3) and info["clip_norm"] == 1.0
    # A quantile of 1 includes all: C e^(-0.2 (0.5 - 1)).
    state = algorithm.init(jax.random.key(0), **hyper, quantile=1.0)
    state, _ = update(jax.random.key(1), state, clients)
    assert state.server == pytest.approx(math.exp(0.1), abs=1e-3)


def test_dp_fedavg_adds_the_noise_that_is_left_beside_the_counts():
    algorithm = federated.dp_fedavg(
        lambda key: jnp.zeros(()),
        lambda w, x, key: 0.0 * w * x,
        steps=Steps(num_steps=1),
        cohorts=PoissonSampling(
            sampling_probability=0.5, expected_batch_size=1.0, max_examples=2
        ),
        count_stddev=1.0,
    )
    clients = federated.stack([jnp.array([4.0]), jnp.array([1.0])])
    state = algorithm.init(jax.random.key(0), noise_multiplier=1.2, clip_norm=3.0)
    move = lambda key: algorithm.update(key, state, clients)[0]
    after = jax.jit(jax.vmap(move))(jax.random.split(jax.random.key(1), 20_000))
    # z = (1.2^-2 - 1/4)^-1/2 = 1.5, times the clip norm.
    assert np.std(after.params) == pytest.approx(4.5, rel=0.03)
    # No client moves, so all are within: 0.5 + (half their number + noise).
    shift = -np.log(np.asarray(after.server) / 3.0) / 0.2
    assert shift.mean() == pytest.approx(0.5, abs=0.04)
    assert shift.std() == pytest.approx(math.sqrt(1 + 0.5 / 4), rel=0.03)


def test_says_what_was_wrong():
    square = lambda w, x, key: 0.5 * (w - x) ** 2
    zero, one = lambda key: {"base": jnp.zeros(())}, Steps(num_steps=1)
    with pytest.raises(ValueError, match="num_steps must be >= 1, got 0"):
        federated.fedsgd_ldp(
            zero, square, lots=EVERY, steps=federated.Steps(num_steps=0), num_clients=2
        )
    with pytest.raises(TypeError, match=r"num_steps must be whole, got 2\.5"):
        federated.fedsgd_ldp(
            zero,
            square,
            lots=EVERY,
            steps=federated.Steps(num_steps=2.5),
            num_clients=2,
        )
    for radius in (0.0, jnp.inf):  # Every message would be infinite.
        with pytest.raises(ValueError, match="radii must be finite numbers > 0, got"):
            federated.ldp_fl(zero, square, steps=one, radii=radius, num_clients=2)
    with pytest.raises(ValueError, match="count_stddev must be > 0, got 0"):
        federated.dp_fedavg(zero, square, steps=one, cohorts=EVERY, count_stddev=0.0)
    tight = federated.dp_fedavg(
        zero, square, steps=one, cohorts=EVERY, count_stddev=0.1
    )
    with pytest.raises(ValueError, match="counts alone would exceed the budget"):
        tight.init(jax.random.key(0))
    of_layer = lambda p, x, key: square(p["base"], x, key)
    wrong = federated.ldp_fl(
        zero, of_layer, steps=one, radii={"head": 1.0}, num_clients=1
    )
    state, clients = wrong.init(jax.random.key(0)), federated.stack([jnp.array([4.0])])
    with pytest.raises(ValueError, match=r"the layers \['base'\], got \['head'\]"):
        wrong.update(jax.random.key(0), state, clients)
