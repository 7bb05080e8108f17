"""Noisy local steps: Poisson batches, sums, noise, and privacy."""

import fractions
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon import federated
from jaxanon.federated import PoissonSampling, Steps
from jaxanon.federated.private.dp_sgd import below_probability
from jaxanon.privacy import epsilon_spent

pytestmark = pytest.mark.slow

EVERY = PoissonSampling(
    sampling_probability=1.0, expected_batch_size=4.0, max_examples=4
)


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
    """Counts how often 20,000 batches contain each of 12 rows, 10 of them real."""
    lots = PoissonSampling(
        sampling_probability=0.3, expected_batch_size=3.0, max_batch_size=capacity
    )
    mask = jnp.arange(12) < 10

    def one(key):
        index, real = federated.poisson_sample(key, mask, lots)
        return jnp.zeros(12).at[index].add(real)

    keys = jax.random.split(jax.random.key(0), 20_000)
    return np.asarray(jax.jit(jax.vmap(one))(keys))


def test_lots_are_poisson_samples_of_the_real_rows():
    """Rows are drawn independently; fixed-size batches would not vary this much."""
    found = drawn(12)
    assert found.max() == 1 and not found[:, 10:].any()
    np.testing.assert_allclose(found[:, :10].mean(0), 0.3, atol=4 * 0.0033)
    sizes = found.sum(1)
    assert sizes.var() == pytest.approx(10 * 0.3 * 0.7, rel=0.06)
    together = np.corrcoef(found[:, :10].T) - np.eye(10)
    assert np.abs(together).max() < 5 / math.sqrt(20_000)


@pytest.mark.parametrize("q", [1e-7, 1e-6, 0.1, 1 / 3, 0.5, 1.0, 2.0**-64, 1 - 2**-53])
def test_as_many_draws_of_64_bits_take_a_row_as_its_probability_says(q):
    """The draws around the last one that counts; 23 bits would take 1e-7 at 1.19e-7."""
    num = math.floor(fractions.Fraction(q) * 2**64)
    assert 0 <= fractions.Fraction(q) - fractions.Fraction(num, 2**64) < 2**-64
    last = [n for n in (0, num - 2, num - 1, num, num + 1, 2**64 - 1) if 0 <= n < 2**64]
    words = np.array([[n >> 32 for n in last], [n % 2**32 for n in last]], np.uint32)
    found = below_probability(jnp.asarray(words), q)
    assert found.tolist() == [n < num for n in last]


def test_rare_rows_are_as_rare_as_they_should_be():
    """Of 2^26 rows at 1e-6, 67.1 on average; 40 are 4.9 standard deviations."""
    draw = lambda key: jnp.sum(
        below_probability(jax.random.bits(key, (2, 1 << 20), jnp.uint32), 1e-6)
    )
    counts = jax.lax.map(draw, jax.random.split(jax.random.key(11), 64))
    assert abs(int(counts.sum()) - 67) < 40


def test_a_lot_that_is_too_large_leaves_any_out_alike():
    found, free = drawn(3), drawn(12)
    sizes = found.sum(1)
    assert sizes.max() == 3
    np.testing.assert_array_equal(sizes, np.minimum(free.sum(1), 3))
    share = found[:, :10].mean(0)
    np.testing.assert_allclose(share, share.mean(), atol=5 * 0.0032)


def test_lots_hold_what_is_drawn_as_good_as_ever():
    lots = PoissonSampling(
        sampling_probability=0.1, expected_batch_size=20.0, max_examples=200
    )
    beyond = stats.binom.sf(lots.largest, 200, 0.1)
    assert 1e-20 < beyond < 1e-14
    assert EVERY.largest == 4


