"""Stacking by client keeps all windows and adds only masked zeros."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon.datasets import Windows, by_client


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_unstacking_gives_each_subjects_windows_in_order(subjects):
    subject = np.array(subjects, np.int32)
    windows = np.arange(1, 1 + len(subject) * 6, dtype=np.float32).reshape(-1, 3, 2)
    label = np.arange(len(subject), dtype=np.int32) + 1
    clients = by_client(Windows(windows, {"subject": subject, "act": label}))
    for row, who in enumerate(sorted(set(subjects))):
        mine = clients.mask[row]
        np.testing.assert_array_equal(
            clients.windows[row][mine], windows[subject == who]
        )
        np.testing.assert_array_equal(
            clients.labels["act"][row][mine], label[subject == who]
        )
        assert (clients.labels["subject"][row][mine] == who).all()
        # Padding is zero and at the end; at least one client has none.
        assert not clients.windows[row][~mine].any()
        assert not clients.labels["act"][row][~mine].any()
        assert (np.diff(mine.astype(int)) <= 0).all()
    assert clients.mask.all(axis=1).any() and clients.mask.sum() == len(subjects)
    assert clients.windows.dtype == np.float32 and clients.mask.dtype == bool
    assert clients.labels["act"].dtype == np.int32


def test_targets_stay_numbers():
    power = np.array([0.5, 1.5, 2.5], np.float32)
    labels = {"subject": np.array([1, 0, 1], np.int32), "power": power}
    stacked = by_client(Windows(np.ones((3, 2, 1), np.float32), labels)).labels["power"]
    np.testing.assert_array_equal(stacked, [[1.5, 0.0], [0.5, 2.5]])
    assert stacked.dtype == np.float32


def test_needs_windows_and_subjects():
    empty = np.zeros((0, 4, 1), np.float32)
    with pytest.raises(ValueError, match="at least one window to stack, got 0"):
        by_client(Windows(empty, {"subject": np.zeros(0, np.int32)}))
    with pytest.raises(ValueError, match=r"labels must hold 'subject'.*\['act'\]"):
        by_client(Windows(empty, {"act": np.zeros(0, np.int32)}))
