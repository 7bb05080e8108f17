"""Classification of modes, and estimation of levels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon import energy
from jaxanon.energy import OFF, ON, STANDBY, Levels


def test_nearest_level_by_hand():
    # Standby 4 W, on 100 W: thresholds 2 W and √400 = 20 W belong to the higher mode.
    power = jnp.array([0.0, 1.9, 2.0, 4.0, 19.9, 20.0, 100.0, 900.0, -3.0])
    found = jax.jit(energy.classify_mode)(power, Levels(4.0, 100.0))
    assert found.tolist() == [OFF, OFF, STANDBY, STANDBY, STANDBY, ON, ON, ON, OFF]


@given(
    st.floats(0.25, 25.0),
    st.floats(1.25, 500.0),
    st.sampled_from([0.9, 0.95, 1.0, 1.05, 1.1]),
)
def test_the_paper_s_bands_lie_on_their_side_of_the_borders(standby, ratio, factor):
    levels = Levels(np.float32(standby), np.float32(standby * ratio))
    power = np.float32([0, factor * levels.standby, factor * levels.on])
    assert energy.classify_mode(power, levels).tolist() == [OFF, STANDBY, ON]


def test_where_standby_cannot_be_told_all_that_is_measured_is_on():
    power = jnp.array([0.0, 0.19, 0.2, 1.0, 9.0])
    found = energy.classify_mode(power, Levels(0.0, 9.0))
    assert found.tolist() == [OFF, OFF, ON, ON, ON]


def minutes(*parts):
    """Noise of 2 % on (level, minutes), as float[1, minutes, 1]."""
    rng = np.random.default_rng(0)
    rows = [level * rng.normal(1, 0.02, count) for level, count in parts]
    return np.concatenate(rows)[None, :, None]


@pytest.mark.parametrize(
    ("parts", "standby", "on"),
    [
        # A television: off, 0.7 W and 140 W.
        ([(0, 300), (0.7, 900), (140, 240)], 0.7, 140),
        # Never off.
        ([(6, 1200), (64, 100)], 6, 64),
        # A router: one level, so on.
        ([(9, 1440)], 0, 9),
        # A kettle: only 0 W and 2 kW.
        ([(0, 1400), (2000, 40)], 0, 2000),
        # 60 W is a pump, not standby.
        ([(0, 700), (60, 300), (2000, 200)], 0, 60),
        # Four minutes of 1,440 are transients, not standby.
        ([(0, 1300), (5, 4), (500, 136)], 0, 500),
        # Below the resolution of the meter.
        ([(0.05, 1300), (40, 140)], 0, 40),
        ([(0, 1440)], 0, 0),
    ],
)
def test_levels_of_devices(parts, standby, on):
    found = energy.find_levels(minutes(*parts))
    assert found.standby.shape == found.on.shape == (1, 1)
    np.testing.assert_allclose(found.standby[0, 0], standby, rtol=0.01)
    np.testing.assert_allclose(found.on[0, 0], on, rtol=0.02)


def test_a_device_that_never_changes_is_on():
    found = energy.find_levels(np.full((1, 50, 1), 9.0))
    assert found.standby[0, 0] == 0 and found.on[0, 0] == 9


def test_twice_is_too_near():
    # A computer, busy or idle.
    found = energy.find_levels(minutes((12, 700), (24, 700)))
    assert found.standby[0, 0] == 0 and 12 < found.on[0, 0] < 24


def test_every_device_of_every_home_has_its_own():
    power = np.zeros((2, 100, 2), np.float32)
    power[0, :50, 0], power[0, 50:, 0] = 1, 30
    power[1, :50, 1], power[1, 50:, 1] = 3, 90
    found = energy.find_levels(power)
    np.testing.assert_array_equal(found.standby, [[1, 0], [0, 3]])
    np.testing.assert_array_equal(found.on, [[30, 0], [0, 90]])


@pytest.mark.parametrize("shape", [(3, 4), (1, 0, 2)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"power must be float\[homes, minutes, dev"):
        energy.find_levels(np.zeros(shape))
