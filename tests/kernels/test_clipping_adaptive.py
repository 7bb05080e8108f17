"""Adaptive clip norms against plain loops, a known quantile and a budget by hand."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon.kernels import clipping
from jaxanon.kernels.clipping import cases, reference

WRONG = pytest.mark.parametrize("wrong", [2 / 3, 3 / 2])


def _p_normal(sample, stddev):
    """Returns the p-value of the sample under N(0, stddev^2)."""
    return stats.kstest(np.asarray(sample, np.float64) / stddev, "norm").pvalue


def _p_independent(x, y):
    return stats.pearsonr(x, y).pvalue


def _adapt(key, rows, bounds, **how):
    return clipping.adapt_clip_norms(key, rows, bounds, **how)


def test_adaptive_norms_are_those_of_the_loops():
    case = cases.CASES["groups"]
    rows = cases.rows(case, 6)
    how = {"quantile": 0.3, "learning_rate": 0.4, "expected_rows": 7.0}
    got = clipping.adapt_clip_norms(
        jax.random.key(0),
        rows,
        case.clip_norms,
        count_stddev=0.0,
        groups=case.groups,
        **how,
    )
    row_list = [{k: v[i] for k, v in rows.items()} for i in range(case.num_rows)]
    rng = np.random.default_rng(0)
    expected = reference.adapt_clip_norms(
        rng, row_list, case.groups, case.clip_norms, 0.0, **how
    )
    chex.assert_trees_all_close(got, jax.tree.map(jnp.float32, expected), rtol=1e-6)


def test_adaptive_norm_finds_the_quantile():
    norms = np.random.default_rng(1).lognormal(1.0, 0.7, size=(400, 1))
    rows = jnp.asarray(norms, jnp.float32)

    def step(bound, key):
        how = {"count_stddev": 5.0, "quantile": 0.8, "learning_rate": 0.2}
        return _adapt(key, rows, bound, **how), bound

    for seed, start in enumerate((0.01, 1000.0)):
        keys = jax.random.split(jax.random.key(seed), 200)
        _, bounds = jax.jit(lambda c, k: jax.lax.scan(step, c, k))(start, keys)
        fraction = np.mean(norms <= np.mean(bounds[-40:]))
        np.testing.assert_allclose(fraction, 0.8, atol=0.03)


def _log_steps(count_stddev):
    """Returns three groups' log norm steps in units of the fraction's noise."""
    rows = {name: jnp.ones((10, 1)) for name in "abc"}
    bounds = {name: 2.0 for name in "abc"}
    run = lambda key: _adapt(
        key, rows, bounds, count_stddev=count_stddev, learning_rate=1.0, quantile=1.0
    )
    out = jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(7), 1500))
    return {name: -10 * np.log(np.asarray(out[name]) / 2.0) for name in "abc"}


@WRONG
def test_noise_on_the_counts(wrong):
    noise = _log_steps(2.0)
    for name in "abc":
        assert _p_normal(noise[name], 2.0) > 0.01
        assert _p_normal(noise[name], 2.0 * wrong) < 1e-9
    assert _p_independent(noise["a"], noise["b"]) > 0.01
    assert _p_independent(noise["a"], noise["a"]) < 1e-9


def test_counts_leave_out_padding_and_count_bad_rows_as_large():
    rows = jnp.array([[1.0], [jnp.nan], [jnp.inf], [5.0], [0.0]])
    weights = jnp.array([1.0, 1.0, 1.0, 0.0, 0.0])
    how = {"count_stddev": 0.0, "learning_rate": 1.0, "quantile": 0.0}
    adapt = lambda rows, **more: _adapt(jax.random.key(0), rows, 2.0, **how, **more)
    # One of three rows lies within 2.
    got = adapt(rows, expected_rows=3, weights=weights)
    np.testing.assert_allclose(got, 2 * np.exp(-1 / 3), rtol=1e-6)
    # Without any row the fraction is 1/2, whatever was expected.
    got = adapt(rows, expected_rows=3, weights=jnp.zeros(5))
    np.testing.assert_allclose(got, 2 * np.exp(-0.5), rtol=1e-6)
    np.testing.assert_allclose(adapt(jnp.ones((0, 1))), 2 * np.exp(-0.5), rtol=1e-6)
    # One additional row moves the count by 1/2, within the norm or not.
    for row in (0, 1):
        more = adapt(rows, expected_rows=3, weights=jnp.zeros(5).at[row].set(1.0))
        change = 3 * np.log(np.asarray(got) / np.asarray(more))
        np.testing.assert_allclose(abs(change), 0.5, rtol=1e-5)


def test_counts_are_taken_over_the_axis_that_clients_are_spread_over():
    rows = jnp.array([[1.0], [3.0], [1.0], [1.0]])
    how = {"count_stddev": 0.5, "learning_rate": 1.0, "expected_rows": 4}
    run = lambda x: _adapt(jax.random.key(0), x, 2.0, axis_name="clients", **how)
    spread = jax.vmap(run, axis_name="clients")(rows.reshape(2, 2, 1))
    together = _adapt(jax.random.key(0), rows, 2.0, **how)
    np.testing.assert_allclose(spread, [together, together], rtol=1e-6)


@pytest.mark.parametrize("num_counts", [1, 4])
def test_budget_of_sum_and_counts_together(num_counts):
    z, count_stddev = 0.8, 2.0
    raised = clipping.noise_multiplier_with_counts(z, count_stddev, num_counts)
    assert raised > z
    if num_counts == 1:  # (0.8^-2 - 4^-2)^(-1/2), by hand.
        np.testing.assert_allclose(raised, 1.5**-0.5, rtol=1e-6)
    # Combined: the sum with bound 1, and counts that one row moves by 1/2.
    bounds, stddevs = [1.0] + num_counts * [0.5], [raised] + num_counts * [count_stddev]
    joint = clipping.joint_noise_multiplier(bounds, stddevs)
    np.testing.assert_allclose(joint, z, rtol=1e-6)
    traced = jax.jit(clipping.noise_multiplier_with_counts)
    np.testing.assert_allclose(traced(z, count_stddev, num_counts), raised, rtol=1e-6)
    assert traced(z, 0.1, num_counts) == jnp.inf


def test_a_weight_above_one_counts_as_one_and_one_below_zero_as_none():
    # Otherwise one row could move the count by more than the 1/2 that its noise hides.
    rows = jnp.array([[1.0], [3.0], [1.0], [1.0]])
    adapt = lambda *weights: _adapt(
        jax.random.key(0),
        rows,
        2.0,
        count_stddev=0.0,
        learning_rate=1.0,
        expected_rows=4,
        weights=jnp.array(weights),
    )
    # With weights 1, 1, 0 and 0, one row is within and one is not: b = 1/2, and C
    # stays.
    np.testing.assert_allclose(adapt(9.0, 1.0, -5.0, jnp.nan), 2.0, rtol=1e-6)
    # With weights 1, 0, 0, 0, one row is within: b = 1/2 + 1/8.
    np.testing.assert_allclose(adapt(7.0, 0.0, 0.0, 0.0), 2 * np.exp(-1 / 8), rtol=1e-6)


KEY = "key must be a typed PRNG key such as jax.random.key\\(0\\), got"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: _adapt(0, jnp.ones(1), 1.0, count_stddev=1.0), TypeError, KEY),
        (
            lambda: _adapt(jax.random.key(0), jnp.ones(1), 1.0, count_stddev=-1),
            ValueError,
            "count_stddev must be >= 0, got -1",
        ),
        (
            lambda: _adapt(
                jax.random.key(0), jnp.ones(1), 1.0, count_stddev=1, quantile=1.5
            ),
            ValueError,
            "quantile must be <= 1, got 1.5",
        ),
        (
            lambda: _adapt(
                jax.random.key(0), jnp.ones(1), 1.0, count_stddev=1, weights=jnp.ones(1)
            ),
            ValueError,
            "expected_rows must be given with weights or axis_name",
        ),
        (
            lambda: clipping.noise_multiplier_with_counts(2.0, 1.0),
            ValueError,
            "count_stddev must be > 1.0 for noise_multiplier 2.0 and 1 counts, got 1.0",
        ),
        (
            lambda: clipping.noise_multiplier_with_counts(0.0, 1.0),
            ValueError,
            "noise_multiplier must be > 0, got 0.0",
        ),
    ],
)
def test_says_what_was_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call()
