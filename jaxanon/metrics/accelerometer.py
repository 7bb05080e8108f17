"""Selection of the channels that are an accelerometer, for step counts."""

import collections
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxanon.kernels.checks import as_numpy, strings

STANDARD_GRAVITY = 9.80665  # m/s²
UNITS = {
    **dict.fromkeys(("g", "G", "gn", "g0"), STANDARD_GRAVITY),
    **dict.fromkeys(("mg", "mG", "milli-g"), STANDARD_GRAVITY / 1000),
    **dict.fromkeys(
        ("m/s^2", "m/s²", "m/s2", "m/s**2", "m/s/s", "m s^-2", "ms-2"), 1.0
    ),
}
# Names of sensors in lower case, with underscores between words.
GRAVITY = re.compile(
    r"(?:^|(?<!with)(?<!including)(?<!without)(?<!excluding)_)grav(ity)?$"
)
LINEAR = re.compile(  # Gravity was removed from these.
    r"(^|_)(body_acc|(user|lin|linear)(_?acc(eleration|elerometer)?)?)$"
    r"|_(without|excluding)_grav(ity)?$"
)
AXIS = re.compile(  # x, y or z as a word: "acc.x", "x acc", "accX"
    r"(?:(?<![A-Za-z\d])[xyzXYZ]|(?<=[a-z\d])[XYZ])(?![A-Za-z\d])"
)


class Accelerometer(NamedTuple):
    """Channels of one accelerometer; ``reason`` says why there are no ``axes``."""

    sensor: str  # name shared by the channels, such as "acc"
    axes: tuple[tuple[int, ...], ...]  # channels to add for each axis
    factors: tuple[float, ...]  # m/s² per unit, of every channel; 0 for other units
    reason: str | None


def find_accelerometer(channels: Sequence[str], units: Sequence[str]) -> Accelerometer:
    """Finds the accelerometer that step counters use.

    Channels in a unit of acceleration belong to one sensor if their names differ only
    in ``x``, ``y`` or ``z``. Sensors with gravity come first; of these, a name with
    "acc" comes before other names, then more axes, then the order of channels.
    Sensors without gravity (``userAcceleration``, ``body_acc``, ``linearAcceleration``)
    are used with ``gravity`` channels of the same axes, which are added.

    Args:
      channels: names of the channels.
      units: units of the channels, such as ``"g"``, ``"mg"`` or ``"m/s^2"``.

    Returns:
      ``Accelerometer``, whose ``axes`` are empty if ``reason`` is not None.

    Raises:
      ValueError: if the numbers of names and units differ.

    Example:
      >>> found = find_accelerometer(("acc.x", "acc.y", "mag.x"), ("g", "g", "uT"))
      >>> found.sensor, found.axes
      ('acc', ((0,), (1,)))
      >>> find_accelerometer(("userAcceleration.x",), ("g",)).reason
      'gravity was removed from userAcceleration, and no gravity channels are present'
    """
    strings(channels=channels, units=units)
    if len(channels) != len(units):
        raise ValueError(
            f"units must have one entry per channel ({len(channels)}), got "
            f"{len(units)}."
        )
    factors = tuple(UNITS.get(unit.strip(), 0.0) for unit in units)
    none = lambda reason: Accelerometer("", (), factors, reason)
    sensors: dict[str, dict[str, int]] = {}
    split = _split(channels)
    for index, (sensor, axis) in enumerate(split):
        if factors[index]:
            sensors.setdefault(sensor, {}).setdefault(axis, index)
    if not sensors:
        return none("no channel has a unit of acceleration (g, mg or m/s^2)")
    words = {sensor: _words(sensor) for sensor in sensors}
    gravity = [name for name in sensors if GRAVITY.search(words[name])]
    linear = [name for name in sensors if LINEAR.search(words[name])]
    whole = [name for name in sensors if name not in (*gravity, *linear)]
    named = [name for name in whole if "acc" in words[name]]
    both = [
        (one, other)
        for one in linear
        for other in gravity
        if sensors[one].keys() == sensors[other].keys()
    ]

    def rank(pair):  # A pair of one device first, such as left_gravity and left_user.
        one, other = (pattern.sub("", words[name]) for pattern, name in pair)
        return one == other, len(sensors[pair[0][1]])

    # Sensors of other names come last: gravity shows that the other two are a pair.
    if named or (whole and not both):
        best = max(named or whole, key=lambda name: len(sensors[name]))
        axes = tuple((index,) for index in sensors[best].values())
        return Accelerometer(best, axes, factors, None)
    if both:
        pairs = [((LINEAR, one), (GRAVITY, other)) for one, other in both]
        (_, one), (_, other) = max(pairs, key=rank)
        axes = tuple((i, sensors[other][axis]) for axis, i in sensors[one].items())
        return Accelerometer(one, axes, factors, None)
    if linear and gravity:
        return none(f"{linear[0]} and {gravity[0]} have different axes")
    if linear:
        return none(
            f"gravity was removed from {linear[0]}, and no gravity channels are present"
        )
    return none(f"{gravity[0]} is gravity without the acceleration of the person")


def acceleration(windows, channels: Sequence[str], units: Sequence[str]):
    """Returns the acceleration with gravity in m/s², or None if it is unavailable.

    ``find_accelerometer`` selects the channels and says why there are none.

    Args:
      windows: ``float[N, time, channels]`` in physical units.
      channels: names of the channels.
      units: units of the channels.

    Returns:
      ``float32[N, time, axes]``, or None.

    Raises:
      ValueError: if the numbers of channels, names and units differ.

    Example:
      >>> windows = np.array([[[0.5, 0.25, 90.0]]])
      >>> names = ("gravity.x", "userAcceleration.x", "rotationRate.x")
      >>> acceleration(windows, names, ("g", "g", "rad/s")).round(3)
      array([[[7.355]]], dtype=float32)
    """
    windows = as_numpy("windows", windows)
    strings(channels=channels, units=units)
    if windows.ndim != 3 or windows.shape[-1:] != (len(channels),):
        raise ValueError(
            f"windows must be float[N, time, {len(channels)}], one channel per name, "
            f"got shape {windows.shape}."
        )
    found = find_accelerometer(channels, units)
    if found.reason:
        return None
    sums = [
        sum(windows[..., i].astype(np.float64) * found.factors[i] for i in axis)
        for axis in found.axes
    ]
    return np.stack(sums, -1).astype(np.float32)


def _split(channels: Sequence[str]) -> list[tuple[str, str]]:
    """Splits names of channels into sensor and axis; the axis may be empty."""
    bare = [re.sub(r"\s*[\[(].*$", "", name.strip()) or name for name in channels]
    # Names such as "accx" or "AX" only if another axis of the sensor is present.
    stems = collections.Counter(
        name[:-1] for name in dict.fromkeys(bare) if name[-1:] in tuple("xyzXYZ")
    )
    split = []
    for name in bare:
        found = [*AXIS.finditer(name)]
        if found:
            start, end = found[-1].span()
            sensor = (name[:start] + name[end:]).strip(" ._:/,-")
            split.append((sensor, found[-1][0].lower()))
        elif name[-1:] in tuple("xyzXYZ") and stems[name[:-1]] > 1:
            split.append((name[:-1], name[-1].lower()))
        else:
            split.append((name, ""))
    return split


def _words(sensor: str) -> str:
    """Returns a name in lower case, with underscores between words."""
    apart = re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", sensor)
    return re.sub(r"[^a-z\d]+", "_", apart.lower())
