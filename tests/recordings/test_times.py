"""Times in any usual format become seconds, or are refused with the format."""

import datetime

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from jaxanon.recordings import times

ZONES = ["Z", "+00:00", "+02:00", "-0530", "+09"]
STEPS = np.arange(200) / 50


@pytest.mark.parametrize("unit", times.UNITS)
@pytest.mark.parametrize("kind", [np.int64, np.float64, str])
def test_unix_times_are_recognized_in_every_unit(unit, kind):
    scale = times.UNITS[unit]
    ticks = 1_770_000_000 * scale + np.round(STEPS * scale).astype(np.int64)
    if unit == "s":
        ticks = 1_770_000_000 + STEPS
    values = np.array([f"{tick}" for tick in ticks]) if kind is str else ticks
    found = times.parse(values if kind is str or unit == "s" else values.astype(kind))
    assert (found.format, found.origin) == (unit, 1_770_000_000)
    # float64 holds such nanoseconds to 256 ns.
    np.testing.assert_allclose(
        found.seconds, STEPS, atol=1e-9 if unit != "ns" else 3e-7
    )


@pytest.mark.parametrize(
    ("step", "format", "rate_hz", "found"),
    [
        (0.02, None, None, "s"),
        (1, None, None, "s"),
        (20, None, 50.0, "ms"),
        (20, "ms", None, "ms"),
        (20, "s", None, "s"),
        (20_000, None, None, "us"),
        (20_000_000, None, None, "ns"),
    ],
)
def test_relative_times(step, format, rate_hz, found):
    parsed = times.parse(np.arange(100) * step + 7 * step, format, rate_hz)
    assert parsed.format == found and parsed.origin == 0
    np.testing.assert_allclose(parsed.seconds[0], 7 * step / times.UNITS[found])


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (np.arange(100) * 20, r"0.05 Hz in seconds and 50 Hz in milliseconds"),
        (np.arange(100) * 2.5, r"\(milliseconds\?\); give time_format"),
        (np.arange(100) * 1e-6, "must be in s, ms, us or ns"),
        (["03/04/2026 08:00:00"] * 3, "give its format"),
        (["0.1", "oh"], "must be numbers like in the first row, got 'oh' in row 2"),
        (["2026-03-02T08:00:00Z", "oh"], "one format, ISO 8601, got 'oh' in row 2"),
        (["2026-02-30T08:00:00Z"], "must be dates that exist, got '2026-02-30"),
        (["2026-02-03T24:00:00Z"], "must be dates that exist"),
        (np.array([1j]), "must be numbers, text or dates"),
    ],
)
def test_ambiguous_and_malformed_times_are_refused(values, why):
    with pytest.raises(ValueError, match="when .*" + why):
        times.parse(values, where="when")


@pytest.mark.parametrize(
    ("format", "why"),
    [
        ("minutes", "time_format must be one of"),
        ("%d/%m/%Y %Q", "must use the directives .*got '%Q'"),
        ("%d %d", "each directive once"),
    ],
)
def test_wrong_formats_are_refused(format, why):
    with pytest.raises(ValueError, match=why):
        times.parse(["1"], format)


@given(
    st.lists(
        st.tuples(
            st.datetimes(
                min_value=datetime.datetime(1980, 1, 1),
                max_value=datetime.datetime(2090, 1, 1),
            ),
            st.sampled_from(ZONES),
            st.integers(0, 6),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_iso_times_are_those_of_datetime(drawn):
    texts, expected = [], []
    for moment, zone, digits in drawn:
        fraction = f".{moment.microsecond:06d}"[: digits + 1] if digits else ""
        texts.append(f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}{zone}")
        offset = {"Z": 0, "+02:00": 7200, "-0530": -19800, "+09": 32400}.get(zone, 0)
        whole = moment.replace(microsecond=0, tzinfo=datetime.UTC)
        expected.append(whole.timestamp() - offset + float(f"0{fraction or '.0'}"))
    found = times.parse(texts)
    np.testing.assert_allclose(found.origin + found.seconds, expected, atol=2e-6)


@given(
    st.lists(
        st.datetimes(datetime.datetime(1980, 1, 1), datetime.datetime(2068, 1, 1)),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(
        [
            "%d/%m/%Y %H:%M:%S.%f",
            "%m-%d-%y %H:%M:%S",
            "%d. %b %Y, %H:%M:%S.%f",
            "%d %B %Y %I:%M:%S %p",
            "%Y%m%d%H%M%S%f",
        ]
    ),
)
def test_stated_formats_are_those_of_strptime(moments, format):
    texts = [moment.strftime(format) for moment in moments]
    utc = datetime.UTC
    expected = [
        datetime.datetime.strptime(text, format).replace(tzinfo=utc).timestamp()
        for text in texts
    ]
    found = times.parse(texts, format)
    np.testing.assert_allclose(found.origin + found.seconds, expected, atol=2e-6)
    assert found.format == format


def test_missing_times_are_nan():
    nan = np.nan
    iso = times.parse(["", "2026-03-02T08:00:00Z", "NaN", "2026-03-02T08:00:01Z"])
    np.testing.assert_array_equal(iso.seconds, [nan, 0, nan, 1])
    numbers = times.parse(np.array([0.1, nan, 0.3, np.inf, 0.5]))
    np.testing.assert_array_equal(numbers.seconds, [0.1, nan, 0.3, nan, 0.5])
    dates = np.array(["2026-03-02T08:00", "NaT", "2026-03-02T08:01"], "datetime64[ms]")
    np.testing.assert_array_equal(times.parse(dates).seconds, [0, nan, 60])
    texts = times.parse(np.array(["0.1", "", None, "0.4"], object))
    np.testing.assert_array_equal(texts.seconds, [0.1, nan, nan, 0.4])
    assert len(times.parse(np.zeros(0)).seconds) == 0


def test_large_times_keep_their_decimals():
    """float64 holds Unix times to 0.2 microseconds."""
    found = times.parse(1.77e9 + np.arange(1000) / 64)
    assert (found.seconds == np.round(np.arange(1000) / 64, 6)).all()
