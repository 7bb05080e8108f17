"""Local time: Dataport writes every region's minutes by the clock of its server."""

import datetime
import zoneinfo

import numpy as np

HOUR = 60  # Minutes.
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

ZERO = datetime.timedelta()


def universal(stamps: np.ndarray) -> np.ndarray:
    """Minutes since 1970, UTC, of such stamps as ``2019-05-01 00:00:00-05``.

    Args:
      stamps: ``str[n]``; the hours from UTC are needed, since clocks go back once a
        year.

    Returns:
      ``int64[n]``.

    Raises:
      ValueError: if one does not read so.

    Example:
      >>> universal(np.array(["1970-01-01 01:30:00-05"])).tolist()
      [390]
    """
    clock = stamps.astype("U19").astype("datetime64[m]").astype(np.int64)
    rest = np.array([stamp[19:22] for stamp in stamps.tolist()])
    odd = np.flatnonzero(~np.isin(np.char.str_len(rest), [3]))
    if len(odd):
        raise ValueError(f"{str(stamps[odd[0]])!r} does not say how far it is from UTC")
    return clock - HOUR * rest.astype(np.int64)


def minute_of_day(minutes: np.ndarray, zone: str) -> np.ndarray:
    """0 to 1439 on the clocks of ``zone``, summer time included.

    Args:
      minutes: ``int[n]`` since 1970, UTC.
      zone: such as ``"America/New_York"``.

    Returns:
      ``int64[n]``.

    Example:
      >>> minute_of_day(np.array([390]), "America/New_York").tolist()
      [90]
    """
    hours, place = np.unique(minutes // HOUR, return_inverse=True)
    clocks = zoneinfo.ZoneInfo(zone)
    away = [
        (EPOCH + datetime.timedelta(hours=hour)).astimezone(clocks).utcoffset() or ZERO
        for hour in hours.tolist()
    ]
    minutes_away = np.array([delta // datetime.timedelta(minutes=1) for delta in away])
    return (minutes + minutes_away[place]) % (24 * HOUR)
