"""Units of sensor channels: recognition, standard spelling and conversion."""

import re
from typing import NamedTuple

GRAVITY = 9.80665  # m/s^2 of one g, by definition.


class Unit(NamedTuple):
    """A unit of measurement.

    Attributes:
      name: standard spelling.
      quantity: quantity that it measures; units of one quantity convert.
      scale, offset: a value in the base unit of the quantity is
        ``value * scale + offset``.
      stored: whether files of windows keep this unit; others become the first unit of
        the quantity that is kept.
    """

    name: str
    quantity: str
    scale: float
    offset: float = 0.0
    stored: bool = False


_DEGREE = 0.017453292519943295  # rad.
# Names are compared after ``_plain``: without blanks, carets and underscores.
_TABLE: tuple[tuple[Unit, str], ...] = (
    (Unit("m/s^2", "acceleration", 1.0, stored=True), "m/s2 ms-2 m/s/s m*s-2 m.s-2"),
    (Unit("g", "acceleration", GRAVITY, stored=True), "g G gs gn gforce gravity"),
    (Unit("mg", "acceleration", GRAVITY / 1000), "mg millig mG"),
    (Unit("cm/s^2", "acceleration", 0.01), "cm/s2 Gal"),
    (Unit("mm/s^2", "acceleration", 0.001), "mm/s2"),
    (Unit("rad/s", "rotation", 1.0, stored=True), "rad/s rads-1 rad*s-1 radian/s"),
    (
        Unit("deg/s", "rotation", _DEGREE, stored=True),
        "deg/s dps d/s °/s degree/s degrees/s deg*s-1 degs-1 °s-1 deg/sec",
    ),
    (Unit("mdeg/s", "rotation", _DEGREE / 1000), "mdeg/s mdps"),
    (Unit("rpm", "rotation", 6 * _DEGREE), "rpm"),
    (Unit("µT", "magnetic field", 1.0, stored=True), "uT µT μT microtesla"),
    (Unit("nT", "magnetic field", 0.001), "nT"),
    (Unit("mT", "magnetic field", 1000.0), "mT"),
    (Unit("T", "magnetic field", 1e6), "tesla"),
    (Unit("gauss", "magnetic field", 100.0), "gauss Gs Ga"),
    (Unit("mgauss", "magnetic field", 0.1), "mgauss mGauss mGs"),
    (Unit("rad", "angle", 1.0, stored=True), "rad radian radians"),
    (Unit("deg", "angle", _DEGREE, stored=True), "deg ° degree degrees"),
    (Unit("hPa", "pressure", 1.0, stored=True), "hPa mbar"),
    (Unit("Pa", "pressure", 0.01), "Pa"),
    (Unit("kPa", "pressure", 10.0), "kPa"),
    (Unit("°C", "temperature", 1.0, stored=True), "°C degC celsius"),
    (Unit("K", "temperature", 1.0, -273.15), "K kelvin"),
    (Unit("°F", "temperature", 5 / 9, -160 / 9), "°F degF fahrenheit"),
    (Unit("1/min", "frequency", 1 / 60, stored=True), "1/min bpm beats/min count/min"),
    (Unit("Hz", "frequency", 1.0, stored=True), "Hz 1/s"),
    (Unit("µS", "conductance", 1.0, stored=True), "uS µS μS microsiemens"),
    (Unit("W", "power", 1.0, stored=True), "W watt watts"),
    (Unit("kW", "power", 1000.0), "kW"),
    (Unit("m/s", "speed", 1.0, stored=True), "m/s ms-1"),
    (Unit("km/h", "speed", 1 / 3.6), "km/h kmh kph"),
    (Unit("m", "length", 1.0, stored=True), "m meter metre meters metres"),
    (Unit("cm", "length", 0.01), "cm"),
    (Unit("km", "length", 1000.0), "km"),
    (Unit("lx", "illuminance", 1.0, stored=True), "lx lux"),
    (Unit("s", "time", 1.0, stored=True), "s sec secs second seconds"),
    (Unit("ms", "time", 1e-3), "ms msec millisecond milliseconds millis"),
    (Unit("us", "time", 1e-6), "us µs μs microsecond microseconds"),
    (Unit("ns", "time", 1e-9), "ns nanosecond nanoseconds nanos"),
)
_PLAIN_WORDS = str.maketrans({"²": "2", "⁻": "-", "¹": "1", "·": "*", "−": "-"})


