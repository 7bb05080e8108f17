"""Simulated households have the statistics of the model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import energy
from jaxanon.energy import OFF, ON, STANDBY, simulator
from jaxanon.energy.simulator import APPLIANCES, Appliance, households


@pytest.fixture(scope="module")
def homes():
    return households(jax.random.key(0), 40, 30)


def test_power_is_the_mode_s_level_and_noise(homes):
    assert homes.power.dtype == jnp.float32 and homes.power.shape == (40, 43200, 6)
    assert set(np.unique(homes.mode)) == {OFF, STANDBY, ON}
    assert not homes.power[homes.mode == OFF].any()
    for mode, level in ((STANDBY, homes.standby_w), (ON, homes.on_w)):
        ratio = (homes.power / level[:, None])[homes.mode == mode]
        assert abs(ratio.mean() - 1) < 1e-3
        assert abs(ratio.std() - simulator.METER_NOISE) < 1e-3


@pytest.mark.parametrize("device", range(len(APPLIANCES)))
def test_uses_are_as_many_and_as_long_as_said(homes, device):
    on = np.asarray(homes.mode[..., device] == ON)
    begun = (on[:, 1:] & ~on[:, :-1]).sum()
    one, days = APPLIANCES[device], 40 * 30
    # Overlapping uses count once; the counts vary by 3 %.
    busy = one.uses * one.minutes / 1440
    assert one.uses * (1 - 3 * busy) - 0.15 < begun / days < one.uses + 0.15
    assert on.sum() / begun == pytest.approx(one.minutes, rel=0.12)


def test_uses_gather_about_the_peak(homes):
    on = np.asarray(homes.mode[..., 4] == ON).reshape(40, 30, 24, 60)
    by_hour = on.sum(axis=(0, 1, 3))
    assert abs(int(by_hour.argmax()) - 8) <= 2
    assert by_hour[20] < by_hour[8] / 5


def test_homes_differ_and_the_first_of_many_are_those_of_few(homes):
    spread = np.log(np.asarray(homes.on_w)).std(axis=0)
    np.testing.assert_allclose(spread, simulator.LEVEL_STD, rtol=0.5)
    few = households(jax.random.key(0), 2, 30)
    np.testing.assert_array_equal(few.mode, homes.mode[:2])


def test_modes_are_told_again_from_power_alone(homes):
    levels = energy.find_levels(np.asarray(homes.power[:, : 10 * 1440]))
    shape = homes.power.shape
    wide = energy.Levels(*(jnp.broadcast_to(one[:, None], shape) for one in levels))
    agree = np.asarray(energy.classify_mode(homes.power, wide) == homes.mode)
    known = levels.standby > 0  # In a few homes on is below three times standby.
    assert known.mean() > 0.95
    assert np.moveaxis(agree, 1, 2)[known].mean() > 0.999


def test_refusals():
    key = jax.random.key(0)
    with pytest.raises(ValueError, match="num_homes must be >= 1, got 0"):
        households(key, 0, 1)
    with pytest.raises(ValueError, match="days must be >= 1, got 0"):
        households(key, 1, 0)
    with pytest.raises(ValueError, match="appliances must not be empty"):
        households(key, 1, 1, ())
    with pytest.raises(TypeError, match="key must be a typed PRNG key"):
        households(jnp.zeros(2, jnp.uint32), 1, 1, (Appliance("a", 1, 2, 3, 4, 5),))
