"""Times of recordings, from numbers, dates or text, as seconds."""

import math
import re
from typing import NamedTuple

import numpy as np

from jaxanon.recordings import dialect, rates

UNITS = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
NAMES = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
EPOCH_S = 3.0e8, 4.2e9  # Unix times from 1979 to 2103; units do not overlap.
EXACT_S = 1e7  # Times below are kept; larger ones are counted from an origin.
PLAUSIBLE_HZ = 0.9, 20_000.0  # Rates of numbers without a unit.
SLOWEST_HZ = 1 / 7200  # Sensors are faster.
MISSING = {"", "na", "nan", "null", "none", "nat"}
CHUNK = 1 << 17  # Texts that are parsed at a time.
MAX_SHAPES = 2000  # Distinct arrangements of digits and other characters.

ISO = (
    r"\s*(?P<Y>\d{4})-?(?P<m>\d\d)-?(?P<d>\d\d)[T _](?P<H>\d\d):?(?P<M>\d\d)"
    r"(?::?(?P<S>\d\d)(?:[.,](?P<f>\d+))?)?\s*(?P<z>Z|z|UTC|[+-]\d\d(?::?\d\d)?)?\s*"
)
DIRECTIVES = {
    "Y": r"(?P<Y>\d{4})",
    "y": r"(?P<y>\d\d)",
    "m": r"(?P<m>\d\d?)",
    "d": r"(?P<d>\d\d?)",
    "H": r"(?P<H>\d\d?)",
    "I": r"(?P<I>\d\d?)",
    "M": r"(?P<M>\d\d?)",
    "S": r"(?P<S>\d\d?)",
    "f": r"(?P<f>\d+)",
    "p": r"(?P<p>[AaPp][Mm])",
    "b": r"(?P<b>[A-Za-z]{3})",
    "B": r"(?P<b>[A-Za-z]{3,9})",
    "z": r"(?P<z>Z|z|UTC|[+-]\d\d(?::?\d\d)?)",
    "%": "%",
}
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


class Times(NamedTuple):
    """Times of the rows of one recording.

    Attributes:
      seconds: ``float64[rows]`` since ``origin``; NaN where a time is missing.
      origin: whole seconds, since 1970 for dates and epoch times; 0 for times that
        are relative to the start of a recording.
      format: "s", "ms", "us", "ns", "iso" or a strptime format.
    """

    seconds: np.ndarray
    origin: int
    format: str


def parse(
    values, format: str | None = None, rate_hz: float | None = None, where: str = "time"
) -> Times:
    """Converts times to seconds.

    Numbers are in seconds, milliseconds, microseconds or nanoseconds, since 1970 or
    since any other start. The unit follows from the size of Unix times, from
    ``rate_hz``, or from the only plausible sampling rate.

    Args:
      values: numbers, text or ``datetime64``, one per row. Missing are NaN, NaT, an
        empty text, ``NA``, ``NaN``, ``null`` or ``None``.
      format: "s", "ms", "us", "ns", "iso" (ISO 8601, such as
        "2026-03-02T08:00:00.02Z"; without a zone it counts as UTC), or a format of
        ``strptime``, such as "%d/%m/%Y %H:%M:%S.%f". None detects all but the last.
      rate_hz: rate of the rows, if known; used only to detect a unit.
      where: name of the values in messages.

    Raises:
      ValueError: if the values do not have the format, or the unit is ambiguous.

    Example:
      >>> parse(np.array([1770000000020, 1770000000040])).seconds
      array([0.02, 0.04])
      >>> parse(["2026-03-02T08:00:00.5Z", "2026-03-02T09:00:01+01:00"]).seconds
      array([0.5, 1. ])
      >>> parse(np.array([0, 20, 40]))
      Traceback (most recent call last):
      ...
      ValueError: time must have a known unit, got steps that mean 0.05 Hz in \
seconds and 50 Hz in milliseconds (milliseconds?); give time_format \
(--time-format) s or ms.
    """
    values = np.asarray(values)
    if format is not None and format not in (*UNITS, "iso") and "%" not in format:
        raise ValueError(
            f"time_format must be one of {[*UNITS, 'iso']} or a strptime format such "
            f"as '%d/%m/%Y %H:%M:%S.%f', got {format!r}."
        )
    if values.dtype.kind == "M":
        return _dates(values)
    if values.dtype.kind in "iuf":
        if format not in (None, *UNITS):
            raise ValueError(f"{where} must be text for {format!r}, got numbers.")
        return _numbers(values, format, rate_hz, where)
    if values.dtype.kind not in "USO":
        raise ValueError(
            f"{where} must be numbers, text or dates, got {values.dtype} values."
        )
    if values.dtype.kind != "U":
        values = values.astype("U") if values.dtype.kind == "S" else _texts(values)
    first = next((t for t in values[:1000].tolist() if not _is_missing(t)), "")
    if format in UNITS or (format is None and dialect.is_number(first.strip())):
        return _numbers(_as_floats(values, where), format, rate_hz, where)
    if format is None and not re.fullmatch(ISO, first) and first:
        raise ValueError(
            f"{where} must be numbers or ISO 8601 such as '2026-03-02T08:00:00.02Z', "
            f"got {first!r}; give its format (--time-format), such as "
            "'%d/%m/%Y %H:%M:%S.%f' if the day comes first."
        )
    regex = re.compile(ISO if format in (None, "iso") else _regex(format))
    return _from_text(values, regex, format or "iso", where)


