"""Homes: what each of their devices takes, whole days one after the other."""

from typing import NamedTuple

import numpy as np

from jaxanon.energy.metering import BRIDGED, bridged, gap
from jaxanon.energy.saving import DAY
from jaxanon.kernels.checks import whole


class Homes(NamedTuple):
    """What devices of homes take, from a midnight on, and what they are called."""

    # float32[homes, days * 1440, devices], W; NaN where it is lacking
    power: np.ndarray
    kinds: np.ndarray  # int32[homes, devices], into ``kind_names``
    kind_names: tuple[str, ...]
    names: tuple[str, ...]  # of homes
    dates: np.ndarray | None  # datetime64[D][homes, days]; None of what has no calendar


def take(homes: Homes, start: int, stop: int) -> Homes:
    """Some of the homes, in their order.

    Args:
      homes: ``Homes``.
      start, stop: places, as a slice has them.

    Example:
      >>> watts, kinds = np.zeros((2, 1440, 1)), np.zeros((2, 1))
      >>> take(Homes(watts, kinds, ("tv",), ("a", "b"), None), 1, 2).names
      ('b',)
    """
    some = slice(start, stop)
    dates = None if homes.dates is None else homes.dates[some]
    return homes._replace(
        power=homes.power[some],
        kinds=homes.kinds[some],
        names=homes.names[some],
        dates=dates,
    )


def device_names(homes: Homes) -> list[list[str]]:
    """What every device of every home is called in messages.

    Args:
      homes: ``Homes``.

    Example:
      >>> kinds = np.array([[1, 0]])
      >>> device_names(Homes(np.zeros((1, 1440, 2)), kinds, ("pc", "tv"), ("a",), None))
      [['tv', 'pc']]
    """
    return [[homes.kind_names[kind] for kind in own] for own in homes.kinds]


def from_readings(home, device, minute, power, num_days: int) -> Homes:
    """Homes of readings as a file lists them, a row for each.

    Devices of one name are of a kind. A home's days are the first ``num_days``, in
    order of date, of which none of its devices lacks more than 15 minutes in a row;
    those are bridged with the last reading. Homes' days need not be the same dates.

    Args:
      home, device: ``str[n]`` or ``int[n]``, whose reading it is.
      minute: ``int[n]``, minutes since 1970 on the home's clock, or ``datetime64[n]``.
      power: ``float[n]``, W, or whole numbers; NaN is a missing minute.
      num_days: at least 1.

    Returns:
      ``Homes``, by name; a device that a home lacks is NaN there.

    Raises:
      TypeError: if minutes are no whole numbers and no times, ``num_days`` none, power
        no numbers, or homes or devices neither words nor whole numbers.
      ValueError: for arrays of other shapes, fewer than one day; naming home and
        device, for readings that are not in order of time, two of one minute, or
        power that is negative or infinite; naming the home and the device that lacks
        most days, if there are too few whole days.

    Example:
      >>> minutes = np.arange(1440)
      >>> made = from_readings(["a"] * 1440, ["tv"] * 1440, minutes, minutes / 2, 1)
      >>> made.names, made.kind_names, made.power.shape, str(made.dates[0, 0])
      (('a',), ('tv',), (1, 1440, 1), '1970-01-01')
    """
    whole("num_days", num_days, least=1)
    home, device, minute, power = map(np.asarray, (home, device, minute, power))
    for names in (home, device):
        if names.dtype.kind not in "UOiu":
            raise TypeError(
                f"home and device must be words or whole numbers, got {names.dtype}."
            )
    home, device = home.astype(str), device.astype(str)  # Numbers are names, too.
    if minute.dtype.kind == "M":
        if np.isnat(minute).any():
            raise ValueError("minute must be times, got NaT; leave such readings out.")
        minute = minute.astype("datetime64[m]").astype(np.int64)
    if minute.dtype.kind not in "iu":
        raise TypeError(
            f"minute must be whole minutes since 1970 or datetime64, got "
            f"{minute.dtype}."
        )
    minute = minute.astype(np.int64)  # Unsigned ones have no steps back.
    if power.dtype.kind not in "iuf":
        raise TypeError(f"power must be numbers, in W, got {power.dtype}.")
    shapes = {array.shape for array in (home, device, minute, power)}
    if len(shapes) > 1 or minute.ndim != 1 or not len(minute):
        raise ValueError(
            f"home, device, minute and power must be rows of one length, at least 1, "
            f"got shapes {sorted(shapes)}."
        )
    homes = tuple(map(str, np.unique(home)))
    kinds = tuple(map(str, np.unique(device)))
    parts = []
    for name in homes:
        series = {}
        for place, kind in enumerate(kinds):
            rows = (home == name) & (device == kind)
            _in_order(minute[rows], kind, name)
            _possible(minute[rows], power[rows], kind, name)
            series[place] = minute[rows], power[rows]
        parts.append(_first_days(series, kinds, name, num_days))
    return Homes(
        power=np.stack([watts for watts, _ in parts]),
        kinds=np.tile(np.arange(len(kinds), dtype=np.int32), (len(homes), 1)),
        kind_names=kinds,
        names=homes,
        dates=np.stack([dates for _, dates in parts]),
    )


