"""Samples that test a device's runtime are test windows, in sequence."""

import csv
import dataclasses
import math

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxanon import datasets, exporting
from jaxanon.datasets import Data, Windows

seeds = st.integers(0, 2**32 - 1)
shared = [HealthCheck.function_scoped_fixture]


@settings(max_examples=40, deadline=None, suppress_health_check=shared)
@given(
    st.integers(1, 40),
    st.sampled_from([1, 3]),
    st.sampled_from([10.0, 50.0, 1 / 3]),
    st.one_of(st.floats(0, 30), st.sampled_from([1e9, 300])),
    seeds,
)
def test_samples_are_test_windows_end_to_end(
    tmp_path, data, count, time, rate_hz, seconds, seed
):
    values = np.random.default_rng(seed).normal(size=(count, time, 2)) * 10
    windows = values.astype(np.float32)
    windows[:, 0, 0] = np.arange(count)  # So that each is identifiable.
    spec = dataclasses.replace(data.spec, rate_hz=rate_hz, time=time, units=("g", ""))
    path = tmp_path / "samples.csv"
    path.write_text("what was there before")
    whole = Data(spec, data.train, Windows(windows, {}))
    rows = exporting.write_samples(whole, path, seconds=seconds)
    header, *table = csv.reader(path.read_text().splitlines())
    assert header == ["time", "x [g]", "y"] and len(table) == rows
    found = np.array(table, float)
    np.testing.assert_allclose(found[:, 0], np.arange(rows) / rate_hz, atol=6e-7)
    # As many whole, unchanged windows as fit the time, at least one.
    number = max(1, min(count, math.floor(seconds * rate_hz / time + 1e-12)))
    assert rows == number * time
    places = found[::time, 1].astype(int)
    np.testing.assert_allclose(
        found[:, 1:], windows[places].reshape(-1, 2), rtol=1e-6, atol=1e-9
    )
    # In order of time by groups of six neighbours, from the first to the last.
    for start in range(0, number, 6):
        own = places[start : start + 6]
        np.testing.assert_array_equal(
            own, np.minimum(own[0] + np.arange(len(own)), count - 1)
        )
    firsts = places[::6]
    assert firsts[0] == 0 and (np.diff(firsts) >= 0).all()
    if number == count:
        assert {*places.tolist()} >= {0, count - 1} or count % 6
    if len(firsts) > 1:
        assert firsts[-1] == max(0, count - 6)
        gaps = np.diff(firsts)
        assert gaps.max() - gaps.min() <= 1


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_a_stream_of_no_length_is_refused(tmp_path, seconds):
    path = tmp_path / "samples.csv"
    with pytest.raises(ValueError, match="seconds must be finite and >= 0"):
        exporting.write_samples(datasets.load("smartwatch"), path, seconds=seconds)
    assert not path.exists()


def test_a_stream_of_no_window_is_refused(tmp_path):
    data = datasets.load("smartwatch")
    none = data._replace(test=jax.tree.map(lambda leaf: leaf[:0], data.test))
    with pytest.raises(ValueError, match="must have a test window"):
        exporting.write_samples(none, tmp_path / "samples.csv")