def _is_missing(text):
    return text.strip().lower() in MISSING


def _texts(values):
    """Returns an object array as text; missing objects become empty."""
    return np.array(["" if x is None or x != x else str(x) for x in values.tolist()])


def _as_floats(values, where):
    try:
        return values.astype(np.float64)
    except ValueError:
        pass
    numbers = np.full(len(values), np.nan)
    for row, text in enumerate(values.tolist()):
        try:
            numbers[row] = np.nan if _is_missing(text) else float(text)
        except ValueError:
            raise ValueError(
                f"{where} must be numbers like in the first row, got {text!r} in row "
                f"{row + 1}."
            ) from None
    return numbers


def _dates(values):
    """Returns Times of ``datetime64``."""
    if np.datetime_data(values.dtype)[0] in "YMWDhm":
        values = values.astype("datetime64[s]")
    unit, count = np.datetime_data(values.dtype)
    if unit not in UNITS:
        values, unit, count = values.astype("datetime64[ns]"), "ns", 1
    missing = np.isnat(values)
    return _since(values.view(np.int64) * count, missing, UNITS[unit], "iso")


def _since(ticks, missing, scale, format):
    """Returns Times of integers with ``scale`` ticks per second."""
    there = ticks[~missing] if missing.any() else ticks
    origin = int(there.min()) // scale if len(there) else 0
    if abs(origin) < EXACT_S:
        origin = 0
    seconds = (ticks - ticks.dtype.type(origin * scale)) / scale
    if missing.any():
        seconds[missing] = np.nan
    return Times(seconds, origin, format)


def _numbers(values, format, rate_hz, where):
    if format is None:
        format = _unit(values, rate_hz, where)
    scale = UNITS[format]
    if values.dtype.kind in "iu":
        values = values.astype(np.int64)
        return _since(values, np.zeros(len(values), bool), scale, format)
    values = values.astype(np.float64, copy=False)
    # Infinite times are missing, too.
    finite = np.isfinite(values)
    if not finite.all():
        values = np.where(finite, values, np.nan)
    least = float(np.fmin.reduce(values, initial=np.inf))
    origin = math.floor(least / scale) if math.isfinite(least) else 0
    origin = 0 if abs(origin) < EXACT_S else origin
    # Subtracted before dividing, because large times have few digits to spare.
    seconds = values - float(origin * scale) if origin else values
    seconds = seconds / scale if scale > 1 else seconds
    if origin:  # Restores the decimals that large numbers hold inexactly.
        spacing = float(np.spacing(np.abs(least))) / scale
        seconds = np.round(seconds, -math.ceil(math.log10(2 * spacing)))
    return Times(seconds, origin, format)