def _in_order(minute, device, home):
    steps = np.diff(minute)
    wrong = np.flatnonzero(steps <= 0)
    if len(wrong):
        row = int(wrong[0])
        when = minute[row : row + 2].astype("datetime64[m]")
        if steps[row] == 0:
            raise ValueError(
                f"{device} of {home} has two readings of {when[0]}; take the mean of "
                "those of a minute."
            )
        raise ValueError(
            f"readings of {device} of {home} are not in order of time: after {when[0]} "
            f"comes {when[1]}; sort them, or look whether its clock was put back."
        )


def _possible(minute, power, device, home):
    wrong = np.flatnonzero((power < 0) | (power > np.finfo(np.float32).max))
    if len(wrong):
        row = int(wrong[0])
        must, turn = "be finite", ""
        if power[row] < 0:
            must, turn = "not be negative", "turn its clamp round, or "
        raise ValueError(
            f"power must {must}: {device} of {home} takes {power[row]} W at "
            f"{minute[row].astype('datetime64[m]')}; {turn}mark such minutes as "
            "missing (NaN)."
        )


def _first_days(series, kinds, home, num_days):
    """``float32[days * 1440, devices]`` and dates of a home's first whole days."""
    there = [place for place, (minute, _) in series.items() if len(minute)]
    # Days that have readings alone: years may lie between two of them.
    known = np.unique(np.concatenate([series[place][0] // DAY for place in there]))
    grid = np.full((len(known) * DAY, len(kinds)), np.nan, np.float32)
    for place in there:
        minute, power = series[place]
        rows = np.searchsorted(known, minute // DAY) * DAY + minute % DAY
        grid[rows, place] = power
    there = [place for place in there if not np.isnan(grid[:, place]).all()]
    if not there:
        raise ValueError(
            f"{home} has no reading that is a number (NaN are missing ones); leave it "
            "out."
        )
    days = grid.reshape(-1, DAY, len(kinds))
    fits = lambda column: gap(column)[0] <= BRIDGED
    full = np.array([[fits(day[:, place]) for place in there] for day in days])
    entire = np.flatnonzero(full.all(axis=1))
    if len(entire) < num_days:
        worst = kinds[there[int(np.argmin(full.sum(axis=0)))]]
        raise ValueError(
            f"{home} has {len(entire)} days in which no device lacks more than "
            f"{BRIDGED} minutes in a row, and {num_days} are needed; {worst} lacks "
            "most: leave it or the home out, or ask for fewer days."
        )
    kept = days[entire[:num_days]]
    for day in kept:
        for place in there:
            day[:, place] = bridged(day[:, place])
    dates = known[entire[:num_days]].astype("datetime64[D]")
    return kept.reshape(-1, len(kinds)), dates
