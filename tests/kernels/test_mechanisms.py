"""Values that carry their sensitivities, and noise scaled by them."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from jaxanon.kernels import mechanisms
from jaxanon.kernels.mechanisms import BoundedValue, cases

NUM = 4000
LAWS = {"laplace": stats.laplace, "gaussian": stats.norm}


def _key():
    """Returns the same key, new for each use."""
    return jax.random.key(7)


def _unit(shape, **sensitivity):
    return mechanisms.bounded_value(jnp.zeros(shape), **sensitivity)


def _draw(law, dtype=jnp.float32):
    """Draws noise with the scale of the carried sensitivity and the parameter."""
    x = jnp.full(NUM, 0.5, dtype)
    if law == "laplace":  # Scale 3 / 2.
        bounded = mechanisms.bounded_value(x, l1=3.0)
        noisy = mechanisms.laplace_mechanism(_key(), bounded, 2.0)
    else:  # Standard deviation 3 / 2.
        bounded = mechanisms.bounded_value(x, l2=3.0)
        noisy = mechanisms.gaussian_mechanism(_key(), bounded, 0.5)
    assert noisy.dtype == dtype
    return np.asarray(noisy - 0.5, np.float64)


@pytest.mark.parametrize("law", LAWS)
def test_noise_has_the_scale_and_two_thirds_of_it_is_rejected(law):
    drawn = _draw(law)
    right = LAWS[law](scale=1.5)
    assert stats.kstest(drawn, right.cdf).pvalue > 0.01
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(wrong * drawn, right.cdf).pvalue < 1e-9
    other = LAWS["gaussian" if law == "laplace" else "laplace"](scale=1.5)
    assert stats.kstest(drawn, other.cdf).pvalue < 1e-6


@pytest.mark.parametrize("law", LAWS)
def test_half_precision_noise_has_the_scale_and_float64_is_float64(law):
    # bfloat16 keeps 8 bits, so moments rather than single numbers show the scale.
    size = np.mean(np.abs(_draw(law, jnp.bfloat16)))
    expected = 1.5 * (1.0 if law == "laplace" else np.sqrt(2 / np.pi))
    assert abs(size / expected - 1) < 6 / np.sqrt(NUM)
    with jax.enable_x64():
        drawn = _draw(law, jnp.float64)
    assert stats.kstest(drawn, LAWS[law](scale=1.5).cdf).pvalue > 0.01
    assert np.any(drawn != drawn.astype(np.float32))


@pytest.mark.parametrize("draw", [mechanisms.laplace_noise, mechanisms.gaussian_noise])
def test_noise_primitives_scale_and_have_the_dtype(draw):
    one = draw(_key(), (3, 5), 1.0)
    chex.assert_trees_all_close(draw(_key(), (3, 5), 4.0), 4 * one)
    half = draw(_key(), (3, 5), 1.0, jnp.bfloat16)
    # Rounded from float32 instead of drawn with 8 bits.
    chex.assert_trees_all_equal(half, one.astype(jnp.bfloat16))
    assert not jnp.any(draw(_key(), (4,), 0.0))
    slope = jax.grad(lambda scale: jnp.sum(draw(_key(), (3, 5), scale)))(2.0)
    np.testing.assert_allclose(slope, jnp.sum(one), rtol=1e-5)
    assert draw(_key(), (0,), 1.0).shape == (0,)


def test_clients_draw_different_noise_and_sweeps_are_one_program(traced_once):
    keys = lambda: jax.random.split(_key(), 3)
    x = jnp.zeros((3, 4))

    @jax.jit
    @traced_once
    def sweep(keys, x, epsilons, widths):
        def one(key, x, epsilon, width):
            bounded = mechanisms.clip_to_range(x, -width, width)
            return mechanisms.laplace_mechanism(key, bounded, epsilon)

        return jax.vmap(one)(keys, x, epsilons, widths)

    sweep(keys(), x, jnp.ones(3), jnp.ones(3))
    noisy = sweep(keys(), x, jnp.array([1.0, 2.0, 1.0]), jnp.array([1.0, 1.0, 3.0]))
    assert len(np.unique(noisy)) == noisy.size
    for i, scale in enumerate((8.0, 4.0, 24.0)):  # 4 numbers of width 2 or 6.
        expected = mechanisms.laplace_noise(keys()[i], (4,), scale)
        np.testing.assert_allclose(noisy[i], expected, rtol=1e-6)


@pytest.mark.slow
def test_inside_shard_map_over_clients(over_a_mesh):
    def one(key, x):
        bounded = mechanisms.clip_to_range(x, 0.0, 1.0)
        first, second, third = jax.random.split(key, 3)
        labels = jnp.arange(4) % 3
        return (
            mechanisms.laplace_mechanism(first, bounded, 1.0),
            mechanisms.grid_laplace_mechanism(second, bounded, 1.0, max_magnitude=1.0),
            mechanisms.randomized_response(third, labels, 3, 1.0),
        )

    clients = jax.vmap(one)
    run = lambda fn: fn(jax.random.split(_key(), 2), jnp.full((2, 5), 0.5))
    chex.assert_trees_all_equal(run(over_a_mesh(clients)), run(jax.jit(clients)))


def test_gradient_passes_the_noise():
    def release(x):
        bounded = mechanisms.bounded_value(x, l1=1.0)
        return jnp.sum(mechanisms.laplace_mechanism(_key(), bounded, 1.0) ** 2)

    x = jnp.array([1.0, -2.0])
    noise = mechanisms.laplace_noise(_key(), (2,), 1.0)
    np.testing.assert_allclose(jax.grad(release)(x), 2 * (x + noise), rtol=1e-6)


def test_sensitivities_by_hand():
    # 30 samples of 2 channels in a range of width 5: L1 60·5, L2 √60·5.
    case = cases.CASES["window"]
    bounded = mechanisms.clip_to_range(jnp.zeros(case.shape), case.low, case.high)
    assert bounded.l1_sensitivity == 300.0
    assert bounded.l2_sensitivity == pytest.approx(60**0.5 * 5)
    assert bounded.linf_sensitivity == 5.0
    # L2 of 3 over 4 numbers: L1 at most √4 · 3.
    bounded = _unit(4, l2=3.0)
    assert bounded.l1_sensitivity == 6.0 and bounded.linf_sensitivity == 3.0
    # L1 8 and L∞ 2 leave an L2 of √(8 · 2).
    assert _unit(100, l1=8.0, linf=2.0).l2_sensitivity == pytest.approx(4.0)
    assert _unit(9, l1=8.0).l2_sensitivity == 8.0
    # Sensitivity 0 means that nothing depends on the data, so no noise is added.
    empty = mechanisms.clip_to_range(jnp.zeros((0, 3)), 0.0, 1.0)
    assert empty.l1_sensitivity == empty.l2_sensitivity == empty.linf_sensitivity == 0
    still = mechanisms.laplace_mechanism(_key(), _unit(3, l1=0.0), 1.0)
    assert not jnp.any(still)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float64, (2, 6), elements=st.floats(-9, 9)),
    st.sets(st.sampled_from(["l1", "l2", "linf"]), min_size=1),
)
def test_derived_sensitivities_hold_for_every_difference(pair, names):
    difference = pair[0] - pair[1]
    norms = {
        "l1": np.abs(difference).sum(),
        "l2": np.linalg.norm(difference),
        "linf": np.abs(difference).max(),
    }
    bounded = mechanisms.bounded_value(pair[0], **{n: float(norms[n]) for n in names})
    for name, norm in norms.items():
        assert getattr(bounded, f"{name}_sensitivity") >= norm * (1 - 1e-12)
    # Not looser than the norms themselves if those are known.
    for name in names:
        assert getattr(bounded, f"{name}_sensitivity") <= norms[name] * (1 + 1e-12)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_clipped_values_stay_in_the_range_that_the_sensitivity_knows(dtype):
    # 0.3 is rounded up in bfloat16 and float32; the range follows its rounded ends.
    x = jnp.array([-jnp.inf, jnp.inf, jnp.nan, 0.1, -7.0, 7.0], dtype)
    bounded = mechanisms.clip_to_range(x, -0.1, 0.3)
    value = np.asarray(bounded.value, np.float64)
    assert bounded.value.dtype == dtype
    assert value.max() - value.min() == bounded.linf_sensitivity
    assert value[2] == value[0] and value[3] == float(x[3])
    assert mechanisms.clip_to_range(jnp.array([3, 9]), 0, 5).value.dtype == jnp.float32


def test_a_bounded_value_is_a_pytree():
    bounded = jax.jit(lambda x: mechanisms.clip_to_range(x, 0.0, 2.0))(jnp.ones(4))
    assert isinstance(bounded, BoundedValue)
    assert float(bounded.l1_sensitivity) == 8.0
    noisy = jax.jit(mechanisms.laplace_mechanism)(_key(), bounded, 4.0)
    expected = 1 + mechanisms.laplace_noise(_key(), (4,), 2.0)
    np.testing.assert_allclose(noisy, expected, rtol=1e-6)


def test_says_what_was_wrong():
    bounded = _unit(3, l1=1.0)
    legacy = jax.random.key_data(_key())
    for call in (
        lambda: mechanisms.laplace_noise(legacy, (3,), 1.0),
        lambda: mechanisms.gaussian_noise(legacy, (3,), 1.0),
        lambda: mechanisms.discrete_laplace_noise(legacy, (3,), 1),
        lambda: mechanisms.laplace_mechanism(legacy, bounded, 1.0),
        lambda: mechanisms.gaussian_mechanism(legacy, bounded, 1.0),
        lambda: mechanisms.randomized_response(legacy, jnp.zeros(2, int), 2, 1.0),
        lambda: mechanisms.exponential_mechanism(legacy, bounded, 1.0),
        lambda: mechanisms.report_noisy_max(legacy, bounded, 1.0),
    ):
        with pytest.raises(TypeError, match=r"key must be a typed PRNG key such as"):
            call()
    with pytest.raises(ValueError, match="epsilon must be > 0, got 0"):
        mechanisms.laplace_mechanism(_key(), bounded, 0)
    with pytest.raises(ValueError, match="noise_multiplier must be >= 0, got -1"):
        mechanisms.gaussian_mechanism(_key(), bounded, -1)
    with pytest.raises(ValueError, match="scale must be >= 0, got -2.0"):
        mechanisms.laplace_noise(_key(), (), -2.0)
    with pytest.raises(ValueError, match="stddev must be >= 0, got -2.0"):
        mechanisms.gaussian_noise(_key(), (), -2.0)
    with pytest.raises(ValueError, match="one of l1, l2 and linf must be given"):
        mechanisms.bounded_value(jnp.ones(3))
    with pytest.raises(ValueError, match="l2 must be >= 0, got -1.0"):
        mechanisms.bounded_value(jnp.ones(3), l2=-1.0)
    with pytest.raises(ValueError, match="low must be below high .*, got 1.0 and 1.0"):
        mechanisms.clip_to_range(jnp.ones(3, jnp.bfloat16), 1.0, 1.0001)


def test_one_number_bounds_the_whole_value():
    with pytest.raises(ValueError, match=r"l1 must be a scalar .* got shape \(3,\)"):
        mechanisms.bounded_value(jnp.zeros(3), l1=jnp.full(3, 0.1))
    with pytest.raises(ValueError, match=r"high must be a scalar, got shape \(2,\)"):
        mechanisms.clip_to_range(jnp.zeros(2), 0.0, jnp.ones(2))


def test_a_given_sensitivity_is_not_rounded():
    rng = np.random.default_rng(0)
    for bound in rng.uniform(0.1, 3.0, 200).tolist():
        for name in ("l1", "l2", "linf"):
            bounded = mechanisms.bounded_value(jnp.zeros(1), **{name: bound})
            assert getattr(bounded, f"{name}_sensitivity") == bound


@pytest.mark.parametrize("epsilon", [-1.0, jnp.nan])
def test_a_traced_budget_out_of_range_spoils_what_is_released(epsilon):
    bounded = mechanisms.bounded_value(jnp.array([3.0, 90.0]), linf=1.0)
    key = jax.random.key(0)
    noisy = jax.jit(mechanisms.laplace_mechanism)(key, bounded, jnp.float32(epsilon))
    assert np.isnan(noisy).all()
    best = jax.jit(mechanisms.exponential_mechanism)(
        jax.random.key(1), bounded, jnp.float32(epsilon)
    )
    assert best == -1


def test_a_value_without_sensitivities_is_refused():
    for mechanism in (mechanisms.laplace_mechanism, mechanisms.gaussian_mechanism):
        with pytest.raises(TypeError, match="bounded must be a BoundedValue"):
            mechanism(jax.random.key(0), jnp.zeros(2), 1.0)
    with pytest.raises(ValueError, match=r"truth_probability must be in \[1/2, 1\]"):
        mechanisms.randomized_response_epsilon(0.1, 2)
