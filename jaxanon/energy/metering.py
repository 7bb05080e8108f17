"""What meters of homes deliver, checked at the door."""

from typing import NamedTuple

import numpy as np

BRIDGED = 15  # Missing minutes in a row that are filled.


class Meters(NamedTuple):
    """Power without a gap, and which home has which device."""

    power: np.ndarray  # float32[homes, minutes, devices], W; 0 of what is not there
    present: np.ndarray  # bool[homes, devices]


def metered(power, homes=None, devices=None) -> Meters:
    """Checks and mends what meters delivered.

    A missing minute (NaN) is the last one before it, at the start the first after it,
    up to 15 in a row. A device without any minute is one that the home lacks: it takes
    part in nothing.

    Args:
      power: ``float[homes, minutes, devices]``, W.
      homes, devices: names for messages, of devices one for each or one for each in
        each home; None is "home 0", ... and "device 0", ...

    Returns:
      ``Meters``.

    Raises:
      TypeError: if power holds no real numbers.
      ValueError: for another rank, or other numbers of names; naming home and device,
        for power that is negative (a clamp the wrong way round, or solar cells) or
        infinite, and for a gap of more than 15 minutes.

    Example:
      >>> power = np.array([[[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]]])
      >>> meters = metered(power)
      >>> meters.power[0, :, 0], meters.present
      (array([1., 1., 3.], dtype=float32), array([[ True, False]]))
    """
    power = np.array(power)
    if power.dtype.kind not in "fiu":
        raise TypeError(f"power must hold real numbers, got {power.dtype}.")
    if power.ndim != 3 or not power.size:
        raise ValueError(
            f"power must be float[homes, minutes, devices], none of them 0, got shape "
            f"{power.shape}."
        )
    num_homes, _, num_devices = power.shape
    _as_many("homes", homes, num_homes)
    alike = devices is None or not len(devices) or isinstance(devices[0], str)
    lists = [devices] * num_homes if alike else list(devices)  # pyrefly: ignore
    _as_many("lists of devices", lists, num_homes)
    for own in lists:
        _as_many("devices", own, num_devices)
    power = power.astype(np.float32)
    present = np.asarray(~np.isnan(power).all(axis=1))
    for home, device in np.argwhere(present):
        column = power[home, :, device]
        name = _name("home", homes, home), _name("device", lists[home], device)
        _refuse(column, *name)
        power[home, :, device] = _filled(column, *name)
    return Meters(np.where(present[:, None], power, 0), present)


def _as_many(what, names, number):
    if names is not None and len(names) != number:
        raise ValueError(f"{what} must be {number}, got the names {names!r}.")


def _name(word, names, number):
    return f"{word} {number}" if names is None else str(names[number])


def _refuse(column, home, device):
    if (column < 0).any():
        minute = int(np.argmax(column < 0))
        raise ValueError(
            f"power must not be negative: {device} of {home} takes {column[minute]} W "
            f"in minute {minute}; turn its clamp round, or leave it out (NaN)."
        )
    if np.isinf(column).any():
        minute = int(np.argmax(np.isinf(column)))
        raise ValueError(
            f"power must be finite: {device} of {home} has an infinity in minute "
            f"{minute}; mark it as missing (NaN)."
        )


def gap(column) -> tuple[int, int]:
    """The longest gap: how many minutes it has, and the first of them.

    Args:
      column: ``float[minutes]``; NaN is a missing minute.

    Example:
      >>> gap(np.array([1.0, np.nan, np.nan, 2.0]))
      (2, 1)
    """
    known = np.flatnonzero(~np.isnan(column))
    edges = np.concatenate([[-1], known, [len(column)]])
    gaps = np.diff(edges) - 1
    return int(gaps.max()), int(edges[np.argmax(gaps)]) + 1


def bridged(column):
    """Minutes with the last reading where they have none, the first ones the first.

    Args:
      column: ``float[minutes]``, at least one of which is known.

    Returns:
      The same without NaN.

    Example:
      >>> bridged(np.array([np.nan, 1.0, np.nan, 2.0]))
      array([1., 1., 1., 2.])
    """
    known = np.flatnonzero(~np.isnan(column))
    last = np.searchsorted(known, np.arange(len(column)), side="right") - 1
    return column[known[np.maximum(last, 0)]]


def _filled(column, home, device):
    longest, minute = gap(column)
    if longest > BRIDGED:
        raise ValueError(
            f"{device} of {home} lacks {longest} minutes from minute {minute} on, and "
            f"at most {BRIDGED} are bridged; choose days that are whole, or leave the "
            "device out (NaN)."
        )
    return bridged(column)
