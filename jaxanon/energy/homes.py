"""Power readings of homes, validated and split into whole days."""

import dataclasses
import json
from typing import NamedTuple

import numpy as np

from jaxanon.energy.saving import DAY
from jaxanon.kernels.checks import whole


@dataclasses.dataclass(frozen=True)
class HomesSpec:
    """Names of homes and of their devices, for which a method is built."""

    homes: tuple[str, ...]
    devices: tuple[tuple[str, ...], ...]  # of each home; equal lengths

    def to_json(self) -> str:
        """Returns the spec as JSON, for ``config.json`` of a run."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "HomesSpec":
        """Parses the spec of ``to_json`` or of a run of version 0.1.

        Example:
          >>> HomesSpec.from_json('{"homes": ["a"], "devices": ["pc + tv"]}').devices
          (('pc', 'tv'),)
        """
        fields = json.loads(text)
        devices = (
            d.split(" + ") if isinstance(d, str) else d for d in fields["devices"]
        )
        return cls(tuple(fields["homes"]), tuple(map(tuple, devices)))


class Homes(NamedTuple):
    """Power and names of the devices of homes, starting at midnight."""

    # float32[homes, days * 1440, devices], W; NaN where missing
    power: np.ndarray
    kinds: np.ndarray  # int32[homes, devices], indices into ``kind_names``
    kind_names: tuple[str, ...]
    names: tuple[str, ...]  # of homes
    dates: np.ndarray | None  # datetime64[D][homes, days]; None without calendar

    @property
    def spec(self) -> HomesSpec:
        """Names of the homes and their devices."""
        return HomesSpec(self.names, tuple(map(tuple, device_names(self))))


def take(homes: Homes, start: int, stop: int) -> Homes:
    """Returns a range of homes.

    Args:
      homes: ``Homes``.
      start, stop: indices of the first home and after the last, as in a slice.

    Example:
      >>> watts, kinds = np.zeros((2, 1440, 1)), np.zeros((2, 1))
      >>> take(Homes(watts, kinds, ("tv",), ("a", "b"), None), 1, 2).names
      ('b',)
    """
    rows = slice(start, stop)
    dates = None if homes.dates is None else homes.dates[rows]
    return homes._replace(
        power=homes.power[rows],
        kinds=homes.kinds[rows],
        names=homes.names[rows],
        dates=dates,
    )


def device_names(homes: Homes) -> list[list[str]]:
    """Returns the names of all devices of every home, for messages.

    Args:
      homes: ``Homes``.

    Example:
      >>> kinds = np.array([[1, 0]])
      >>> device_names(Homes(np.zeros((1, 1440, 2)), kinds, ("pc", "tv"), ("a",), None))
      [['tv', 'pc']]
    """
    return [[homes.kind_names[kind] for kind in row] for row in homes.kinds]


def from_readings(home, device, minute, power, num_days: int) -> Homes:
    """Builds homes from readings, one row each.

    Devices of the same name are of one kind. A home keeps its first ``num_days`` days,
    by date, on which no device lacks more than 15 consecutive minutes; shorter gaps are
    filled with the last reading. Homes may have different dates.

    Args:
      home, device: home and device of each reading, ``str[n]`` or ``int[n]``.
      minute: minutes since 1970 on the home's clock, ``int[n]``, or ``datetime64[n]``.
      power: ``float[n]`` or ``int[n]``, W; NaN marks a missing minute.
      num_days: number of days per home, at least 1.

    Returns:
      ``Homes``, sorted by name; a device that a home lacks is NaN.

    Raises:
      TypeError: if an argument has the wrong type.
      ValueError: if shapes differ; if readings of a device are unsorted, repeat a
        minute, or are negative or infinite; if a home has too few whole days. The
        message names the home and device.

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
                f"home and device must be strings or ints, got {names.dtype}."
            )
    home, device = home.astype(str), device.astype(str)  # Numbers are valid names.
    if minute.dtype.kind == "M":
        if np.isnat(minute).any():
            raise ValueError(
                "minute must be valid times, got NaT; remove such readings."
            )
        minute = minute.astype("datetime64[m]").astype(np.int64)
    if minute.dtype.kind not in "iu":
        raise TypeError(
            f"minute must be integer minutes since 1970 or datetime64, got "
            f"{minute.dtype}."
        )
    minute = minute.astype(np.int64)  # Signed, for differences.
    if power.dtype.kind not in "iuf":
        raise TypeError(f"power must be numbers in W, got {power.dtype}.")
    shapes = {array.shape for array in (home, device, minute, power)}
    if len(shapes) > 1 or minute.ndim != 1 or not len(minute):
        raise ValueError(
            f"home, device, minute and power must be non-empty rows of one length, "
            f"got shapes {sorted(shapes)}."
        )
    homes = tuple(map(str, np.unique(home)))
    kinds = tuple(map(str, np.unique(device)))
    parts = []
    for name in homes:
        series = {}
        for place, kind in enumerate(kinds):
            rows = (home == name) & (device == kind)
            _check_order(minute[rows], kind, name)
            _check_range(minute[rows], power[rows], kind, name)
            series[place] = minute[rows], power[rows]
        parts.append(_first_days(series, kinds, name, num_days))
    return Homes(
        power=np.stack([watts for watts, _ in parts]),
        kinds=np.tile(np.arange(len(kinds), dtype=np.int32), (len(homes), 1)),
        kind_names=kinds,
        names=homes,
        dates=np.stack([dates for _, dates in parts]),
    )


