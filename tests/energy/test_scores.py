"""Summaries of savings, compared with sums by hand."""

import numpy as np
import pytest

from jaxanon import energy
from jaxanon.energy import AgentRecord, Homes, scores

DAY = 1440


def homes(*, dates=None):
    """Two homes of two devices for two days; the second lacks its second device.

    Each draws 6 W (standby) in its first hour, 60 W in its second, otherwise 0 W.
    """
    watts = np.zeros((2, 2 * DAY, 2), np.float32)
    for start in (0, DAY):
        watts[:, start : start + 60], watts[:, start + 60 : start + 120] = 6, 60
    watts[1, :, 1] = np.nan
    kinds = np.array([[0, 1], [1, 0]], np.int32)
    return Homes(watts, kinds, ("tv", "pc"), ("a", "b"), dates)


def did(neighborhood, **changed):
    """Returns records of agents that switch off devices unless forecast to be on."""
    load = np.asarray(neighborhood.power)
    mode = np.asarray(
        energy.classify_mode(neighborhood.power, energy.Levels(6.0, 60.0))
    )
    action = np.where(mode == 2, 2, 0)
    return AgentRecord(load, load + 1, load + 2, mode, action)._replace(**changed)


def test_sums_and_shares_by_hand():
    """Agent 0 leaves half of day 2's standby on; agent 2 is off for 6 minutes in use.

    Of 3 devices 6 Wh a day each; a quarter of an agent's 12 Wh are 3 Wh.
    """
    made = homes()
    neighborhood = energy.build_neighborhood(made.power, made.kinds)
    one = did(neighborhood)
    action = one.action.copy()
    action[0, DAY : DAY + 30], action[2, 60:66] = 1, 0
    found = scores.scores(one._replace(action=action), neighborhood, made, cents=10.0)
    total = found["overall"]
    assert total["standby_kwh"] == pytest.approx(0.036)
    assert total["saved_kwh"] == pytest.approx(0.033)
    assert total["saved_share"] == pytest.approx(33 / 36)
    assert total["cents_fixed"] == pytest.approx(0.33)
    assert (total["in_use_minutes"], total["switched_off_minutes"]) == (360, 6)
    assert total["switched_off_share"] == pytest.approx(6 / 360)
    assert total["optimal_share"] == pytest.approx(1 - 36 / (3 * 2 * DAY))
    days = [row["saved_kwh"] for row in found["per_day"]]
    assert days == pytest.approx([0.018, 0.015])
    assert [row["day"] for row in found["per_day"]] == [1, 2]
    hours = {row["hour"]: row["saved_kwh"] for row in found["per_hour"]}
    assert hours[0] == pytest.approx(0.033) and len(hours) == 24
    assert sum(hours.values()) == pytest.approx(0.033)
    shares = {row["home"]: row["saved_share"] for row in found["per_home"]}
    assert shares == {"a": pytest.approx(21 / 24), "b": 1.0}
    # The second home's only device is of the second kind.
    kinds = {
        row["kind"]: (row["devices"], row["saved_kwh"]) for row in found["per_kind"]
    }
    assert kinds == {"tv": (1, pytest.approx(0.009)), "pc": (2, pytest.approx(0.024))}
    # At 0:00 to 1:00 of a cosine that is cheapest at 4:00: its mean by the minute.
    minutes = np.arange(60)
    rise = (1 - np.cos(2 * np.pi * (minutes - 240) / DAY)) / 2
    price = 0.08 + (20 - 0.08) * rise
    whole, half = price.sum() * 6 / 60000, price[30:].sum() * 6 / 60000
    expected = 5 * whole + half
    assert total["cents_variable"] == pytest.approx(expected, rel=1e-4)


def test_forecasts_are_measured_beside_persistence():
    made = homes()
    neighborhood = energy.build_neighborhood(made.power, made.kinds)
    found = scores.scores(did(neighborhood), neighborhood, made)
    assert found["forecast"]["model"]["mae"] == pytest.approx(1)
    assert found["forecast"]["model"]["mase"] == pytest.approx(0.5)
    assert found["forecast"]["persistence"]["rmse"] == pytest.approx(2)
    perfect = did(neighborhood)._replace(persistence=np.asarray(neighborhood.power))
    told = scores.scores(perfect, neighborhood, made)
    assert told["forecast"]["model"]["mase"] is None  # Infinite, which JSON lacks.
    assert told["per_kind"][0]["mase"] is None


def test_months_are_the_calendar_s_or_thirty_days():
    january = np.array([["2015-01-31", "2015-02-01"]] * 2, "datetime64[D]")
    january[1] += np.timedelta64(1, "D")
    made = homes(dates=january)
    neighborhood = energy.build_neighborhood(made.power, made.kinds)
    found = scores.scores(did(neighborhood), neighborhood, made)["per_month"]
    assert [(row["month"], row["standby_kwh"]) for row in found] == [
        ("2015-01", pytest.approx(0.012)),
        ("2015-02", pytest.approx(0.024)),
    ]
    none = scores.scores(did(neighborhood), neighborhood, homes(), first_day=29)
    assert [row["month"] for row in none["per_month"]] == ["month 1", "month 2"]
    assert [row["day"] for row in none["per_day"]] == [30, 31]


def test_shares_of_nothing_are_none():
    made = homes()
    neighborhood = energy.build_neighborhood(
        np.zeros_like(np.nan_to_num(made.power)), made.kinds
    )
    total = scores.scores(did(neighborhood), neighborhood, made)["overall"]
    assert total["saved_share"] is None and total["switched_off_share"] is None
    assert total["optimal_share"] == 1


def test_the_example_is_the_median_home_on_its_busiest_day():
    """Three homes save all, none and half; all have most use on day 2."""
    watts = np.zeros((3, 2 * DAY, 1), np.float32)
    watts[:, :60], watts[:, 100:110], watts[:, DAY : DAY + 20] = 6, 60, 60
    kinds = np.zeros((3, 1), np.int32)
    dates = np.array([["2015-01-30", "2015-01-31", "2015-02-01"]] * 3, "datetime64[D]")
    made = Homes(watts, kinds, ("tv",), ("all", "none", "half"), dates)
    neighborhood = energy.build_neighborhood(made.power)
    one = did(neighborhood)
    action = one.action.copy()
    action[1, :60], action[2, :30] = 1, 1
    found = scores.example(one._replace(action=action), neighborhood, made, first_day=1)
    assert (found["home"], found["day"], found["date"]) == ("half", 3, "2015-02-01")
    (device,) = found["devices"]
    assert device["name"] == "tv" and device["load"][:20] == [60.0] * 20
    assert device["mode"][:21] == [2] * 20 + [0] and len(device["action"]) == DAY


def test_the_example_is_of_a_home_that_has_a_device():
    """Two of three homes have no devices, and the median saving is theirs."""
    watts = np.full((3, 2 * DAY, 2), np.nan, np.float32)
    watts[2] = homes().power[0]
    kinds = np.tile([0, 1], (3, 1))
    made = Homes(watts, kinds, ("tv", "pc"), ("none", "neither", "both"), None)
    neighborhood = energy.build_neighborhood(watts, kinds)
    found = scores.example(did(neighborhood), neighborhood, made)
    assert found["home"] == "both" and len(found["devices"]) == 2


def test_devices_whose_standby_is_unknown_are_named():
    made = homes()
    made.power[0, :, 1] = 9
    neighborhood = energy.build_neighborhood(made.power, made.kinds)
    assert scores.find_unknown_standby(neighborhood, ["a1", "a2", "b1", "b2"]) == ["a2"]
