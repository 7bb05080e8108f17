"""Noisy local steps: their lots, their sums, their noise, and what they hide."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon import federated
from jaxanon.federated import Lots, Steps
from jaxanon.privacy import epsilon_spent

EVERY = Lots(sampling_probability=1.0, size=4.0, records=4)


def loss(params, batch, key):
    del key
    hidden = jnp.tanh(batch["x"] @ params["base"]["w"] + params["base"]["b"][None])
    return (hidden @ params["head"]["v"] - batch["y"]) ** 2


def start(key):
    keys = jax.random.split(key)
    return {
        "base": {"w": jax.random.normal(keys[0], (3, 4)), "b": jnp.zeros(4)},
        "head": {"v": jax.random.normal(keys[1], (4,))},
    }


def rows_of(count):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(count, 3)).astype(np.float32)
    return {"x": jnp.array(x), "y": jnp.array(3 * x[:, 0])}


@functools.cache
def drawn(capacity):
    """How often each of 12 rows, 10 of them real, was in each of 20,000 lots."""
    lots = Lots(sampling_probability=0.3, size=3.0, capacity=capacity)
    mask = jnp.arange(12) < 10

    def one(key):
        index, real = federated.draw_lot(key, mask, lots)
        return jnp.zeros(12).at[index].add(real)

    keys = jax.random.split(jax.random.key(0), 20_000)
    return np.asarray(jax.jit(jax.vmap(one))(keys))


def test_lots_are_poisson_samples_of_the_real_rows():
    """Each row by itself; lots of one size, or rows in turn, would not vary so."""
    found = drawn(12)
    assert found.max() == 1 and not found[:, 10:].any()
    np.testing.assert_allclose(found[:, :10].mean(0), 0.3, atol=4 * 0.0033)
    sizes = found.sum(1)
    assert sizes.var() == pytest.approx(10 * 0.3 * 0.7, rel=0.06)
    together = np.corrcoef(found[:, :10].T) - np.eye(10)
    assert np.abs(together).max() < 5 / math.sqrt(20_000)


def test_a_lot_that_is_too_large_leaves_any_out_alike():
    found, free = drawn(3), drawn(12)
    sizes = found.sum(1)
    assert sizes.max() == 3
    np.testing.assert_array_equal(sizes, np.minimum(free.sum(1), 3))
    share = found[:, :10].mean(0)
    np.testing.assert_allclose(share, share.mean(), atol=5 * 0.0032)


def test_lots_hold_what_is_drawn_but_once_in_a_billion():
    lots = Lots(sampling_probability=0.1, size=20.0, records=200)
    beyond = stats.binom.sf(lots.capacity, 200, 0.1)
    assert 1e-14 < beyond < 1e-9
    assert EVERY.capacity == 4


def test_noiseless_steps_are_those_of_clipped_examples():
    """Against a loop over examples and layers, float32."""
    rows, mask = rows_of(4), jnp.array([True, True, False, True])
    params, norms = start(jax.random.key(0)), {"base": 15.0, "head": 6.0}
    got, losses = jax.jit(
        lambda key: federated.descend_privately(
            loss,
            key,
            params,
            rows,
            mask,
            lots=EVERY,
            step_size=0.5,
            num_steps=2,
            max_norms=norms,
            noise_multipliers=0.0,
        )
    )(jax.random.key(1))
    clipped = 0
    for step in range(2):
        total, seen = jax.tree.map(jnp.zeros_like, params), []
        for i in (0, 1, 3):
            row = jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], rows)
            one = lambda p, row=row: loss(p, row, None)[0]
            value, grads = jax.value_and_grad(one)(params)
            seen.append(value)
            for name, bound in norms.items():
                size = math.sqrt(sum(jnp.sum(g**2) for g in grads[name].values()))
                clipped += size > bound
                for leaf, g in grads[name].items():
                    total[name][leaf] += g * min(1, bound / size)
        np.testing.assert_allclose(losses[step], np.mean(seen), rtol=1e-4)
        params = jax.tree.map(lambda w, g: w - 0.5 * g / 4, params, total)
    assert 3 < clipped < 12  # Some were, some were not.
    for ours, theirs in zip(*map(jax.tree.leaves, (got, params)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def noisy(weight_of_last, noise_multiplier=0.5, draws=40_000, key=0, steps=1):
    """Params after noisy steps on three rows at 0 and one at 9, or without it."""
    linear = lambda w, x, key: -w * x
    mask = jnp.array([True, True, True, weight_of_last])

    def one(key):
        return federated.descend_privately(
            linear,
            key,
            jnp.zeros(()),
            jnp.array([0.0, 0.0, 0.0, 9.0]),
            mask,
            lots=EVERY,
            step_size=2.0,
            num_steps=steps,
            max_norms=3.0,
            noise_multipliers=noise_multiplier,
        )[0]

    keys = jax.random.split(jax.random.key(key), draws)
    return np.asarray(jax.jit(jax.vmap(one))(keys))


def test_noise_is_as_large_as_the_multiplier_says():
    """A gradient of -9 is clipped to -3: a step of 2 x 3 / 4, noise of 0.5 of that."""
    law = stats.norm(1.5, 0.75)
    found = noisy(True)
    assert stats.kstest(found, law.cdf).pvalue > 1e-3
    assert stats.kstest(1.5 + 0.9 * (found - 1.5), law.cdf).pvalue < 1e-9


def most_told(noise_multiplier, steps):
    """A lower bound of ε at δ = 1e-3, of thresholds on what a client sends.

    By Clopper and Pearson's intervals at 1e-4, over thresholds fixed beforehand.
    """
    sides = [
        noisy(present, noise_multiplier, key=number, steps=steps)
        for number, present in enumerate((True, False))
    ]
    draws, told = len(sides[0]), 0.0
    for threshold in np.linspace(-2.0, 12.0, 57):
        hit, false = (int(np.sum(side > threshold)) for side in sides)
        low = stats.beta.ppf(1e-4, hit, draws - hit + 1) if hit else 0.0
        high = stats.beta.ppf(1 - 1e-4, false + 1, max(draws - false, 1e-9))
        if low > 1e-3:
            told = max(told, math.log((low - 1e-3) / high))
    return told


@pytest.mark.parametrize("steps", [1, 3])
def test_what_an_attacker_finds_is_below_what_is_accounted_for(steps):
    release = federated.sampled_gaussian(EVERY, 2.0, steps)
    epsilon = epsilon_spent([release], 1e-3)
    assert 0.3 * epsilon < most_told(2.0, steps) <= epsilon
    # And above it where noise is a third of what is claimed.
    assert most_told(2.0 / 3, steps) > epsilon


def test_fed_sgd_ldp_of_two_clients_by_hand():
    """Gradients -4 and -1, the first clipped to -2; the mean of 1 and 0.5."""
    algorithm = federated.fed_sgd_ldp(
        lambda key: jnp.zeros(()),
        lambda w, x, key: 0.5 * (w - x) ** 2,
        lots=Lots(sampling_probability=1.0, size=1.0, records=1),
        num_steps=1,
        num_clients=2,
    )
    hyper = {"step_size": 0.5, "max_norm": 2.0, "noise_multiplier": 0.0}
    clients = federated.stack([jnp.array([4.0]), jnp.array([1.0])])
    state = algorithm.init(jax.random.key(0), **hyper)
    state, info = algorithm.update(jax.random.key(1), state, clients)
    assert state.params == 0.75 and info["loss"] == (8 + 0.5) / 2
    # With noise, clients' noises are their own: a mean of two has half the variance.
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
    # Of the ends, one is e^ε times as likely to be sent as the other.
    assert up[4] / up[0] == pytest.approx(e)
    shares = (sent > 0).mean(0)
    assert shares[4] / shares[0] == pytest.approx(e, rel=0.04)


def test_ldp_fl_of_two_clients_by_hand():
    """With ε = 60 weights at the ends of their range stay there: 2 and -2."""
    algorithm = federated.ldp_fl(
        lambda key: {"w": jnp.zeros(3)},
        lambda p, x, key: 0.5 * jnp.sum((p["w"][None] - x) ** 2, axis=1),
        Steps(num_steps=1),
        radii={"w": 2.0},
        num_clients=2,
    )
    state = algorithm.init(jax.random.key(0), step_size=0.5, epsilon=60.0)
    clients = federated.stack([jnp.full((1, 3), 8.0), jnp.array([[8.0, -8.0, -8.0]])])
    state, _ = algorithm.update(jax.random.key(1), state, clients)
    np.testing.assert_allclose(state.params["w"], [2.0, 0.0, 0.0])


def test_dp_fed_avg_of_two_clients_by_hand():
    """Moves of 2 and 0.5, clipped at 1; one of two within it, as the quantile asks."""
    algorithm = federated.dp_fed_avg(
        lambda key: jnp.zeros(()),
        lambda w, x, key: 0.5 * (w - x) ** 2,
        Steps(num_steps=1),
        cohorts=Lots(sampling_probability=1.0, size=2.0, records=2),
        count_stddev=1e-4,
    )
    hyper = {"step_size": 0.5, "noise_multiplier": 1e-4}
    clients = federated.stack([jnp.array([4.0]), jnp.array([1.0])])
    state = algorithm.init(jax.random.key(0), **hyper)
    state, info = algorithm.update(jax.random.key(1), state, clients)
    assert state.params == pytest.approx(0.75, abs=1e-3)
    assert state.server == pytest.approx(1.0, abs=1e-3) and info["max_norm"] == 1.0
    # A quantile of 1 asks for all: C e^(-0.2 (0.5 - 1)).
    state = algorithm.init(jax.random.key(0), **hyper, quantile=1.0)
    state, _ = algorithm.update(jax.random.key(1), state, clients)
    assert state.server == pytest.approx(math.exp(0.1), abs=1e-3)


def test_dp_fed_avg_adds_the_noise_that_is_left_beside_the_counts():
    algorithm = federated.dp_fed_avg(
        lambda key: jnp.zeros(()),
        lambda w, x, key: 0.0 * w * x,
        Steps(num_steps=1),
        cohorts=Lots(sampling_probability=0.5, size=1.0, records=2),
        count_stddev=1.0,
    )
    clients = federated.stack([jnp.array([4.0]), jnp.array([1.0])])
    state = algorithm.init(jax.random.key(0), noise_multiplier=1.2, max_norm=3.0)
    move = lambda key: algorithm.update(key, state, clients)[0]
    after = jax.jit(jax.vmap(move))(jax.random.split(jax.random.key(1), 20_000))
    # z = (1.2^-2 - 1/4)^-1/2 = 1.5, times the clip norm.
    assert np.std(after.params) == pytest.approx(4.5, rel=0.03)
    # Nobody moves, so all who joined lie within: 0.5 + (half their number + noise).
    shift = -np.log(np.asarray(after.server) / 3.0) / 0.2
    assert shift.mean() == pytest.approx(0.5, abs=0.04)
    assert shift.std() == pytest.approx(math.sqrt(1 + 0.5 / 4), rel=0.03)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sampling_probability": 0.0}, r"sampling_probability must be in \(0, 1\]"),
        ({"size": 0.0}, "size must be a finite number > 0"),
        ({"capacity": 0}, "capacity must be >= 1, got 0"),
        ({"records": None}, "records must be given, the most rows"),
    ],
)
def test_says_what_was_wrong_with_lots(settings, message):
    given = {"sampling_probability": 0.5, "size": 4.0, "records": 8}
    with pytest.raises(ValueError, match=message):
        Lots(**given | settings)


def test_says_what_was_wrong():
    square = lambda w, x, key: 0.5 * (w - x) ** 2
    with pytest.raises(ValueError, match="num_steps must be >= 1, got 0"):
        federated.fed_sgd_ldp(start, square, lots=EVERY, num_steps=0, num_clients=2)
    with pytest.raises(ValueError, match="radii must be > 0, got 0"):
        federated.ldp_fl(start, square, Steps(num_steps=1), radii=0.0, num_clients=2)
    with pytest.raises(ValueError, match="count_stddev must be > 0, got 0"):
        federated.dp_fed_avg(
            start, square, Steps(num_steps=1), cohorts=EVERY, count_stddev=0.0
        )
    tight = federated.dp_fed_avg(
        start, square, Steps(num_steps=1), cohorts=EVERY, count_stddev=0.1
    )
    with pytest.raises(ValueError, match="counts alone would spend the budget"):
        tight.init(jax.random.key(0))
    wrong = federated.ldp_fl(
        start, square, Steps(num_steps=1), radii={"base": 1.0}, num_clients=1
    )
    clients = federated.stack([jnp.array([4.0])])
    with pytest.raises(ValueError, match=r"of the layers \['base', 'head'\], got"):
        wrong = federated.ldp_fl(
            start, loss, Steps(num_steps=1), radii={"base": 1.0}, num_clients=1
        )
        clients = federated.stack([rows_of(2)])
        wrong.update(jax.random.key(0), wrong.init(jax.random.key(0)), clients)
    unknown = Lots(sampling_probability=0.5, size=4.0, capacity=8)
    with pytest.raises(ValueError, match="give their records"):
        federated.sampled_gaussian(unknown, 1.0, 1)