def _check_order(minute, device, home):
    steps = np.diff(minute)
    wrong = np.flatnonzero(steps <= 0)
    if len(wrong):
        row = int(wrong[0])
        when = minute[row : row + 2].astype("datetime64[m]")
        if steps[row] == 0:
            raise ValueError(
                f"minute must be unique, got two readings of {device} of {home} at "
                f"{when[0]}; average them."
            )
        raise ValueError(
            f"minute must increase, got {when[1]} after {when[0]} for {device} of "
            f"{home}; sort the readings, or check whether the clock was set back."
        )


def _check_range(minute, power, device, home):
    wrong = np.flatnonzero((power < 0) | (power > np.finfo(np.float32).max))
    if len(wrong):
        row = int(wrong[0])
        bound, remedy = "be finite", ""
        if power[row] < 0:
            bound, remedy = "not be negative", "reverse its clamp, or "
        raise ValueError(
            f"power must {bound}, got {power[row]} W for {device} of {home} at "
            f"{minute[row].astype('datetime64[m]')}; {remedy}mark such minutes as "
            "missing (NaN)."
        )


def _first_days(series, kinds, home, num_days):
    """Returns ``float32[days * 1440, devices]`` and dates of the first whole days."""
    present_columns = [place for place, (minute, _) in series.items() if len(minute)]
    # Only days with readings, because gaps may last years.
    known = np.unique(
        np.concatenate([series[place][0] // DAY for place in present_columns])
    )
    grid = np.full((len(known) * DAY, len(kinds)), np.nan, np.float32)
    for place in present_columns:
        minute, power = series[place]
        rows = np.searchsorted(known, minute // DAY) * DAY + minute % DAY
        grid[rows, place] = power
    present_columns = [
        place for place in present_columns if not np.isnan(grid[:, place]).all()
    ]
    if not present_columns:
        raise ValueError(
            f"power must have a reading that is not NaN for each home, got none for "
            f"{home}; remove it."
        )
    days = grid.reshape(-1, DAY, len(kinds))
    is_complete = lambda column: longest_gap(column)[0] <= MAX_GAP_MIN
    full = np.array(
        [[is_complete(day[:, place]) for place in present_columns] for day in days]
    )
    entire = np.flatnonzero(full.all(axis=1))
    if len(entire) < num_days:
        worst = kinds[present_columns[int(np.argmin(full.sum(axis=0)))]]
        raise ValueError(
            f"num_days must be at most {len(entire)} for {home}, the days without gaps "
            f"over {MAX_GAP_MIN} minutes, got {num_days}; {worst} has the fewest: "
            "remove it or the home, or reduce num_days."
        )
    first_days = days[entire[:num_days]]
    for day in first_days:
        for place in present_columns:
            day[:, place] = fill_gaps(day[:, place])
    dates = known[entire[:num_days]].astype("datetime64[D]")
    return first_days.reshape(-1, len(kinds)), dates


MAX_GAP_MIN = 15  # Longest gap that is filled, in minutes.


class Meters(NamedTuple):
    """Power without gaps, and the devices that each home has."""

    power: np.ndarray  # float32[homes, minutes, devices], W; 0 for absent devices
    present: np.ndarray  # bool[homes, devices]


def clean_power(power, homes=None, devices=None) -> Meters:
    """Validates power readings and fills short gaps.

    A missing minute (NaN) takes the last value before it, or the first value at the
    start, for gaps of up to 15 minutes. A device that is NaN throughout counts as
    absent.

    Args:
      power: ``float[homes, minutes, devices]``, W.
      homes: names of homes for messages; default: "home 0", ...
      devices: names of devices for messages, shared by all homes or one list per home;
        default: "device 0", ...

    Returns:
      ``Meters``.

    Raises:
      TypeError: if power is not real.
      ValueError: if shapes or numbers of names are wrong; if power is negative (a
        reversed clamp, or solar cells) or infinite; if a gap exceeds 15 minutes. The
        message names the home and device.

    Example:
      >>> power = np.array([[[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]]])
      >>> meters = clean_power(power)
      >>> meters.power[0, :, 0], meters.present
      (array([1., 1., 3.], dtype=float32), array([[ True, False]]))
    """
    power = np.array(power)
    if power.dtype.kind not in "fiu":
        raise TypeError(f"power must hold real numbers, got {power.dtype}.")
    if power.ndim != 3 or not power.size:
        raise ValueError(
            f"power must be a non-empty float[homes, minutes, devices], got shape "
            f"{power.shape}."
        )
    num_homes, _, num_devices = power.shape
    _check_count("homes", homes, num_homes)
    alike = devices is None or not len(devices) or isinstance(devices[0], str)
    lists = [devices] * num_homes if alike else list(devices)  # pyrefly: ignore
    _check_count("lists of devices", lists, num_homes)
    for names in lists:
        _check_count("devices", names, num_devices)
    power = power.astype(np.float32)
    present = np.asarray(~np.isnan(power).all(axis=1))
    for home, device in np.argwhere(present):
        column = power[home, :, device]
        name = _name("home", homes, home), _name("device", lists[home], device)
        _check_finite(column, *name)
        power[home, :, device] = _fill_short_gaps(column, *name)
    return Meters(np.where(present[:, None], power, 0), present)


def _check_count(what, names, number):
    if names is not None and len(names) != number:
        raise ValueError(f"{what} must have length {number}, got {names!r}.")


def _name(word, names, number):
    return f"{word} {number}" if names is None else str(names[number])


def _check_finite(column, home, device):
    if (column < 0).any():
        minute = int(np.argmax(column < 0))
        raise ValueError(
            f"power must not be negative, got {column[minute]} W for {device} of "
            f"{home} in minute {minute}; reverse its clamp, or set the device to NaN."
        )
    if np.isinf(column).any():
        minute = int(np.argmax(np.isinf(column)))
        raise ValueError(
            f"power must be finite, got infinity for {device} of {home} in minute "
            f"{minute}; mark it as missing (NaN)."
        )


def longest_gap(column) -> tuple[int, int]:
    """Returns the length of the longest gap and its first minute.

    Args:
      column: ``float[minutes]``; NaN marks a missing minute.

    Example:
      >>> longest_gap(np.array([1.0, np.nan, np.nan, 2.0]))
      (2, 1)
    """
    known = np.flatnonzero(~np.isnan(column))
    edges = np.concatenate([[-1], known, [len(column)]])
    gaps = np.diff(edges) - 1
    return int(gaps.max()), int(edges[np.argmax(gaps)]) + 1


def fill_gaps(column):
    """Fills missing minutes with the last reading, or the first one at the start.

    Args:
      column: ``float[minutes]``, with at least one reading.

    Returns:
      ``float[minutes]`` without NaN.

    Example:
      >>> fill_gaps(np.array([np.nan, 1.0, np.nan, 2.0]))
      array([1., 1., 1., 2.])
    """
    known = np.flatnonzero(~np.isnan(column))
    last = np.searchsorted(known, np.arange(len(column)), side="right") - 1
    return column[known[np.maximum(last, 0)]]


def _fill_short_gaps(column, home, device):
    longest, minute = longest_gap(column)
    if longest > MAX_GAP_MIN:
        raise ValueError(
            f"power must not have gaps of more than {MAX_GAP_MIN} minutes, got "
            f"{longest} for {device} of {home} from minute {minute}; choose other "
            "days, or set the device to NaN."
        )
    return fill_gaps(column)
