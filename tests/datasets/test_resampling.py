"""Resampling, against SciPy and against known signals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import resample_poly

from jaxanon.datasets.resampling import resample


@given(
    st.sampled_from([256, 200, 100, 50, 255.8, 37.5]),
    st.sampled_from([100, 50.5, 64, 3]),
    st.integers(1, 700),
)
def test_as_scipy_has_it(rate_hz, to_hz, count):
    signal = np.random.default_rng(count).normal(size=count)
    ratio = Fraction(to_hz) / Fraction(rate_hz).limit_denominator(1000)
    want = resample_poly(signal, *ratio.as_integer_ratio(), padtype="edge")
    np.testing.assert_allclose(resample(signal, rate_hz, to_hz), want, atol=1e-12)


def test_what_the_slower_rate_holds_stays_and_the_rest_goes():
    times, fewer = np.arange(2560) / 256, np.arange(1000) / 100
    for hertz, kept in ((5, 1), (30, 1), (80, 0)):
        got = resample(np.sin(2 * np.pi * hertz * times), 256, 100)
        want = kept * np.sin(2 * np.pi * hertz * fewer)
        assert len(got) == 1000
        np.testing.assert_allclose(got[50:-50], want[50:-50], atol=0.01)


def test_a_signal_of_the_rate_stays():
    signal = np.arange(5, dtype=np.float32)
    got = resample(signal, 100.0, 100)
    assert got.dtype == np.float64 and got.tolist() == signal.tolist()


def test_an_empty_signal_is_refused():
    with pytest.raises(ValueError, match="signal must hold at least one sample, got 0"):
        resample(np.zeros(0), 256, 100)
