"""Broadcasts, their ε, and days until new homes save, for random settings."""

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from jaxanon import energy

few = functools.partial(settings, deadline=None)
HOURS = st.sampled_from([1.0, 1.6, 5.0, 12.0, 30.0])
SLOTS = st.sampled_from([10, 30, 60])


@functools.cache
def config(noise=0.0, slot_min=60, method="pfdrl"):
    dqn = energy.DQNConfig(num_envs=10)
    return energy.PFDRLConfig(
        method=method, noise_multiplier=noise, slot_min=slot_min, dqn=dqn
    )


@given(SLOTS, HOURS, st.integers(0, 2000))
def test_broadcasts_are_counted_one_slot_after_the_other(slot_min, hours, num_slots):
    every = max(1, round(hours * 60 / slot_min))
    counted = sum((slot + 1) % every == 0 for slot in range(num_slots))
    found = energy.num_broadcasts(config(slot_min=slot_min), num_slots, hours)
    assert found == counted


@given(st.integers(max_value=-1))
def test_a_negative_number_of_slots_is_refused(wrong):
    with pytest.raises(ValueError, match=f"num_slots must be >= 0, got {wrong}"):
        energy.num_broadcasts(config(), wrong, 12.0)
    with pytest.raises(TypeError, match="num_slots must be a Python int"):
        energy.num_broadcasts(config(), wrong / 2, 12.0)


def delta_of(epsilon, mu):
    """δ of a Gaussian mechanism, in closed form (Dong, Roth and Su, corollary 2.13)."""
    above = stats.norm.cdf(-epsilon / mu + mu / 2)
    log = epsilon + stats.norm.logcdf(-epsilon / mu - mu / 2)
    return above - math.exp(log)


@few(max_examples=15)
@given(
    st.sampled_from([2.0, 8.0, 40.0]), st.sampled_from([0, 5, 24, 700]),
    st.sampled_from([1e-7, 1e-4, 0.01]), st.integers(0, 6), HOURS, HOURS,
    st.sampled_from([1, 4]),
)  # fmt: skip
def test_epsilon_is_that_of_one_gaussian_mechanism(
    noise, num_slots, delta, alpha, beta, gamma, devices
):
    told = functools.partial(
        energy.broadcast_epsilon, num_slots=num_slots, delta=delta, alpha=alpha,
        beta_hours=beta, gamma_hours=gamma, devices=devices,
    )  # fmt: skip
    hours = [beta, gamma] if alpha else [beta]
    releases = sum(
        energy.num_broadcasts(config(noise), num_slots, one) for one in hours
    )
    if not releases:
        assert told(config(noise)) == told(config()) == 0
        return
    assert told(config()) == math.inf
    found, mu = told(config(noise)), math.sqrt(releases * devices) / noise
    # An upper bound on ε, which is tight where it is below 90.
    assert delta_of(found, mu) <= delta * (1 + 1e-6)
    if mu <= 10 and found > 0.02:
        assert delta_of(0.98 * found - 0.01, mu) > delta
    assert told(config(2 * noise)) <= found


@given(
    st.sampled_from(["local", "cloud", "fl", "frl"]),
    st.integers(max_value=0),
    st.floats().filter(lambda x: not 0 < x < 1),
)
def test_a_budget_of_nothing_is_refused(method, devices, delta):
    told = functools.partial(energy.broadcast_epsilon, num_slots=24)
    with pytest.raises(ValueError, match=f"method must be 'pfdrl', got '{method}'"):
        told(config(method=method), delta=1e-5)
    with pytest.raises(ValueError, match=f"devices must be >= 1, got {devices}"):
        told(config(1.0), delta=1e-5, devices=devices)
    with pytest.raises(ValueError, match="delta must be"):
        told(config(1.0), delta=delta)


def share(part, whole):
    return Fraction(int(part), int(whole)) if whole else Fraction(0)


def days_by_hand(pairs, least, last):
    """Returns the days of one home by exact fractions; ``pairs`` are (part, whole)."""
    short = np.zeros(len(pairs[0][0]), bool)
    for part, whole in pairs:
        final = share(sum(part[-last:]), sum(whole[-last:]))
        short |= [
            bool(b) and share(a, b) < least * final
            for a, b in zip(part, whole, strict=True)
        ]
    saved, standby = pairs[0]
    final = share(sum(saved[-last:]), sum(standby[-last:]))
    for day in range(len(short)):
        if final and standby[day] and not any(short[day:]):
            return day + 1, final
    return 0, final


@few(max_examples=80)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3]), st.sampled_from([1, 4, 6]),
    st.integers(0, 2), st.sampled_from([(1, 2), (9, 10), (1, 1)]), st.booleans(),
    st.data(),
)  # fmt: skip
def test_days_are_those_from_which_on_enough_is_saved(
    seed, per, days, rest, least, both, data
):
    rng = np.random.default_rng(seed)
    shape = days * per + min(rest, per - 1), 3
    standby = rng.integers(0, 3, size=shape) * rng.integers(0, 4, size=shape)
    saved = rng.integers(0, standby + 1)
    saved[:, 0] = standby[:, 0]  # One home saves everything.
    minutes = rng.integers(1, 9, size=shape)
    optimal = rng.integers(0, minutes + 1)
    last = data.draw(st.integers(1, days))
    more = {"optimal": optimal, "minutes": minutes} if both else {}
    found = energy.days_to_reach(
        saved, standby, per, fraction=least[0] / least[1], last=last, **more
    )
    assert found.days.shape == found.final.shape == (3,)
    for home in range(3):
        daily = [
            x[: days * per, home].reshape(days, per).sum(1)
            for x in (saved, standby, optimal, minutes)
        ]
        pairs = [daily[:2], daily[2:]][: 1 + both]
        reached, final = days_by_hand(pairs, Fraction(*least), last)
        assert found.days[home] == reached
        assert found.final[home] == pytest.approx(float(final))


@given(st.integers(0, 4), st.floats().filter(lambda x: not 0 < x <= 1))
def test_days_that_there_are_not_are_refused(number, wrong):
    days = functools.partial(energy.days_to_reach, *[np.ones((4, 2))] * 2)
    with pytest.raises(ValueError, match=r"fraction must be in \(0, 1\]"):
        days(1, last=1, fraction=wrong)
    for last in (0, 5 + number):
        with pytest.raises(ValueError, match=r"last must be in \[1, 4\]"):
            days(1, last=last)
    with pytest.raises(ValueError, match="last must"):
        days(1, last=-1 - number)
    with pytest.raises(ValueError, match="slots_a_day must be >= 1"):
        days(-number, last=1)
    for name, pair in (("slots_a_day", (1.5, 1)), ("last", (1, 1.5))):
        with pytest.raises(TypeError, match=f"{name} must be a Python int"):
            days(pair[0], last=pair[1])
    for one in ({"optimal": np.ones((4, 2))}, {"minutes": np.ones((4, 2))}):
        with pytest.raises(
            TypeError, match="optimal and minutes must be given together"
        ):
            days(1, last=1, **one)
    other = np.ones((4, 2 + number % 2)) if number % 2 else np.ones(8)
    for pair in ((np.ones((4, 2)), other), (other, np.ones((4, 2)))):
        with pytest.raises(ValueError, match="saved_wh and standby_wh must be float"):
            energy.days_to_reach(*pair, 1, last=1)
