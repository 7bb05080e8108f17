"""Noise by statistics with power, and its accounting by closed forms and loops."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon.kernels import clipping
from jaxanon.kernels.clipping import cases, reference

BOUNDS = {"a": 3.0, "b": 4.0}


def _p_normal(sample, stddev):
    """Returns the p-value of the sample under N(0, stddev^2)."""
    sample = np.ravel(np.asarray(sample, np.float64))
    return stats.kstest(sample / stddev, "norm").pvalue


def _p_independent(x, y):
    return stats.pearsonr(np.ravel(x), np.ravel(y)).pvalue


def _sum_of_zeros(num_rows=1, shape=(2000,)):
    rows = {name: jnp.zeros((num_rows, *shape)) for name in BOUNDS}
    return clipping.clipped_sum(rows, BOUNDS)


@functools.cache
def _jitted(fn):
    return jax.jit(fn)


def test_noise_of_a_sum_has_the_deviation_asked_for():
    add = _jitted(clipping.add_noise_to_sum)
    total = _sum_of_zeros(num_rows=5)  # The number of rows does not matter.
    # A single number: sqrt(3^2 + 4^2) times it, everywhere.
    whole = add(jax.random.key(0), total, 2.0)
    # A number per group: that times the group's bound.
    each = add(jax.random.key(1), total, {"a": 2.0, "b": 0.5})
    for sample, stddev in [
        (whole["a"], 10.0),
        (whole["b"], 10.0),
        (each["a"], 6.0),
        (each["b"], 2.0),
    ]:
        assert _p_normal(sample, stddev) > 0.01
        for wrong in (2 / 3, 3 / 2):
            assert _p_normal(sample, wrong * stddev) < 1e-9


@pytest.mark.slow
def test_each_leaf_s_noise_is_that_of_its_key_however_small_it_is():
    shapes = (3, 5), (64,), (2, 2, 17), (), (0, 4), (300, 250), (7,)
    total = clipping.clipped_sum([jnp.zeros((1, *shape)) for shape in shapes], 2.0)
    found = _jitted(clipping.add_noise_to_sum)(jax.random.key(5), total, 1.5)
    keys = jax.random.split(jax.random.key(5), len(shapes))
    for key, shape, got in zip(keys, shapes, found, strict=True):
        want = 3.0 * jax.random.normal(key, shape)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_noise_of_two_leaves_is_independent_and_equal_noise_is_rejected():
    noisy = _jitted(clipping.add_noise_to_sum)(jax.random.key(2), _sum_of_zeros(), 1.0)
    assert _p_independent(noisy["a"], noisy["b"]) > 0.01
    assert _p_independent(noisy["a"], noisy["a"]) < 1e-9
    assert np.intersect1d(noisy["a"], noisy["b"]).size < 20  # float32 has few values.


def test_noise_of_two_clients_is_independent_and_equal_noise_is_rejected():
    rows = {name: jnp.zeros((3, 2000)) for name in BOUNDS}
    run = _jitted(clipping.clip_and_noise_per_client)
    noisy = run(jax.random.key(3), rows, BOUNDS, {"a": 2.0, "b": 0.5})
    for i, j in [(0, 1), (1, 2), (0, 2)]:
        assert _p_independent(noisy["a"][i], noisy["a"][j]) > 0.01
        assert _p_independent(noisy["a"][i], noisy["b"][j]) > 0.01
    shared = noisy["a"].at[1].set(noisy["a"][0])
    assert _p_independent(shared[0], shared[1]) < 1e-9
    for name, stddev in [("a", 6.0), ("b", 2.0)]:
        assert _p_normal(noisy[name], stddev) > 0.01
        assert _p_normal(noisy[name], stddev * 2 / 3) < 1e-9
        assert _p_normal(noisy[name], stddev * 3 / 2) < 1e-9


@pytest.mark.slow
def test_noise_is_added_to_what_was_clipped():
    case = cases.CASES["groups"]
    rows = cases.rows(case, 0)
    how = {"groups": case.groups}
    clipped = jax.jit(lambda x: clipping.clip_rows(x, case.clip_norms, **how))(rows)
    run = jax.jit(
        lambda key, rows: clipping.clip_and_noise_per_client(
            key, rows, case.clip_norms, 0.0, **how
        )
    )
    chex.assert_trees_all_close(run(jax.random.key(0), rows), clipped, rtol=1e-6)
    total = jax.jit(lambda x: clipping.clipped_sum(x, case.clip_norms, **how))(rows)
    for add in (clipping.add_noise_to_sum, clipping.add_aggregate_client_noise):
        chex.assert_trees_all_equal(
            jax.jit(add)(jax.random.key(0), total, 0.0), total.value
        )
    # A group's noise reaches only its leaves.
    only = {"bias": 1.0, "kernel": 0.0}
    noisy = jax.jit(clipping.add_noise_to_sum)(jax.random.key(1), total, only)
    for name, label in case.groups.items():
        same = np.array_equal(noisy[name], total.value[name])
        assert same == (label == "kernel")


def _many_sums(run, times=4000):
    """Returns ``float[times, 6]``: sums over clients by ``run(key)``, key by key."""
    trees = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(4), times))
    return np.concatenate([np.asarray(x) for x in jax.tree.leaves(trees)], axis=1)


@pytest.mark.slow
def test_one_draw_is_distributed_as_the_clients_own():
    rng = np.random.default_rng(0)
    rows = {name: jnp.asarray(rng.normal(size=(6, 3)), jnp.float32) for name in BOUNDS}
    weights = jnp.array([1.0, 0.5, 1.0, 0.0, 0.25, 1.0])
    bounds, multipliers = {"a": 1.0, "b": 0.5}, {"a": 1.5, "b": 4.0}
    total = clipping.clipped_sum(rows, bounds, weights=weights)

    def by_clients(key):
        sent = clipping.clip_and_noise_per_client(key, rows, bounds, multipliers)
        return jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, 1), sent)

    def at_once(key):
        return clipping.add_aggregate_client_noise(key, total, multipliers)

    def too_little(key):
        return clipping.add_noise_to_sum(key, total, multipliers)

    many, once, less = map(_many_sums, (by_clients, at_once, too_little))
    # Key by key the draws differ; entry by entry the distributions agree.
    p_values = [
        stats.ks_2samp(*pair).pvalue for pair in zip(many.T, once.T, strict=True)
    ]
    assert min(p_values) > 0.01 / 6
    mean = np.concatenate([total.value["a"], total.value["b"]])
    stddev = np.sqrt(1 + 0.25 + 1 + 0.0625 + 1) * np.repeat([1.5, 2.0], 3)
    assert _p_normal((once - mean) / stddev, 1.0) > 0.01
    for wrong in (2 / 3, 3 / 2):
        stretched = mean + wrong * (once - mean)
        assert stats.ks_2samp(many[:, 0], stretched[:, 0]).pvalue < 1e-9
    assert stats.ks_2samp(many[:, 0], less[:, 0]).pvalue < 1e-9
    # The loops agree with both.
    row_list = [{k: np.asarray(v[i]) for k, v in rows.items()} for i in range(6)]
    args = row_list, {"a": "a", "b": "b"}, bounds, {"a": 1.5, "b": 2.0}
    loops = [
        reference.noisy_sum_of_clients(rng, *args, np.asarray(weights))["b"]
        for _ in range(400)
    ]
    assert stats.ks_2samp(np.array(loops)[:, 0], once[:, 3]).pvalue > 0.01


def test_half_precision_is_noised_in_float32():
    rows = jnp.zeros((4, 500), jnp.bfloat16)
    run = _jitted(clipping.clip_and_noise_per_client)
    clients, add = (
        run(jax.random.key(5), rows, 1.0, 1.0),
        _jitted(clipping.add_noise_to_sum),
    )
    assert clients.dtype == jnp.bfloat16
    total = _jitted(clipping.clipped_sum)(rows, 1.0)
    # A caller's sum may have half precision; its noise does not.
    own = clipping.BoundedSum(jnp.zeros(500, jnp.bfloat16), 1.0)
    for case in (total, own):
        noisy = add(jax.random.key(5), case, 1.0)
        assert noisy.dtype == jnp.float32
        assert len(np.unique(noisy)) == 500  # bfloat16 would have ties.
    with jax.enable_x64(True):
        total = clipping.BoundedSum(np.zeros(3), 1.0)
        noisy = add(jax.random.key(5), total, 1.0)
        assert noisy.dtype == jnp.float64


def test_noise_is_mapped_over_and_compiled_once():
    def run(key, bound, multiplier):
        total = clipping.clipped_sum(jnp.ones((2, 3)), bound)
        return clipping.add_noise_to_sum(key, total, multiplier)

    keys = jax.random.split(jax.random.key(0), 3)
    args = jnp.array([1.0, 2.0, 4.0]), jnp.array([0.5, 1.0, 2.0])
    swept = jax.jit(jax.vmap(run))(keys, *args)
    one = jax.jit(chex.assert_max_traces(run, n=1))
    for i, key in enumerate(jax.random.split(jax.random.key(0), 3)):
        np.testing.assert_allclose(
            swept[i], one(key, args[0][i], args[1][i]), rtol=1e-5
        )


@pytest.mark.parametrize(
    ("reading", "expected"), [("A", 1.0), ("B", 1.5617), ("C", 0.4664)]
)
def test_effective_multiplier_of_the_three_readings(reading, expected):
    # Four layers, z = 2, scores E; the interpretations differ in the factor of E.
    scores, bounds = np.array([0.9, 0.5, 0.7, 0.3]), np.array([0.1, 2.0, 5.0, 1.0])
    signal = {"A": scores, "B": scores, "C": np.ones(4)}[reading]
    noise = {"A": scores, "B": np.ones(4), "C": scores}[reading]
    clip_norms, stddevs = signal * bounds, 2.0 * noise * bounds
    got = _jitted(clipping.joint_noise_multiplier)(list(clip_norms), list(stddevs))
    np.testing.assert_allclose(got, expected, atol=5e-5)
    loops = reference.joint_noise_multiplier(
        dict(enumerate(clip_norms)), dict(enumerate(stddevs))
    )
    np.testing.assert_allclose(got, loops, rtol=1e-6)


def test_one_multiplier_for_the_whole_is_the_effective_one():
    for multipliers, expected in [(1.7, 1.7), ({"a": 1.7, "b": 1.7}, 1.7 / 2**0.5)]:
        stddevs = clipping.noise_stddevs(BOUNDS, multipliers)
        got = clipping.joint_noise_multiplier(BOUNDS, stddevs)
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_effective_multiplier_at_its_edges():
    effective = clipping.joint_noise_multiplier
    assert effective([1.0, 1.0], [3.0, 0.0]) == 0  # One group has no noise.
    np.testing.assert_allclose(effective([2.0, 0.0], [3.0, 0.0]), 1.5)
    assert effective(0.0, 1.0) == jnp.inf
    slope = jax.grad(effective)(1.0, 2.0)
    np.testing.assert_allclose(slope, -2.0, rtol=1e-6)  # Slope in sigma / C.


KEY = "key must be a typed PRNG key such as jax.random.key\\(0\\), got"


def _sum():
    return clipping.clipped_sum({"a": jnp.ones((1, 2)), "b": jnp.ones(1)}, BOUNDS)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: clipping.add_noise_to_sum(0, _sum(), 1.0), TypeError, KEY),
        (lambda: clipping.add_aggregate_client_noise(0, _sum(), 1.0), TypeError, KEY),
        (
            lambda: clipping.clip_and_noise_per_client(0, jnp.ones((1, 2)), 1.0, 1.0),
            TypeError,
            KEY,
        ),
        (
            lambda: clipping.noise_stddevs(BOUNDS, -1.0),
            ValueError,
            "noise_multipliers must be >= 0, got -1.0",
        ),
        (
            lambda: clipping.noise_stddevs(BOUNDS, {"a": 1.0}),
            ValueError,
            "noise_multipliers must be one number or a tree like clip_norms",
        ),
        (
            lambda: clipping.joint_noise_multiplier(BOUNDS, 1.0),
            ValueError,
            "stddevs must be one number or a tree like clip_norms",
        ),
    ],
)
def test_says_what_was_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_sum_without_bounds_or_clients_is_refused():
    with pytest.raises(TypeError, match="total must be a BoundedSum"):
        clipping.add_noise_to_sum(jax.random.key(0), jnp.zeros(2), 1.0)
    total = clipping.BoundedSum(jnp.zeros(2), 1.0)
    with pytest.raises(ValueError, match=r"squared_weights must be .* got None"):
        clipping.add_aggregate_client_noise(jax.random.key(0), total, 1.0)
