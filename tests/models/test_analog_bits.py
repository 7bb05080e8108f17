"""Analog bits: round trips, noise, and invalid values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.models.conditions import AnalogBits, check_values, parse_categories

BITS = AnalogBits((0, 2, 5), mean=(3.0, 0.5, 2.0), std=(2.0, 0.25, 1.5))


def physical(seed=0):
    random = np.random.default_rng(seed)
    measured = random.normal(size=(4, 8))
    parts = measured, random.integers(0, 2, (4, 8)), random.integers(0, 5, (4, 8))
    return np.stack(parts, axis=-1).astype(np.float32)


def standardised(windows):
    return jnp.asarray((windows - np.float32(BITS.mean)) / np.float32(BITS.std))


@pytest.mark.slow
def test_there_and_back_with_noise_short_of_the_sign():
    windows = standardised(physical())
    encoded = BITS.encode(windows)
    assert encoded.shape == (4, 8, BITS.channels) == (4, 8, 1 + 1 + 3)
    np.testing.assert_array_equal(np.abs(encoded[..., 1:]), 1)
    noise = jax.random.uniform(
        jax.random.key(0), encoded.shape, minval=-0.9, maxval=0.9
    )
    back = BITS.decode(encoded + noise.at[..., 0].set(0))
    np.testing.assert_allclose(back, windows, rtol=1e-5, atol=1e-6)
    leaving = (
        back * np.float32(BITS.std)[None, None] + np.float32(BITS.mean)[None, None]
    )
    leaving = BITS.whole(leaving)
    np.testing.assert_array_equal(leaving[..., 1:], physical()[..., 1:])
    np.testing.assert_allclose(
        leaving[..., 0], physical()[..., 0], rtol=1e-5, atol=1e-5
    )


def test_bits_by_hand():
    # 5 values take 3 bits: 4 is 001, lowest first; 111 is 7, hence the last value.
    bits = AnalogBits((5,), (0.0,), (1.0,))
    np.testing.assert_array_equal(bits.encode(jnp.array([[4.0]])), [[-1, -1, 1]])
    got = bits.decode(jnp.array([[0.2, 0.1, 3.0], [0.2, -0.1, -3.0]]))
    np.testing.assert_array_equal(got, [[4], [1]])


def test_whole_values_have_no_sign_of_a_zero():
    bits = AnalogBits((2, 0), (0.0, 0.0), (1.0, 1.0))
    windows = jnp.array([[-0.3, -0.3], [0.9, 0.9]])
    made = np.asarray(jax.jit(bits.whole)(windows))
    np.testing.assert_allclose(made, [[0, -0.3], [1, 0.9]], rtol=1e-6)
    assert not np.signbit(made[0, 0])


def test_what_is_out_of_range_is_held_in_it():
    bits = AnalogBits((3,), (0.0,), (1.0,))
    got = bits.decode(bits.encode(jnp.array([[9.0], [-4.0], [1.4]])))
    np.testing.assert_array_equal(got, [[2], [0], [1]])


def test_patterns_name_channels():
    channels = ("door on", "bed on", "mode", "heat")
    assert parse_categories(channels, ()) == (0, 0, 0, 0)
    assert parse_categories(channels, ("* on", "bed on=3", "mode=17")) == (2, 3, 17, 0)
    with pytest.raises(
        ValueError, match=r"must name channels among \('door on'.*'lamp'"
    ):
        parse_categories(channels, ("lamp",))
    for few in ("mode=1", "mode=x"):
        with pytest.raises(ValueError, match="at least 2 values, such as 'mode=4'"):
            parse_categories(channels, (few,))


@pytest.mark.parametrize("value", [0.5, -1, 5])
def test_says_which_channel_holds_something_else(value):
    windows = physical()
    names = ("heat", "door", "mode")
    check_values(windows, names, BITS.values)
    windows[1, 3, 2] = value
    with pytest.raises(
        ValueError, match=f"'mode' .* from 0 to 4, got {value}.*declare more va"
    ):
        check_values(windows, names, BITS.values)
