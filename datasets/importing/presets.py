"""Presets for the files of widespread apps, loggers and data sets.

A preset states what a file of this origin does not state itself: its columns, units,
time format, and where label and person stand.
"""

import re
import types
from collections.abc import Callable, Mapping
from typing import NamedTuple

from jaxanon.datasets.importing import formats
from jaxanon.datasets.importing.files import File
from jaxanon.datasets.importing.frames import Frame


class Preset(NamedTuple):
    """Facts about the files of one origin.

    Attributes:
      title: name of the app, device or data set.
      channel_sets: channels to read by default: the first set that a recording has.
      time: possible names of the time column, the best first.
      time_format: format of the times, as in ``recordings.times``; None detects it.
      rate_hz: rows per second of files without times.
      units: (pattern, unit) of columns whose header states no unit.
      labels: label columns to read by default, where a recording has them.
      subject: column with the person; None uses the name of the file or folder.
      classes: class names of a label column with codes; an empty name is missing.
      place: pattern of paths whose named groups are labels, or the ``subject``; files
        of folders that do not match are left out.
      joined: whether a folder is one recording with one file per sensor.
      frame: function that reads a file; None for the format of its suffix.
    """

    title: str
    channel_sets: tuple[tuple[str, ...], ...] = ()
    time: tuple[str, ...] = ()
    time_format: str | None = None
    rate_hz: float | None = None
    units: tuple[tuple[str, str], ...] = ()
    labels: tuple[str, ...] = ()
    subject: str | None = None
    classes: Mapping[str, Mapping[str, str]] = types.MappingProxyType({})
    place: str | None = None
    joined: bool = False
    frame: Callable[[File, str | None], Frame] | None = None


def _xyz(*names: str) -> tuple[str, ...]:
    """Returns the three axes of each name, which holds a ``?`` for the axis."""
    return tuple(name.replace("?", axis) for name in names for axis in "xyz")


def _upper(*names: str) -> tuple[str, ...]:
    return tuple(name.replace("?", axis) for name in names for axis in "XYZ")