def test_noiseless_steps_are_those_of_clipped_examples():
    """Compares with a float32 loop over examples and layers."""
    rows, mask = rows_of(4), jnp.array([True, True, False, True])
    params, norms = start(jax.random.key(0)), {"base": 15.0, "head": 6.0}
    got, losses = jax.jit(
        lambda key: federated.local_dp_sgd(
            loss,
            key,
            params,
            rows,
            mask,
            lots=EVERY,
            learning_rate=0.5,
            num_steps=2,
            clip_norms=norms,
            noise_multipliers=0.0,
        )
    )(jax.random.key(1))
    graded = jax.jit(jax.value_and_grad(lambda p, row: loss(p, row, None)[0]))
    clipped, params = 0, jax.tree.map(np.asarray, params)
    for step in range(2):
        total, seen = jax.tree.map(np.zeros_like, params), []
        for i in (0, 1, 3):
            row = jax.tree.map(lambda leaf, i=i: leaf[i : i + 1], rows)
            value, grads = jax.tree.map(np.asarray, graded(params, row))
            seen.append(value)
            for name, bound in norms.items():
                size = math.sqrt(sum(np.sum(g**2) for g in grads[name].values()))
                clipped += size > bound
                for leaf, g in grads[name].items():
                    total[name][leaf] += g * min(1, bound / size)
        np.testing.assert_allclose(losses[step], np.mean(seen), rtol=1e-4)
        params = jax.tree.map(lambda w, g: w - 0.5 * g / 4, params, total)
    assert 3 < clipped < 12  # Some batches were, some were not.
    for ours, theirs in zip(*map(jax.tree.leaves, (got, params)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@functools.partial(jax.jit, static_argnames="steps")
def noisy_from(keys, weight_of_last, noise_multiplier, steps):
    linear = lambda w, x, key: -w * x
    mask = jnp.array([True, True, True, False]).at[3].set(weight_of_last)

    def one(key):
        return federated.local_dp_sgd(
            linear,
            key,
            jnp.zeros(()),
            jnp.array([0.0, 0.0, 0.0, 9.0]),
            mask,
            lots=EVERY,
            learning_rate=2.0,
            num_steps=steps,
            clip_norms=3.0,
            noise_multipliers=noise_multiplier,
        )[0]

    return jax.vmap(one)(keys)


def noisy(weight_of_last, noise_multiplier=0.5, draws=40_000, key=0, steps=1):
    """Returns params after noisy steps on three rows at 0, with or without one at 9."""
    keys = jax.random.split(jax.random.key(key), draws)
    return np.asarray(noisy_from(keys, weight_of_last, noise_multiplier, steps))


def test_noise_is_as_large_as_the_multiplier_says():
    """A gradient of -9 is clipped to -3.

    A step of 2 x 3 / 4, with half that as noise.
    """
    law = stats.norm(1.5, 0.75)
    found = noisy(True)
    assert stats.kstest(found, law.cdf).pvalue > 1e-3
    assert stats.kstest(1.5 + 0.9 * (found - 1.5), law.cdf).pvalue < 1e-9


def most_told(noise_multiplier, steps):
    """Returns a lower bound of ε at δ = 1e-3 from thresholds on a client's message.

    Uses Clopper-Pearson intervals at 1e-4 over thresholds fixed beforehand.
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
    # The estimate exceeds the claim if the noise is a third of the claimed noise.
    assert most_told(2.0 / 3, steps) > epsilon


def test_lots_need_records_or_a_capacity():
    with pytest.raises(ValueError, match="max_examples or max_batch_size must"):
        PoissonSampling(sampling_probability=0.5, expected_batch_size=4.0)


def test_lots_and_steps_are_counted_in_whole_numbers():
    with pytest.raises(TypeError, match=r"num_steps must be a Python int, got 2\.5"):
        federated.local_dp_sgd(
            lambda w, x, key: w * x, jax.random.key(0), jnp.zeros(()), jnp.ones(2),
            jnp.ones(2, bool), learning_rate=1.0, num_steps=2.5, clip_norms=1.0,
            noise_multipliers=1.0,
            lots=PoissonSampling(
                sampling_probability=1.0, expected_batch_size=2.0, max_examples=2
            ),
        )  # fmt: skip


def test_lots_that_are_often_cut_have_no_price():
    """With 40 rows they would cost 3.8, and with the maximum of 200 rows 1.8."""
    cut = PoissonSampling(
        sampling_probability=0.5,
        expected_batch_size=100.0,
        max_batch_size=20,
        max_examples=200,
    )
    with pytest.raises(ValueError, match="rarely truncated"):
        federated.sampled_gaussian(cut, 2.0, 1)
    few = PoissonSampling(
        sampling_probability=0.5, expected_batch_size=1.0, max_examples=2
    )
    with pytest.raises(ValueError, match="mask must have at most max_examples = "):
        federated.poisson_sample(jax.random.key(0), jnp.ones(3, bool), few)


def test_padding_and_clients_without_rows_change_nothing():
    """Without noise; rows are drawn by position, so all of them are taken."""
    every = PoissonSampling(
        sampling_probability=1.0, expected_batch_size=4.0, max_examples=8
    )
    x = [np.float32([[1.0, 2.0], [3.0, -1.0]]), np.float32([[0.5, 0.5]])]
    plain = federated.stack([{"x": each, "y": each[:, 0]} for each in x])
    grow = lambda leaf: jnp.pad(
        leaf, [(0, 1), (0, 2)] + [(0, 0)] * (leaf.ndim - 2), constant_values=0
    )
    padded = jax.tree.map(grow, plain)
    start = lambda key: {"w": jnp.ones(2), "b": jnp.zeros(())}
    off = lambda p, rows, key: (rows["x"] @ p["w"] + p["b"] - rows["y"]) ** 2
    found = []
    for clients in (plain, padded):  # test_atlas*.py covers Atlas with privacy.
        algorithm = federated.fedsgd_ldp(
            start,
            off,
            lots=every,
            steps=federated.Steps(num_steps=2),
            num_clients=len(clients.mask),
        )
        state = algorithm.init(jax.random.key(0), noise_multiplier=0.0)
        state, _ = jax.jit(algorithm.update)(jax.random.key(1), state, clients)
        found.append(state.params)
    for one, other in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_weights_by_rows_would_tell_their_number():
    for make in (
        lambda **options: federated.fedsgd_ldp(
            start,
            loss,
            lots=EVERY,
            steps=federated.Steps(num_steps=1),
            num_clients=2,
            **options,
        ),
        lambda **options: federated.atlas(
            start,
            loss,
            steps=Steps(num_steps=1),
            lots=EVERY,
            num_clients=2,
            **options,
        ),
        lambda **options: federated.ldp_fl(
            start,
            loss,
            steps=Steps(num_steps=1),
            radii=1.0,
            num_clients=2,
            **options,
        ),
    ):
        with pytest.raises(ValueError, match="weighting must be 'clients', got 'rows'"):
            make(weighting="rows")


def test_says_what_lots_cost_only_if_they_say_enough():
    unknown = PoissonSampling(
        sampling_probability=0.5, expected_batch_size=4.0, max_batch_size=8
    )
    with pytest.raises(
        ValueError, match="max_examples must be given to account for truncated"
    ):
        federated.sampled_gaussian(unknown, 1.0, 1)
