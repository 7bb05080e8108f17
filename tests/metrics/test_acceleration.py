"""Selection of the pedometer's channels."""

import numpy as np
import pytest

from jaxanon import metrics

WINDOWS = np.float32(np.arange(24).reshape(2, 2, 6))
G = 9.80665


def test_gravity_is_added_to_the_axis_of_its_name():
    names = [f"{sensor}.{axis}" for sensor in ("gravity", "user") for axis in "xyz"]
    found = metrics.acceleration(WINDOWS, names, ["g"] * 6)
    want = G * (WINDOWS[..., :3] + WINDOWS[..., 3:])
    np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize(("unit", "scale"), [("g", G), ("m/s^2", 1.0)])
def test_axes_of_one_sensor_stay_as_they_are(unit, scale):
    names = [f"{sensor}.{axis}" for sensor in ("acc", "gyro") for axis in "xyz"]
    found = metrics.acceleration(WINDOWS, names, [unit] * 3 + ["rad/s"] * 3)
    np.testing.assert_allclose(found, scale * WINDOWS[..., :3], rtol=1e-6)


def test_one_of_two_sensors_is_taken():
    names = [f"{place}.{axis}" for place in ("chest", "ankle") for axis in "xyz"]
    found = metrics.acceleration(WINDOWS, names, ["m/s^2"] * 6)
    np.testing.assert_array_equal(found, WINDOWS[..., :3])
    fewer = [f"chest.{axis}" for axis in "xy"] + names[3:]
    found = metrics.acceleration(WINDOWS[..., :5], fewer, ["m/s^2"] * 5)
    np.testing.assert_array_equal(found, WINDOWS[..., 2:5])


def test_what_a_person_adds_alone_has_no_gravity_to_count_steps_by():
    # MotionSense as cut for DySan. At rest these are 0 m/s², not 9.8.
    sensors = ("rotationRate", "userAcceleration")
    names = [f"{sensor}.{axis}" for sensor in sensors for axis in "xyz"]
    assert metrics.acceleration(WINDOWS, names, ["rad/s"] * 3 + ["g"] * 3) is None


def test_of_both_that_with_gravity_is_taken():
    # UCI HAR's nine signals without the gyroscope's.
    signals = ("body_acc", "total_acc")
    names = [f"{signal}_{axis}" for signal in signals for axis in "xyz"]
    rest = np.float32([[[0, 0, 0, 0, 0, 1], [0, 0, 0.5, 0, 0, 1.5]]])
    found = metrics.acceleration(rest, names, ["g"] * 6)
    np.testing.assert_allclose(found, [[[0, 0, 9.80665], [0, 0, 14.709975]]], rtol=1e-6)


@pytest.mark.parametrize(
    "names",
    [
        [f"body_accelerometer_{axis}" for axis in "xyz"],
        [f"userAccelerationWithGravity.{axis}" for axis in "xyz"],
    ],
)
def test_a_name_that_begins_alike_is_another_sensor(names):
    found = metrics.acceleration(WINDOWS[..., :3], names, ["m/s^2"] * 3)
    np.testing.assert_array_equal(found, WINDOWS[..., :3])


def test_channels_without_acceleration_have_none():
    assert metrics.acceleration(WINDOWS, ["csi"] * 6, [""] * 6) is None