PLAIN = Preset("any table")
PRESETS = {
    "sensor_logger": Preset(
        "Sensor Logger (Android, iOS)",
        (
            _xyz("TotalAcceleration.?", "Gyroscope.?"),
            _xyz("Accelerometer.?", "Gyroscope.?"),
            _xyz("TotalAcceleration.?"),
            _xyz("Accelerometer.?"),
        ),
        time=("time",),
        time_format="ns",
        units=(
            (r"(Total|Wrist)?Acc.*\.[xyz]|Gravity\.[xyz]", "m/s^2"),
            (r"Gyroscope.*\.[xyz]", "rad/s"),
            (r"Magnetometer.*\.[xyz]", "µT"),
            (r"HeartRate\..*", "1/min"),
        ),
        joined=True,
    ),
    "phyphox": Preset(
        "phyphox (Android, iOS)",
        (
            _xyz("Acceleration ?"),
            _xyz("Linear Acceleration ?"),
            _upper("Accelerometer.?", "Gyroscope.?"),
            _upper("Accelerometer.?"),
            _upper("Linear Acceleration.?"),
            _xyz("Gyroscope ?"),
        ),
        time=("Time",),
        time_format="s",
        place=r"(^|.*/)(?!meta/|device\.csv|time\.csv)[^/]*$",
        joined=True,
    ),
    "sensorlog": Preset(
        "SensorLog (iOS)",
        (
            _upper("accelerometerAcceleration?", "motionRotationRate?"),
            _upper("accelerometerAcceleration?", "gyroRotation?"),
            _upper("motionUserAcceleration?", "motionRotationRate?"),
            _upper("accelerometerAcceleration?"),
            _upper("motionUserAcceleration?"),
        ),
        time=(
            "loggingTime(txt)",
            "accelerometerTimestamp_sinceReboot",
            "motionTimestamp_sinceReboot",
        ),
    ),
    "actigraph": Preset(
        "ActiGraph (raw CSV of ActiLife or CentrePoint)",
        (_upper("Accelerometer ?"),),
        time=("Timestamp",),
        units=((r"Accelerometer [XYZ]", "g"),),
        frame=formats.actigraph,
    ),
    "axivity": Preset(
        "Axivity AX3, AX6 (CSV of OmGui, omconvert, cwa-convert)",
        (_upper("Accel-?"), _xyz("?")),
        time=("Time", "time"),
        time_format="iso",
        units=((r"(Accel-)?[XYZxyz]", "g"), (r"Gyro-[XYZ]", "deg/s")),
        frame=formats.axivity,
    ),
    "empatica": Preset(
        "Empatica E4",
        (_xyz("ACC.?"), ("BVP",)),
        time=("time",),
        time_format="s",
        place=r"(^|.*/)(ACC|BVP|EDA|HR|TEMP)\.csv(\.gz)?$",
        joined=True,
        frame=formats.empatica,
    ),
    "apple_health": Preset(
        "Apple Health (heart rate and workouts of export.xml)",
        (("heart rate",),),
        time=("time",),
        time_format="s",
        labels=("workout",),
        place=r"(^|.*/)export[^/]*\.xml(\.gz)?$",
        frame=formats.apple_health,
    ),
    "pamap2": Preset(
        "PAMAP2 (Protocol, Optional)",
        (
            _xyz(
                *(
                    f"{place} {kind} ?"
                    for place in formats.PAMAP2_PLACES
                    for kind in ("acc16", "gyro")
                )
            ),
        ),
        time=("timestamp",),
        time_format="s",
        units=(
            (r".* acc(16|6) [xyz]", "m/s^2"),
            (r".* gyro [xyz]", "rad/s"),
            (r".* mag [xyz]", "µT"),
            (r".* temperature", "°C"),
            (r"heart rate", "1/min"),
        ),
        labels=("activity",),
        classes={"activity": formats.PAMAP2_ACTIVITIES},
        place=r"(^|.*/)(?P<subject>subject\d+)\.dat(\.gz)?$",
        frame=formats.pamap2,
    ),
    "wisdm_raw": Preset(
        "WISDM (raw text of 2012 and 2019)",
        (_xyz("?"),),
        time=("timestamp",),
        time_format="ns",
        units=((r"[xyz]", "m/s^2"),),
        labels=("activity",),
        subject="user",
        frame=formats.wisdm_raw,
    ),
    "motion_sense": Preset(
        "MotionSense (A_DeviceMotion_data, B_Accelerometer_data, C_Gyroscope_data)",
        (_xyz("userAcceleration.?", "rotationRate.?"), _xyz("?")),
        rate_hz=50.0,
        units=(
            (r"(userAcceleration|gravity)\.[xyz]", "g"),
            (r"rotationRate\.[xyz]", "rad/s"),
            (r"attitude\..*", "rad"),
        ),
        place=r"(^|.*/)(?P<activity>dws|ups|wlk|jog|std|sit)_(?P<trial>\d+)/"
        r"(?P<subject>sub_\d+)\.csv(\.gz)?$",
        labels=("activity",),
        classes={
            "activity": {
                "dws": "downstairs",
                "ups": "upstairs",
                "wlk": "walking",
                "jog": "jogging",
                "std": "standing",
                "sit": "sitting",
            }
        },
    ),
}


def names() -> tuple[str, ...]:
    """Returns the names of all presets.

    Example:
      >>> "sensor_logger" in names()
      True
    """
    return tuple(PRESETS)


def find(name: str | None) -> Preset:
    """Returns the preset of a name; None is any table with a header.

    Raises:
      ValueError: if the name is unknown.

    Example:
      >>> find("sensor-logger").title
      'Sensor Logger (Android, iOS)'
    """
    if name is None:
        return PLAIN
    plain = re.sub(r"[\s-]+", "_", name.strip().lower())
    if plain not in PRESETS:
        raise ValueError(
            f"preset must be one of {', '.join(PRESETS)}, got {name!r}; omit it for a "
            "table with a header."
        )
    return PRESETS[plain]