def _unit(values, rate_hz, where):
    """Returns the unit of numbers, or raises ValueError if it is ambiguous."""
    some = values[:: max(1, len(values) // 1000)].astype(np.float64)
    typical = float(np.nanmedian(some)) if np.isfinite(some).any() else 0.0
    whole = values.astype(np.int64, copy=False) if values.dtype.kind in "iu" else values
    per_tick = rates.estimate(whole).rate_hz
    if not math.isfinite(per_tick):
        per_tick = 0.0
    in_hz = {unit: per_tick * scale for unit, scale in UNITS.items()}
    for unit, scale in UNITS.items():
        epoch = EPOCH_S[0] <= typical / scale <= EPOCH_S[1]
        slowest = 0 if per_tick == 0 or rate_hz else SLOWEST_HZ
        if epoch and slowest <= in_hz[unit] <= PLAUSIBLE_HZ[1]:
            return unit
    if per_tick == 0:
        return "s"
    if rate_hz is not None:
        for unit, hz in in_hz.items():
            if 1 / 30 <= hz / rate_hz <= 30:
                return unit
    low, high = PLAUSIBLE_HZ
    if low <= in_hz["s"] <= high:
        return "s"
    likely = [unit for unit, hz in in_hz.items() if 1 <= hz <= 2000]
    if len(likely) == 1 and in_hz["s"] < SLOWEST_HZ:
        return likely[0]
    if not likely:
        raise ValueError(
            f"{where} must be in s, ms, us or ns, got steps that mean "
            f"{in_hz['s']:.4g} Hz in seconds; convert them, or give time_format "
            "(--time-format) if that is right."
        )
    choice = likely[0]
    raise ValueError(
        f"{where} must have a known unit, got steps that mean {in_hz['s']:.4g} Hz in "
        f"seconds and {in_hz[choice]:.4g} Hz in {NAMES[choice]} ({NAMES[choice]}?); "
        f"give time_format (--time-format) s or {choice}."
    )


def _regex(format):
    """Returns a regular expression for a strptime format."""
    parts = re.split(r"(%.)", format)
    pattern = r"\s*"
    for part in parts:
        if part.startswith("%") and part[1:] not in DIRECTIVES:
            raise ValueError(
                f"time_format must use the directives %{' %'.join(DIRECTIVES)}, got "
                f"{part!r} in {format!r}."
            )
        pattern += DIRECTIVES[part[1:]] if part[:1] == "%" else re.escape(part)
    try:
        return re.compile(pattern + r"\s*").pattern
    except re.error:
        raise ValueError(
            f"time_format must use each directive once, got {format!r}."
        ) from None


def _from_text(values, regex, format, where):
    """Parses texts, all rows with the same arrangement of digits at once."""
    ticks, missing = np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    shapes = 0
    for begin in range(0, len(values), CHUNK):
        chunk = np.ascontiguousarray(values[begin : begin + CHUNK])
        width = max(1, chunk.dtype.itemsize // 4)
        chars = chunk.astype(f"U{width}").view(np.uint32).reshape(len(chunk), width)
        digits = chars - np.uint32(48)
        is_digit = digits <= 9
        shape = np.where(is_digit, np.uint32(48), chars)
        rows = np.arange(len(chunk))
        while len(rows):
            same = (shape[rows] == shape[rows[0]]).all(axis=1)
            group, rows = rows[same], rows[~same]
            text, shapes = str(chunk[group[0]]), shapes + 1
            if _is_missing(text):
                missing[begin + group] = True
                continue
            match = regex.fullmatch(text)
            if match is None or shapes > MAX_SHAPES:
                what = "ISO 8601" if format == "iso" else repr(format)
                raise ValueError(
                    f"{where} must have one format, {what}, got {text!r} in row "
                    f"{begin + group[0] + 1}; give another time_format "
                    "(--time-format)."
                )
            nanos = _ticks(match, digits[group])
            if (bad := nanos == np.iinfo(np.int64).min).any():
                row = group[np.argmax(bad)]
                raise ValueError(
                    f"{where} must be dates that exist, got {str(chunk[row])!r} in row "
                    f"{begin + row + 1}; give another time_format (--time-format)."
                )
            ticks[begin + group] = nanos
    return _since(ticks, missing, UNITS["ns"], format)


def _ticks(match, digits):
    """Returns nanoseconds since 1970 of rows with the match's arrangement."""
    groups = {k: match.span(k) for k, text in match.groupdict().items() if text}

    def number(span):
        value = np.zeros(len(digits), np.int64)
        for at in range(*span):
            value = value * 10 + digits[:, at]
        return value

    zero = np.zeros(len(digits), np.int64)
    field = lambda key, default: (
        number(groups[key]) if key in groups else zero + default
    )
    year = field("Y", 1970)
    if "y" in groups:  # As strptime: 69 to 99 are of the last century.
        year = field("y", 0)
        year += np.where(year >= 69, 1900, 2000)
    month, day = field("m", 1), field("d", 1)
    if "b" in groups:
        name = match["b"].lower()[:3]
        month = zero + (MONTHS.index(name) + 1 if name in MONTHS else 99)
    hour, minute, second = field("H", 0), field("M", 0), field("S", 0)
    valid = (month >= 1) & (month <= 12) & (minute < 60) & (second <= 60)
    if "I" in groups:
        hour = field("I", 0)
        valid &= (hour >= 1) & (hour <= 12)
        hour = hour % 12 + (12 if (match["p"] or "am").lower() == "pm" else 0)
    valid &= hour < 24
    months = (year - 1970) * 12 + month - 1
    first = months.astype("datetime64[M]")
    days = (first.astype("datetime64[D]")).astype(np.int64)
    length = (first + 1).astype("datetime64[D]").astype(np.int64) - days
    # Years whose nanoseconds fit int64.
    valid &= (day >= 1) & (day <= length) & (year > 1677) & (year < 2262)
    fraction = zero
    if "f" in groups:
        begin, end = groups["f"]
        kept = min(end, begin + 9)
        fraction = number((begin, kept)) * 10 ** (9 - (kept - begin))
    offset = zero
    if "z" in groups and match["z"][0] in "+-":
        begin, end = groups["z"]
        minutes = number((end - 2, end)) if end - begin > 3 else zero
        offset = number((begin + 1, begin + 3)) * 3600 + minutes * 60
        offset = -offset if match["z"][0] == "-" else offset
    seconds = (days + day - 1) * 86400 + hour * 3600 + minute * 60 + second - offset
    with np.errstate(over="ignore"):
        nanos = seconds * 10**9 + fraction
    return np.where(valid, nanos, np.iinfo(np.int64).min)
