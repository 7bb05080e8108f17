"""Limits of floats: the largest noise, and effects of rounding and strictness."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxanon.kernels import mechanisms


def _key():
    return jax.random.key(0)


@pytest.mark.parametrize(
    "noise, law, ends",
    [
        (mechanisms.laplace_noise, stats.laplace, (14.0, 16.64)),
        (mechanisms.gaussian_noise, stats.norm, (4.9, 5.5)),
    ],
)
def test_noise_ends_where_the_bits_of_a_float_end(noise, law, ends):
    # |u| is at most 1 - 2^-24. Some of 2^24 numbers come near that end, none beyond.
    assert law.ppf(1 - 2.0**-25) < ends[1]
    assert 2 * law.sf(ends[0]) * 2**24 > 10
    largest = jax.jit(lambda key: jnp.max(jnp.abs(noise(key, (1 << 24,), 1.0))))
    assert ends[0] < largest(jax.random.key(0)) < ends[1]


def test_noise_asked_for_in_float64_is_drawn_in_it():
    with jax.enable_x64():
        for noise in (mechanisms.laplace_noise, mechanisms.gaussian_noise):
            drawn = np.asarray(noise(jax.random.key(0), (100,), 1.0, float))
            assert drawn.dtype == np.float64
            assert (drawn != drawn.astype(np.float32)).mean() > 0.9


def test_half_precision_under_strict_promotion():
    with jax.numpy_dtype_promotion("strict"):
        noisy = mechanisms.laplace_noise(jax.random.key(0), (2,), 1.0, jnp.bfloat16)
    assert noisy.dtype == jnp.bfloat16


def test_values_that_a_program_puts_together():
    both = jax.jit(lambda x: mechanisms.bounded_value([x, 2 * x], l1=1.0).value)
    assert both(1.0).tolist() == [1.0, 2.0]


def test_whole_numbers_that_float32_would_round_are_refused_or_cut():
    # 2^24 + 1 would round to 2^24, or to 2^24 + 2 if a neighbour adds one.
    most = 2**24
    exact = mechanisms.bounded_value(np.array([most, -most, 3]), l1=1)
    assert exact.value.tolist() == [most, -most, 3]
    for value in (np.array([most + 1]), [-most - 1], np.array([2**40], np.uint64)):
        with pytest.raises(ValueError, match="integers up to 16777216 in magnitu"):
            mechanisms.bounded_value(value, l1=1)
    values = jnp.array([most + 1, most + 3, -most - 9, most - 1])
    bound = jax.jit(lambda value: mechanisms.bounded_value(value, l1=1).value)
    assert bound(values).tolist() == [most, most, -most, most - 1]
    assert mechanisms.bounded_value(np.zeros(0, int), l1=1).value.shape == (0,)


def test_numbers_from_numpy_are_held_to_their_bounds():
    value = mechanisms.bounded_value(jnp.ones(3), l1=1.0)
    for call, message in (
        (lambda: mechanisms.laplace_mechanism(_key(), value, np.array(0)), "> 0"),
        (lambda: mechanisms.gaussian_noise(_key(), (2,), np.float32(-1)), ">= 0"),
        (lambda: mechanisms.bounded_value(jnp.ones(2), l2=np.array(-1)), ">= 0"),
        (lambda: mechanisms.clip_to_range(1.0, np.array(1), np.array(0)), "low must"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
