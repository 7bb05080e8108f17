"""Windows follow their definitions, checked against plain loops."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.windows import cut, cut_each, cut_sequences, cut_stream

SIZES = st.lists(st.integers(1, 25), min_size=1, max_size=6)
STEPS = {"length": st.integers(1, 8), "stride": st.integers(1, 9)}


def numbered(sizes):
    """Returns recordings with consecutive row numbers, so each row is unique."""
    ends = np.cumsum([0, *sizes])
    return [
        Recording(
            np.arange(start, end)[:, None] + np.array([0.0, 0.5]),
            trial=0,
            labels={"act": index % 2, "subject": index},
        )
        for index, (start, end) in enumerate(itertools.pairwise(ends))
    ]


@given(sizes=SIZES, **STEPS)
def test_each_recording_alone(sizes, length, stride):
    expected, owners = [], []
    for recording in numbered(sizes):
        start = 0
        while start + length <= len(recording.rows):
            expected.append(recording.rows[start : start + length])
            owners.append(recording.labels["subject"])
            start += stride
    got = cut_each(numbered(sizes), length, stride)
    assert got.windows.shape == (len(expected), length, 2)
    assert got.windows.dtype == np.float32 and got.labels["act"].dtype == np.int32
    np.testing.assert_array_equal(got.windows, np.reshape(expected, got.windows.shape))
    np.testing.assert_array_equal(got.labels["subject"], owners)
    np.testing.assert_array_equal(got.labels["act"], np.array(owners, int) % 2)


@given(sizes=SIZES, **STEPS)
def test_stream_as_published(sizes, length, stride):
    recordings = numbered(sizes)
    rows = np.concatenate([r.rows for r in recordings])
    owner = np.repeat(np.arange(len(sizes)), sizes)
    expected, owners, start = [], [], 0
    most = max(0, round((len(rows) - length) / stride))
    while start < len(rows) - length and start // stride < most:
        if owner[start] == owner[start + length - 1]:
            expected.append(rows[start : start + length])
            owners.append(owner[start])
        start += stride
    got = cut_stream(recordings, length, stride)
    np.testing.assert_array_equal(
        got.windows, np.reshape(expected, (-1, length, 2)).astype(np.float32)
    )
    np.testing.assert_array_equal(got.labels["subject"], owners)


@given(sizes=SIZES, **STEPS)
def test_stream_across_recordings_compares_labels_only(sizes, length, stride):
    recordings = numbered(sizes)
    label = np.repeat(np.arange(len(sizes)) % 2, sizes)  # Every row.
    owner = np.repeat(np.arange(len(sizes)), sizes)
    most = max(0, round((len(label) - length) / stride))
    starts = [
        index * stride
        for index in range(most)
        if label[index * stride] == label[index * stride + length - 1]
    ]
    got = cut_stream(recordings, length, stride, across="act")
    np.testing.assert_array_equal(got.windows[:, 0, 0], starts)
    np.testing.assert_array_equal(got.labels["act"], label[starts])
    # Labels are those of the first row, whichever subject the last row has.
    np.testing.assert_array_equal(got.labels["subject"], owner[starts])


def test_phase_drifts_over_a_stream():
    # Rows 0-6 and 7-16; starts 0, 5 and 10: 5 straddles, and 10 is not 7 + 0.
    got = cut_stream(numbered([7, 10]), length=4, stride=5)
    np.testing.assert_array_equal(got.windows[:, 0, 0], [0, 10])
    # With one row less, only round(12 / 5) = 2 starts fit.
    got = cut_stream(numbered([7, 9]), length=4, stride=5)
    np.testing.assert_array_equal(got.windows[:, 0, 0], [0])


def test_says_what_was_wrong():
    with pytest.raises(
        ValueError, match=r"rows must be float\[rows, channels\].*\(5,\)"
    ):
        cut(np.zeros(5), 2, 1)
    with pytest.raises(ValueError, match="stride must be at least 1 sample, got 0"):
        cut(np.zeros((5, 1)), 2, 0)
    with pytest.raises(ValueError, match="length must be at least 1 sample, got -2"):
        cut(np.zeros((5, 1)), -2, 1)


def test_sequences_run_through_a_trial_and_end_with_their_label():
    parts = [  # Rows from 0 to 7 and from 7 to 10; the last trial is too short.
        part._replace(trial=trial, labels={"act": index, "subject": index // 4})
        for index, (part, trial) in enumerate(
            zip(numbered([2, 1, 4, 3, 2]), (0, 0, 0, 2, 2), strict=True)
        )
    ]
    got = cut_sequences(parts, length=3, stride=2)
    expected = [[0, 1, 2], [2, 3, 4], [4, 5, 6], [7, 8, 9]]
    np.testing.assert_array_equal(got.windows[..., 0], expected)
    assert got.labels["act"].tolist() == [1, 2, 2, 3]
    assert got.labels["subject"].tolist() == [0] * 4


@given(sizes=SIZES, **STEPS)
def test_sequences_of_one_trial_are_as_if_it_were_one_recording(sizes, length, stride):
    parts = numbered(sizes)
    parts = [part._replace(labels=part.labels | {"subject": 0}) for part in parts]
    got = cut_sequences(parts, length, stride)
    rows = np.concatenate([part.rows for part in parts])
    np.testing.assert_array_equal(got.windows, cut(rows, length, stride))
    acts = np.repeat([part.labels["act"] for part in parts], sizes)
    wanted = [acts[int(window[-1, 0])] for window in got.windows]
    assert got.labels["act"].tolist() == wanted
