"""Conversion of Dataport's timestamps, in server time, to UTC and local time."""

import datetime
import zoneinfo

import numpy as np

HOUR = 60  # Minutes.
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

ZERO = datetime.timedelta()


def universal(stamps: np.ndarray) -> np.ndarray:
    """Parses timestamps such as ``2019-05-01 00:00:00-05`` to minutes since 1970, UTC.

    Args:
      stamps: ``str[n]``; the offset from UTC is required, because local times repeat
        when summer time ends.

    Returns:
      ``int64[n]``.

    Raises:
      ValueError: if a timestamp has another format.

    Example:
      >>> universal(np.array(["1970-01-01 01:30:00-05"])).tolist()
      [390]
    """
    clock = stamps.astype("U19").astype("datetime64[m]").astype(np.int64)
    rest = np.array([stamp[19:22] for stamp in stamps.tolist()])
    wrong = np.flatnonzero(~np.isin(np.char.str_len(rest), [3]))
    if len(wrong):
        raise ValueError(
            f"times must have an offset from UTC, got {str(stamps[wrong[0]])!r}"
        )
    return clock - HOUR * rest.astype(np.int64)


def minute_of_day(minutes: np.ndarray, zone: str) -> np.ndarray:
    """Returns the local minute of the day, 0 to 1439, including summer time.

    Args:
      minutes: ``int[n]``, minutes since 1970, UTC.
      zone: name of the time zone, such as ``"America/New_York"``.

    Returns:
      ``int64[n]``.

    Example:
      >>> minute_of_day(np.array([390]), "America/New_York").tolist()
      [90]
    """
    hours, index = np.unique(minutes // HOUR, return_inverse=True)
    zone_info = zoneinfo.ZoneInfo(zone)
    offsets = [
        (EPOCH + datetime.timedelta(hours=hour)).astimezone(zone_info).utcoffset()
        or ZERO
        for hour in hours.tolist()
    ]
    offset = np.array([delta // datetime.timedelta(minutes=1) for delta in offsets])
    return (minutes + offset[index]) % (24 * HOUR)
