"""Overlapping windows never appear on both sides of a time block."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon.datasets.custom_split import (
    OMITTED,
    TEST,
    TRAIN,
    by_time_block,
    share_samples,
)
from jaxanon.datasets.windows import cut


def test_knows_windows_that_share_samples():
    rows = np.random.default_rng(0).normal(size=(40, 2))
    window = lambda start: rows[start : start + 10]
    assert share_samples(window(0), window(1)) and share_samples(window(0), window(9))
    assert share_samples(window(0), window(0))
    assert not share_samples(window(0), window(10))
    assert not share_samples(window(3), window(0))  # The order matters.


@pytest.mark.parametrize("stride, gap", [(10, 0), (5, 1), (4, 2), (1, 9)])
def test_leaves_out_as_many_as_overlap(stride, gap):
    rows = np.random.default_rng(0).normal(size=(10 + 99 * stride, 1))
    windows = cut(rows, 10, stride)
    labels = {"subject": np.zeros(100, int)}
    side = by_time_block({}, windows, labels, 0)
    # Windows from 70 test; those within 10 samples before number 70 are dropped.
    expected = [TRAIN] * (70 - gap) + [OMITTED] * gap + [TEST] * 30
    np.testing.assert_array_equal(side, expected)


@given(
    runs=st.lists(
        st.tuples(st.integers(1, 12), st.integers(0, 2)), min_size=1, max_size=8
    ),
    stride=st.integers(1, 7),
)
def test_no_sample_stands_on_both_sides(runs, stride):
    # One unbroken recording whose activity sometimes changes.
    act = np.concatenate([np.full(count, label) for count, label in runs])
    rows = np.arange(6 + (len(act) - 1) * stride)[:, None] + 0.5
    windows = cut(rows, 6, stride)
    labels = {"act": act, "subject": np.zeros(len(act), int)}
    side = by_time_block({}, windows, labels, 0)
    train, test = windows[side == TRAIN], windows[side == TEST]
    assert not np.isin(train, test).any()
    for label in np.unique(act):
        count = np.sum(act == label)
        assert np.sum(side[act == label] == TEST) == count - round(0.7 * count)


def test_people_are_kept_apart():
    windows = np.random.default_rng(0).normal(size=(20, 4, 1))
    # Interleaved: only the order within each subject matters.
    subject = np.tile([0, 1], 10)
    side = by_time_block({}, windows, {"subject": subject}, 0)
    for who in (0, 1):
        np.testing.assert_array_equal(side[subject == who], [TRAIN] * 7 + [TEST] * 3)
