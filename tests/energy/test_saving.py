"""Savings against a loop, tariffs by hand, sums by day and hour."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import energy

LEVELS = energy.Levels(2.0, 200.0)


def drawn(minutes=300):
    rng = np.random.default_rng(0)
    load = rng.choice([0.0, 1.8, 2.2, 150.0, 240.0], minutes).astype(np.float32)
    return (
        load,
        np.asarray(energy.classify_mode(load, LEVELS)),
        rng.integers(0, 3, minutes),
    )


def test_agrees_with_a_loop():
    load, mode, action = drawn()
    standby = saved = in_use = off = dimmed = 0.0
    for watts, real, chosen in zip(load, mode, action, strict=True):
        if real == energy.STANDBY:
            standby += watts / 60
            saved += watts / 60 if chosen == energy.OFF else 0
        if real == energy.ON:
            in_use += 1
            off += chosen == energy.OFF
            dimmed += chosen == energy.STANDBY
    found = jax.tree.map(jnp.sum, jax.jit(energy.savings)(load, mode, action))
    np.testing.assert_allclose(found, [standby, saved, in_use, off, dimmed], rtol=1e-5)


def test_the_optimal_policy_saves_all_and_disturbs_nobody():
    load, mode, _ = drawn()
    found = energy.savings(load, mode, energy.optimal_actions(mode))
    np.testing.assert_array_equal(found.saved_wh, found.standby_wh)
    assert found.saved_wh.sum() > 0 and found.in_use.sum() > 0
    assert not found.switched_off.any() and not found.dimmed.any()


def test_shares_of_nothing_are_what_one_says():
    part, whole = jnp.array([3.0, 0.0]), np.array([4, 0])
    assert energy.safe_divide(part, whole).tolist() == [0.75, 0]
    assert energy.safe_divide(0.0, 0.0, default=-1.0) == -1


def test_days_and_hours_of_ones():
    values = jnp.arange(3)[:, None] * jnp.ones((3, 1440))
    values = jnp.concatenate([values, values], axis=1)  # [3, two days]
    np.testing.assert_array_equal(
        energy.saving_per_day(values), 1440 * np.array([[0, 0], [1, 1], [2, 2]])
    )
    np.testing.assert_array_equal(
        energy.saving_per_hour(values), np.repeat([[0], [120], [240]], 24, axis=1)
    )


def test_hours_are_those_of_the_day():
    minute = jnp.zeros(2880).at[jnp.array([61, 1440 + 119, 1440 + 120])].set(1.0)
    found = energy.saving_per_hour(minute)
    assert found[1] == 2 and found[2] == 1 and found.sum() == 3


def test_tariffs():
    # 6 W for ten hours are 60 Wh: at 11.67 cents a kWh 0.7002 cents.
    np.testing.assert_allclose(
        energy.cents(jnp.full(600, 0.1), energy.FIXED_CENTS).sum(), 0.7002, rtol=1e-4
    )
    price = energy.variable_price(2 * 1440)
    assert price.argmin() % 1440 == 240 and price.argmax() % 1440 == 960
    np.testing.assert_allclose([price.min(), price.max()], [0.08, 20], rtol=1e-4)
    # A cosine's mean is the middle.
    np.testing.assert_allclose(price.mean(), 10.04, rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: energy.savings(jnp.zeros(2), jnp.zeros(2, int), jnp.zeros(3, int)),
            "load, mode and action must have the same shape",
        ),
        (
            lambda: energy.saving_per_day(jnp.zeros(1439)),
            "values must have whole days",
        ),
        (lambda: energy.saving_per_hour(jnp.zeros(0)), "values must have whole days"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
