"""Meters: filled gaps, and error messages that name home and device."""

import numpy as np
import pytest

from jaxanon import energy
from jaxanon.energy import homes


def home(column, other=None):
    other = np.zeros(len(column)) if other is None else other
    return np.stack([np.asarray(column, float), other], axis=1)[None]


def test_gaps_are_the_last_minute_before_and_at_the_start_the_first():
    nan = np.nan
    meters = energy.clean_power(home([nan, nan, 5, nan, 7, nan]))
    assert meters.power[0, :, 0].tolist() == [5, 5, 5, 5, 7, 7]
    assert meters.power.dtype == np.float32 and meters.present.all()


def test_a_device_without_a_minute_is_not_there():
    meters = energy.clean_power(home([1, 2, 3], np.full(3, np.nan)))
    assert meters.present.tolist() == [[True, False]]
    assert not meters.power[0, :, 1].any()


def test_what_is_given_stays_as_it_is():
    power = home([1, np.nan, 3])
    energy.clean_power(power)
    assert np.isnan(power[0, 1, 0])


@pytest.mark.parametrize("where", ["start", "middle", "end"])
def test_as_many_missing_minutes_as_are_bridged(where):
    parts = {"start": (0, 5), "middle": (5, 5), "end": (5, 0)}[where]
    column = lambda gap: np.repeat([1, np.nan, 1], [parts[0], gap, parts[1]])
    assert (
        energy.clean_power(home(column(homes.MAX_GAP_MIN))).power[0, :, 0] == 1
    ).all()
    with pytest.raises(ValueError, match="got 16 for device 0 of home 0 from"):
        energy.clean_power(home(column(homes.MAX_GAP_MIN + 1)))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (-2.0, "got -2.0 W for oven of Elm 3 in minute 1; reverse"),
        (np.inf, "got infinity for oven of Elm 3 in minute 1; mark it as missing"),
    ],
)
def test_bad_power_is_refused_by_name(bad, message):
    with pytest.raises(ValueError) as raised:
        energy.clean_power(home([1, bad, 3]), ["Elm 3"], ["oven", "lamp"])
    assert message in str(raised.value)


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="power must hold real numbers, got bool"):
        energy.clean_power(np.ones((1, 2, 3), bool))
    with pytest.raises(ValueError, match=r"non-empty .* got shape \(1, 0, 3\)"):
        energy.clean_power(np.ones((1, 0, 3)))
