"""Choice of the accelerometer, with a walk of 20 known steps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import metrics

RATE_HZ, G = 50.0, 9.80665
SECONDS = np.arange(0, 12, 1 / RATE_HZ)
SWING = np.where(SECONDS < 10, 3 * np.sin(4 * np.pi * SECONDS), 0.0)  # 2 steps/s


def walk():
    """Returns ``[1, time, 3]`` in m/s² with gravity."""
    return np.stack([0 * SWING, 0 * SWING, G + SWING], -1)[None].astype(np.float32)


def axes(sensor):
    return tuple(f"{sensor}.{axis}" for axis in "xyz")


def steps(windows, names, units):
    found = metrics.acceleration(windows, names, units)
    return metrics.step_errors(found, found, RATE_HZ)


@pytest.mark.parametrize("first", [True, False])
def test_one_accelerometer_beside_two_other_sensors_counts_20_steps(first):
    others = np.full((1, len(SECONDS), 6), 7.0, np.float32)
    parts = [walk(), others] if first else [others, walk()]
    names = (axes("acc"), axes("jerk") + axes("velocity_rate"))
    names = sum(names if first else names[::-1], ())
    counted = steps(np.concatenate(parts, -1), names, ("m/s^2",) * 9)
    assert counted["threshold"]["raw"] == counted["jerk_pace"]["raw"] == 20


def test_motion_sense_in_g_counts_20_steps_with_gravity_apart():
    gravity = np.broadcast_to(np.float32([0, 0, G]), walk().shape)
    windows = np.concatenate([gravity, walk() - gravity], -1) / G
    names = axes("gravity") + axes("userAcceleration")
    for unit, scale in (("g", 1.0), ("G", 1.0), ("mg", 1000.0), ("m/s2", G)):
        counted = steps(np.float32(windows * scale), names, (unit,) * 6)
        assert counted["jerk_pace"]["raw"] == counted["threshold"]["raw"] == 20


@pytest.mark.parametrize(
    ("names", "units", "reason"),
    [
        (axes("userAcceleration"), "g", "gravity was removed from userAcceleration"),
        (axes("gravity"), "g", "gravity is gravity without"),
        (("gravity.x", "body_acc_y"), "g", "different axes"),
        (axes("gyro"), "rad/s", "no channel has a unit of acceleration"),
    ],
)
def test_the_reason_is_given_when_steps_cannot_be_counted(names, units, reason):
    found = metrics.find_accelerometer(names, (units,) * len(names))
    assert found.axes == () and reason in found.reason
    windows = np.zeros((1, 4, len(names)), np.float32)
    assert metrics.acceleration(windows, names, (units,) * len(names)) is None


@pytest.mark.parametrize(
    "names",
    [
        ("ax", "ay", "az"),
        ("ACCX", "ACCY", "ACCZ"),
        ("x_acc", "y_acc", "z_acc"),
        ("Acceleration x (m/s^2)", "Acceleration y (m/s^2)", "Acceleration z (m/s^2)"),
        ("acc, x", "acc, y", "acc, z"),
    ],
)
def test_axes_are_found_in_other_spellings(names):
    mixed = (*axes("velocity_rate"), *names)
    found = metrics.find_accelerometer(mixed[::-1], ("m/s^2",) * 6)
    if names[0] != "ax":
        assert found.axes == ((0,), (1,), (2,))
    alone = metrics.find_accelerometer(names, ("g",) * 3)
    assert alone.axes == ((0,), (1,), (2,)) and alone.reason is None


def test_linear_acceleration_of_phones_is_found_without_gravity():
    phyphox = [f"Linear Acceleration {axis} (m/s^2)" for axis in "xyz"]
    assert metrics.acceleration(walk(), phyphox, ["m/s^2"] * 3) is None
    sensor_log = [
        f"motion{x}{a}(G)" for x in ("UserAcceleration", "Gravity") for a in "XYZ"
    ]
    found = metrics.find_accelerometer(sensor_log, ["G"] * 6)
    assert found.axes == ((0, 3), (1, 4), (2, 5))


@pytest.mark.parametrize(
    ("sensor", "apart"),
    [
        ("accelerationIncludingGravity", False),
        ("acc_with_gravity", False),
        ("accelerationWithoutGravity", True),
        ("acc excluding gravity", True),
        ("tBodyAcc", True),
    ],
)
def test_names_say_whether_gravity_is_included(sensor, apart):
    found = metrics.find_accelerometer(axes(sensor), ("g",) * 3)
    assert (found.axes == ()) == apart
    assert (found.reason or "").startswith("gravity was removed") == apart


def test_gravity_of_the_same_device_is_added():
    names = ("left_gravity_x", "right_gravity_x", "right_userAcc_x")
    assert metrics.find_accelerometer(names, ("g",) * 3).axes == ((2, 1),)


def test_names_and_units_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="units must have one entry per channel"):
        metrics.find_accelerometer(("x",), ())


SENSORS = ("acc", "Accelerometer", "chest_acc16", "total_acc", "magnet", "foo bar")
forms = st.sampled_from(("{}.{}", "{}_{}", "{} {}", "{}{}", "{}-{} [m/s2]"))


@settings(max_examples=40, deadline=None)
@given(
    sensors=st.lists(st.sampled_from(SENSORS), min_size=1, max_size=4, unique=True),
    form=forms,
    seed=st.integers(0, 2**16),
)
def test_axes_of_different_sensors_are_never_mixed(sensors, form, seed):
    upper = form == "{}{}"
    names = [
        form.format(sensor, axis.upper() if upper else axis)
        for sensor in sensors
        for axis in "xyz"
    ]
    names = [names[i] for i in np.random.default_rng(seed).permutation(len(names))]
    found = metrics.find_accelerometer(names, ["m/s^2"] * len(names))
    chosen = [names[index] for axis in found.axes for index in axis]
    assert found.reason is None and len(chosen) == 3
    assert all(name.startswith(found.sensor) for name in chosen)
    if any("acc" in sensor.lower() for sensor in sensors):
        assert "acc" in found.sensor.lower()
