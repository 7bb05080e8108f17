"""Units are recognised in every spelling, and convert by their definitions."""

import pytest

from jaxanon.recordings import units

SPELLINGS = {
    "g": "g G [g] gs GN".replace("[g] ", "").split(),
    "mg": ["mg", "mG", "Mg"],
    "m/s^2": ["m/s2", "m/s^2", "m/s²", "m/s**2", "ms^-2", "m s^-2", "m·s⁻²", "M/S2"],
    "deg/s": ["deg/s", "dps", "°/s", "d/s", "degrees/s", "deg s^-1"],
    "rad/s": ["rad/s", "rads^-1", "RAD/S"],
    "µT": ["uT", "µT", "μT", "microTesla"],
    "1/min": ["bpm", "BPM", "count/min"],
    "°C": ["°C", "degC", "Celsius"],
    "ms": ["ms", "msec", "milliseconds"],
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_of_a_unit(name):
    for text in SPELLINGS[name]:
        assert units.find(text) is not None and units.find(text).name == name, text


@pytest.mark.parametrize("text", ["", "parsec", "count", "m/s^3", "x", "txt", "N"])
def test_other_text_is_no_unit(text):
    assert units.find(text) is None


# Pairs by definition: one standard gravity is 9.80665 m/s^2, half a turn is pi.
CONVERSIONS = [
    ("mg", "g", 1000.0, 1.0),
    ("g", "m/s^2", 1.0, 9.80665),
    ("m/s2", "g", 19.6133, 2.0),
    ("cm/s^2", "m/s^2", 250.0, 2.5),
    ("deg/s", "rad/s", 180.0, 3.141592653589793),
    ("rpm", "deg/s", 1.0, 6.0),
    ("gauss", "µT", 0.5, 50.0),
    ("K", "°C", 300.0, 26.85),
    ("°F", "°C", 212.0, 100.0),
    ("kW", "W", 1.5, 1500.0),
    ("count", "count", 3.0, 3.0),
]


@pytest.mark.parametrize(("source", "target", "value", "wanted"), CONVERSIONS)
def test_conversions_by_definition(source, target, value, wanted):
    scale, offset = units.conversion(source, target)
    assert value * scale + offset == pytest.approx(wanted, rel=1e-12)
    back, other = units.conversion(target, source)
    assert wanted * back + other == pytest.approx(value, rel=1e-12)


def test_units_of_different_quantities_are_refused():
    with pytest.raises(ValueError, match=r"must measure rotation.*got 'g' \(accel"):
        units.conversion("g", "rad/s")
    with pytest.raises(ValueError, match="must be known to convert 'count' to 'g'"):
        units.conversion("count", "g")


def test_every_quantity_has_a_unit_that_files_keep():
    for unit, _ in units._TABLE:
        assert units.find(units.standard(unit.name)).quantity == unit.quantity
        assert units.standard(units.standard(unit.name)) == units.standard(unit.name)


@pytest.mark.parametrize(
    ("text", "name", "unit"),
    [
        ("AccX [mg]", "AccX", "mg"),
        ("x (m/s^2)", "x", "m/s^2"),
        ("acc (left)", "acc (left)", ""),
        ("loggingTime(txt)", "loggingTime(txt)", ""),
        ("a [b] [g]", "a [b]", "g"),
        ("[g]", "[g]", ""),
        (" x ", "x", ""),
        ("x[]", "x", ""),
    ],
)
def test_names_split_into_name_and_unit(text, name, unit):
    assert units.split_name(text) == (name, unit)