def _plain(text: str) -> str:
    """Returns a unit without blanks, carets, underscores and superscripts."""
    return re.sub(r"[\s^_()]|\*\*(?=-?\d)", "", text.translate(_PLAIN_WORDS))


_EXACT = {_plain(name): unit for unit, names in _TABLE for name in names.split()}
_EXACT |= {_plain(unit.name): unit for unit, _ in _TABLE}
# Units that differ only by case, such as mPa and MPa, are recognised by case alone.
_LOWER: dict[str, Unit | None] = {}
for _name, _unit in _EXACT.items():
    _known = _LOWER.setdefault(_name.lower(), _unit)
    if _known is not _unit:
        _LOWER[_name.lower()] = None


def find(text: str) -> Unit | None:
    """Returns the unit of this spelling; None if it is unknown.

    Case decides only where two units differ by nothing else. ``G`` is one g.

    Example:
      >>> [find(text).name for text in ("G", "m/s2", "m/s²", "dps", "uT")]
      ['g', 'm/s^2', 'm/s^2', 'deg/s', 'µT']
      >>> find("parsec") is None
      True
    """
    plain = _plain(text)
    return _EXACT.get(plain) or _LOWER.get(plain.lower())


def standard(text: str) -> str:
    """Returns the unit that files of windows keep for values in this unit.

    A known unit that files keep has its standard spelling; others of its quantity
    convert to the first that files keep. Unknown units stay as they are.

    Example:
      >>> standard("mg"), standard("G"), standard("dps"), standard("count")
      ('g', 'g', 'deg/s', 'count')
    """
    unit = find(text)
    if unit is None or unit.stored:
        return text.strip() if unit is None else unit.name
    # Fractions of g stay g, degrees stay degrees.
    names = {"mg": "g", "mdeg/s": "deg/s"}
    same = (each for each, _ in _TABLE if each.quantity == unit.quantity)
    return names.get(unit.name) or next(each.name for each in same if each.stored)


def conversion(source: str, target: str) -> tuple[float, float]:
    """Returns ``(scale, offset)``: values in ``target`` are ``x * scale + offset``.

    Raises:
      ValueError: if the units differ, and one is unknown or they measure different
        quantities.

    Example:
      >>> conversion("mg", "g")
      (0.001, 0.0)
      >>> round(conversion("g", "m/s^2")[0], 5)
      9.80665
    """
    first, second = find(source), find(target)
    if first is None or second is None:
        if source.strip() == target.strip():
            return 1.0, 0.0
        unknown = source if first is None else target
        raise ValueError(
            f"unit must be known to convert {source!r} to {target!r}, got {unknown!r}; "
            "state the unit of the file as the target, or convert the values before."
        )
    if first.quantity != second.quantity:
        raise ValueError(
            f"unit must measure {second.quantity}, as {target!r} does, got "
            f"{source!r} ({first.quantity}); choose another column or unit."
        )
    if first is second:
        return 1.0, 0.0
    if first.name == "mg" and second.name == "g":
        return 0.001, 0.0  # Exact in decimal digits.
    scale = first.scale / second.scale
    return scale, (first.offset - second.offset) / second.scale


def split_name(text: str) -> tuple[str, str]:
    """Splits a column name into name and unit; the unit is empty if there is none.

    Brackets always hold a unit; parentheses do only if they hold a known unit.

    Example:
      >>> split_name("AccX [mg]"), split_name("x (m/s^2)"), split_name("acc (left)")
      (('AccX', 'mg'), ('x', 'm/s^2'), ('acc (left)', ''))
    """
    text = text.strip()
    match = re.fullmatch(r"(.*?)\s*\[([^\[\]]*)\]", text, re.DOTALL)
    if match and match[1]:
        return match[1], match[2].strip()
    match = re.fullmatch(r"(.*?)\s*\(([^()]*)\)", text, re.DOTALL)
    if match and match[1] and find(match[2]):
        return match[1], match[2].strip()
    return text, ""
