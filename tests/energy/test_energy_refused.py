"""Invalid arguments that earlier versions accepted or crashed on."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import energy

NOISY = energy.PFDRLConfig(noise_multiplier=20.0)


@pytest.mark.parametrize("hours", [math.nan, math.inf, 0, -12.0, "12"])
@pytest.mark.parametrize("name", ["beta_hours", "gamma_hours"])
def test_hours_between_broadcasts_that_are_none(name, hours):
    with pytest.raises((TypeError, ValueError), match="hours must be"):
        energy.broadcast_epsilon(NOISY, 24, 1e-5, **{name: hours})
    with pytest.raises((TypeError, ValueError), match="hours must be"):
        energy.num_broadcasts(NOISY, 24, hours)


def test_what_costs_nothing_is_asked_within_range_all_the_same():
    """δ and α are validated even without broadcasts or noise."""
    for config, slots in ((NOISY, 0), (energy.PFDRLConfig(), 24)):
        with pytest.raises(ValueError, match="delta must be"):
            energy.broadcast_epsilon(config, slots, 2.0)
        with pytest.raises(ValueError, match="alpha must be"):
            energy.broadcast_epsilon(config, slots, 1e-5, alpha=-1)


def test_nobody_has_days_and_hours_too():
    assert energy.saving_per_day(jnp.zeros((0, 2880))).shape == (0, 2)
    assert energy.saving_per_hour(jnp.zeros((0, 2880))).shape == (0, 24)


def test_minutes_of_any_whole_kind_are_minutes():
    rows = (["a"] * 1440, ["tv"] * 1440)
    power = np.arange(1440.0)
    want = energy.from_readings(*rows, np.arange(1440), power, 1)
    for kind in (np.uint64, np.uint16, np.int32):
        found = energy.from_readings(*rows, np.arange(1440).astype(kind), power, 1)
        np.testing.assert_array_equal(found.power, want.power)
    times = np.arange(1440).astype("datetime64[m]")
    times[-1] = "NaT"
    with pytest.raises(ValueError, match="minute must be valid times, got NaT"):
        energy.from_readings(*rows, times, power, 1)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((["a", "b"], None), "homes must have length 1"),
        ((["a"], ["tv"]), "devices must have length 2"),
        ((["a"], []), "devices must have length 2"),
        ((["a"], [["tv", "pc"], ["tv", "pc"]]), "lists of devices must have length 1"),
        ((["a"], [["tv"]]), "devices must have length 2"),
    ],
)
def test_meters_have_a_name_each(names, said):
    """Wrong numbers of names raise an error."""
    with pytest.raises(ValueError, match=said):
        energy.clean_power(np.array([[[1.0, -1.0]]]), *names)


@pytest.mark.parametrize("name", ["homes", "devices", "days", "test_days"])
def test_numbers_of_homes_and_days_are_whole_and_no_file_is_blamed(tmp_path, name):
    path = tmp_path / "own.npz"
    minutes, rows = np.arange(2880), np.full(2880, "a")
    np.savez(path, home=rows, device=rows, minute=minutes, power=np.ones(2880))
    energy.load_homes(path, days=1, test_days=1)
    options = {"days": 1, "test_days": 1} | {name: 1.5}
    with pytest.raises(TypeError, match=f"^{name} must be"):
        energy.load_homes(path, **options)
