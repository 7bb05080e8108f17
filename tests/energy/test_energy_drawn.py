"""Effects and savings of actions, for random loads, compared with plain loops."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jaxanon import energy
from jaxanon.energy import OFF, ON, STANDBY, Levels, Series
from jaxanon.energy.agent import AgentRecord

SEEDS = st.integers(0, 2**32 - 1)
SHAPES = st.sampled_from([(1,), (2, 3), (2, 0)])
FLOATS = st.sampled_from([np.float32, np.float64, np.int32])
WHOLE = st.sampled_from([np.int32, np.int64, np.int8, np.uint8])
REWARDS = {  # [mode, action], in the order of table 2.1.
    (OFF, OFF): 10, (OFF, STANDBY): -10, (OFF, ON): -30,
    (STANDBY, OFF): 30, (STANDBY, STANDBY): 10, (STANDBY, ON): -10,
    (ON, OFF): -30, (ON, STANDBY): -10, (ON, ON): 10,
}  # fmt: skip
few = functools.partial(settings, deadline=None)


def modes(seed, shape, dtype=np.int32):
    return np.random.default_rng(seed).integers(3, size=shape).astype(dtype)


def watts(seed, shape, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return (rng.integers(0, 200, size=shape) * rng.integers(2, size=shape)).astype(
        dtype
    )


@few(max_examples=12)
@given(SEEDS, SHAPES, FLOATS, WHOLE)
def test_savings_agree_with_a_loop_and_are_a_part(seed, shape, dtype, kind):
    load = watts(seed, shape, dtype)
    mode, action = modes(seed, shape, kind), modes(seed + 1, shape, kind)
    found = energy.savings(load, mode, action)
    assert all(part.dtype == np.float32 and part.shape == shape for part in found)
    for place in np.ndindex(shape):
        standby = load[place] / 60 if mode[place] == STANDBY else 0
        assert found.standby_wh[place] == pytest.approx(standby)
        saved = standby if action[place] == OFF else 0
        assert found.saved_wh[place] == pytest.approx(saved)
        on = mode[place] == ON
        assert found.in_use[place] == on
        assert found.switched_off[place] == (on and action[place] == OFF)
        assert found.dimmed[place] == (on and action[place] == STANDBY)
    best = energy.savings(load, mode, energy.optimal_actions(mode))
    np.testing.assert_array_equal(best.saved_wh, best.standby_wh)
    assert not best.switched_off.any() and not best.dimmed.any()


@given(SHAPES, SHAPES, st.integers(0, 2))
def test_savings_of_other_shapes_are_refused(shape, other, place):
    assume(shape != other)
    given = [np.zeros(shape, int)] * 3
    given[place] = np.zeros(other, int)
    with pytest.raises(
        ValueError, match="load, mode and action must have the same shape"
    ):
        energy.savings(*given)


@few(max_examples=10)
@given(SEEDS, SHAPES, FLOATS, st.booleans(), st.booleans())
def test_what_is_measured_is_summed_over_minutes(seed, shape, dtype, some, spoilt):
    load, forecast, held = (watts(seed + n, shape, dtype) for n in range(3))
    if spoilt and dtype != np.int32:  # Values of absent devices are ignored.
        load, forecast = np.full_like(load, np.nan), np.full_like(load, np.inf)
        some = False
    did = AgentRecord(load, forecast, held, modes(seed, shape), modes(seed + 1, shape))
    did = AgentRecord(*map(jnp.asarray, did))
    present = np.full(shape[:-1], some)
    found = jax.jit(energy.summarize_slot)(did, present)
    if not some:
        assert not any(np.any(one) for one in found.values())
        return
    told = energy.savings(*did[:1], *did[3:])._asdict()
    told["optimal"] = np.isin(did.action - did.mode, (0, -1)) & (
        np.asarray(did.action) != STANDBY
    )
    told["minutes"] = np.ones(shape)
    told["forecast_error"] = np.abs(np.float64(load) - forecast)
    told["held_error"] = np.abs(np.float64(load) - held)
    assert set(found) == set(told)
    for name, one in found.items():
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, np.float64(told[name]).sum(-1), rtol=1e-5)


@given(SEEDS, st.sampled_from([(), (3,), (2, 3)]), FLOATS, st.floats(-1, 1))
def test_shares_are_quotients_or_what_they_are_of_nothing(seed, shape, dtype, none):
    rng = np.random.default_rng(seed)
    part, whole = (rng.integers(0, 4, size=shape).astype(dtype) for _ in range(2))
    found = energy.safe_divide(part, whole, none)
    assert found.dtype == np.float64 and found.shape == shape
    for place in np.ndindex(shape):
        own = float(np.asarray(part)[place]), float(np.asarray(whole)[place])
        assert found[place] == (own[0] / own[1] if own[1] else none)
    wide = energy.safe_divide(np.ones((2, 3)), np.arange(3.0), none)
    np.testing.assert_array_equal(wide, [[none, 1, 0.5]] * 2)
    for other in ((2,), (1, 2, 3)):
        with pytest.raises(ValueError):
            energy.safe_divide(np.ones((4, 3)), np.ones(other))


@few(max_examples=10)
@given(
    SEEDS, st.sampled_from([(), (2,), (2, 1)]), st.sampled_from([1, 3]),
    st.sampled_from([np.float32, np.float64, np.int32, bool]),
)  # fmt: skip
def test_sums_over_days_and_hours_lose_nothing(seed, shape, days, dtype):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, size=(*shape, days * 1440)).astype(dtype)
    by_day, by_hour = energy.saving_per_day(values), energy.saving_per_hour(values)
    assert by_day.shape == (*shape, days) and by_hour.shape == (*shape, 24)
    minute = np.arange(days * 1440)  # Sums of ints are exact.
    for day in range(days):
        own = values[..., minute // 1440 == day].sum(-1)
        np.testing.assert_array_equal(by_day[..., day], own)
    for hour in range(24):
        own = values[..., minute // 60 % 24 == hour].sum(-1)
        np.testing.assert_array_equal(by_hour[..., hour], own)


@given(st.integers(0, 3000).filter(lambda n: n % 1440 or not n), st.booleans())
def test_parts_of_days_are_refused(minutes, single):
    values = np.zeros(()) if single else np.zeros((2, minutes))
    for total in (energy.saving_per_day, energy.saving_per_hour):
        with pytest.raises(ValueError, match="values must have whole days"):
            total(values)


@few(max_examples=5)
@given(st.sampled_from([0, 1, 1440, 4000]))
def test_a_variable_price_is_a_cosine_of_the_day(minutes):
    found = energy.variable_price(minutes)
    assert found.shape == (minutes,) and found.dtype == np.float32
    turn = 2 * np.pi * (np.arange(minutes) / 60 - 4) / 24
    np.testing.assert_allclose(found, 10.04 - 9.96 * np.cos(turn), atol=1e-3)
    assert minutes == 0 or (found.min() > 0.07 and found.max() < 20.01)


@few(max_examples=12)
@given(SEEDS, SHAPES, WHOLE)
def test_rewards_are_the_table_s_and_the_best_action_has_most(seed, shape, dtype):
    mode, action = modes(seed, shape, dtype), modes(seed + 1, shape, dtype)
    found, best = energy.reward(mode, action), energy.optimal_actions(mode)
    assert found.dtype == np.float32 and best.dtype == np.int32
    for place in np.ndindex(shape):
        row = {a: REWARDS[int(mode[place]), a] for a in range(3)}
        assert found[place] == row[int(action[place])]
        assert int(best[place]) == max(row, key=row.get)


@few(max_examples=12)
@given(SEEDS, st.sampled_from([0, 1, 4]), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_values_are_those_of_the_best_of_all_plans(seed, minutes, discount):
    mode = modes(seed, minutes)
    found = jax.jit(energy.optimal_values)(mode, discount)
    assert found.shape == (minutes, 3) and found.dtype == np.float32
    for first, action in np.ndindex(found.shape):
        rest = mode[first:].tolist()
        plans = itertools.product(range(3), repeat=len(rest) - 1)
        worth = lambda plan, rest=rest, action=action: sum(
            discount**n * REWARDS[pair]
            for n, pair in enumerate(zip(rest, (action, *plan), strict=True))
        )
        assert found[first, action] == pytest.approx(max(map(worth, plans)), rel=1e-5)


LEVELS = ((4.0, 100.0), (1.0, 49.0), (0.0, 9.0))  # Thresholds are exact in float32.


def mode_by_hand(power, standby, on):
    low, high = (standby / 2, math.sqrt(standby * on)) if standby else (0.2, 0.2)
    return ON if power >= high else STANDBY if power >= low else OFF


def seen_by_hand(series, minute, observed):
    minute = min(max(minute, 0), len(series.load) - 1)
    both = [float(series.forecast[minute]), float(series.load[minute])]
    if observed == "power":
        return [math.log1p(max(one, 0) / 0.2) / 10 for one in both]
    return np.eye(3)[[mode_by_hand(one, *series.levels) for one in both]].ravel()


POWER = st.lists(
    st.sampled_from([-3.0, 0.0, 0.1, 0.5, 2.0, 7.0, 9.0, 20.0, 900.0]),
    min_size=10, max_size=10,
)  # fmt: skip


@functools.cache
def rollout(minutes, observed):
    env = energy.environment(minutes, observed)

    @jax.jit
    def go(key, series, actions):
        keys = jax.random.split(key, len(actions) + 1)

        def one(carry, inputs):
            seen, state = carry
            key, action = inputs
            *after, gained, done, info = env.step(key, state, action, series)
            return tuple(after), (seen, *state, gained, done, info["mode"])

        return jax.lax.scan(one, env.reset(keys[0], series), (keys[1:], actions))[1]

    return env, go


@few(max_examples=20)
@given(
    SEEDS,
    POWER,
    st.sampled_from(LEVELS),
    st.sampled_from([(1, "power"), (3, "modes"), (5, "power")]),
)
def test_an_environment_goes_through_episodes_minute_by_minute(
    seed, power, levels, kind
):
    series = Series(np.float32(power[:5]), np.float32(power[5:]), Levels(*levels))
    env, go = rollout(*kind)
    assert (
        env.num_actions == 3 and env.num_observed == {"power": 2, "modes": 6}[kind[1]]
    )
    actions = modes(seed, 11)
    steps = jax.tree.map(np.asarray, go(jax.random.key(seed), series, actions))
    minute = left = None
    for action, seen, at, until, gained, done, mode in zip(
        actions, *steps, strict=True
    ):
        if not left:  # A new episode starts anywhere.
            minute, left = int(at), kind[0]
            assert 0 <= minute <= 5 - left
        assert (at, until) == (minute, left)
        expected = mode_by_hand(series.load[minute], *levels)
        assert mode == expected and gained == REWARDS[expected, int(action)]
        np.testing.assert_allclose(
            seen, seen_by_hand(series, minute, kind[1]), rtol=1e-5
        )
        minute, left = minute + 1, left - 1
        assert done == (left == 0)


@few(max_examples=15)
@given(POWER, st.sampled_from(LEVELS), st.integers(-9, 12), st.booleans())
def test_what_is_observed_stays_inside_the_series(power, levels, minute, by_mode):
    series = Series(np.float32(power[:5]), np.float32(power[5:]), Levels(*levels))
    series, observed = (
        jax.tree.map(jnp.asarray, series),
        "modes" if by_mode else "power",
    )
    found = energy.observation(series, minute, observed)
    assert found.dtype == np.float32 and np.isfinite(found).all()
    np.testing.assert_allclose(found, seen_by_hand(series, minute, observed), rtol=1e-5)


@few(max_examples=10)
@given(st.integers(max_value=0), st.text(max_size=5), st.integers(3, 9))
def test_episodes_that_there_are_not_are_refused(minutes, observed, longer):
    assume(observed not in ("power", "modes"))
    series = Series(jnp.zeros(2), jnp.zeros(2), Levels(1.0, 50.0))
    with pytest.raises(ValueError, match=f"minutes must be >= 1, got {minutes}"):
        energy.environment(minutes)
    for wrong in (float(longer), str(longer), None, True):
        with pytest.raises(TypeError, match="minutes must be a Python int"):
            energy.environment(wrong)
    for make in (
        lambda: energy.environment(1, observed),
        lambda: energy.observation(series, 0, observed),
    ):
        with pytest.raises(ValueError, match="observed must be one of"):
            make()
    with pytest.raises(ValueError, match=f"at least {longer} minutes, .* got 2"):
        energy.environment(longer).reset(jax.random.key(0), series)
