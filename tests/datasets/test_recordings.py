"""Renumbering keeps classes separate."""

import numpy as np
import pytest

from jaxanon.datasets.recordings import (
    Recording,
    drop_unused_classes,
    keep_classes,
    means_of,
    runs,
    statistics,
)

CLASSES = {"act": ("sit", "walk", "run"), "subject": ("1", "2", "3")}


def made(*pairs):
    return [Recording(np.ones((2, 1)), 0, {"act": a, "subject": s}) for a, s in pairs]


def names(recordings, classes):
    return [tuple(classes[a][r.labels[a]] for a in classes) for r in recordings]


def test_runs_are_the_longest_of_one_label():
    label = np.random.default_rng(0).integers(-1, 2, 50)
    found = runs(label)
    assert [start for start, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == 50
    for start, end in found:
        assert len(set(label[start:end].tolist())) == 1
        assert end == 50 or label[end] != label[start]
    assert runs(np.zeros(1)) == [(0, 1)]


def test_kept_classes_are_numbered_in_the_order_asked_for():
    kept, classes = keep_classes(
        made((0, 0), (1, 1), (2, 2)), CLASSES, "act", ("run", "sit")
    )
    assert classes["act"] == ("run", "sit")
    assert names(kept, classes) == [("sit", "1"), ("run", "3")]


def test_only_classes_that_occur_remain():
    found, classes = drop_unused_classes(made((2, 2), (0, 0)), CLASSES)
    assert classes == {"act": ("sit", "run"), "subject": ("1", "3")}
    assert names(found, classes) == [("run", "3"), ("sit", "1")]


def test_statistics_count_rows_and_divide_by_their_number():
    parts = [
        Recording(np.array(rows), 0, {}) for rows in ([[0.0]], [[0.0], [3.0], [5.0]])
    ]
    # Mean 2 of four rows, not of two recordings; variance (4 + 4 + 1 + 9) / 4.
    assert statistics(parts) == ((2.0,), (4.5**0.5,))


@pytest.mark.parametrize("every", [1, 3, 5, 40])
def test_means_leave_out_what_does_not_fill_a_sample(every):
    rows = np.random.default_rng(0).normal(size=(17, 2))
    want = [rows[i : i + every].mean(0) for i in range(0, 18 - every, every)]
    want = np.array(want).reshape(-1, 2)
    np.testing.assert_allclose(means_of(every, rows), want, rtol=1e-12)
