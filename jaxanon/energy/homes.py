"""Homes: the readings of their devices, checked and cut into whole days."""

import dataclasses
import json
from typing import NamedTuple

import numpy as np

from jaxanon.energy.saving import DAY
from jaxanon.kernels.checks import whole


@dataclasses.dataclass(frozen=True)
class HomesSpec:
    """Which homes there are, and their devices; what a method of homes is made for."""

    homes: tuple[str, ...]
    devices: tuple[tuple[str, ...], ...]  # of each home, as many in all of them

    def to_json(self) -> str:
        """As ``config.json`` of a run has it."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "HomesSpec":
        """The spec of ``to_json``, or of a run of version 0.1.

        Example:
          >>> HomesSpec.from_json('{"homes": ["a"], "devices": ["pc + tv"]}').devices
          (('pc', 'tv'),)
        """
        told = json.loads(text)
        own = (d.split(" + ") if isinstance(d, str) else d for d in told["devices"])
        return cls(tuple(told["homes"]), tuple(map(tuple, own)))


class Homes(NamedTuple):
    """What devices of homes take, from a midnight on, and what they are called."""

    # float32[homes, days * 1440, devices], W; NaN where it is lacking
    power: np.ndarray
    kinds: np.ndarray  # int32[homes, devices], into ``kind_names``
    kind_names: tuple[str, ...]
    names: tuple[str, ...]  # of homes
    dates: np.ndarray | None  # datetime64[D][homes, days]; None of what has no calendar

    @property
    def spec(self) -> HomesSpec:
        """Names of homes and of their devices."""
        return HomesSpec(self.names, tuple(map(tuple, device_names(self))))


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
