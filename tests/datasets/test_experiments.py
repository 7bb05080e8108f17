"""The ratios R_D and R_U match their definitions."""

import numpy as np
import pytest

from jaxanon.datasets import Windows, hold_out_subjects, imbalance, load


def counted(sizes, people=1):
    """Returns ``sizes[c]`` windows of class c per person; windows hold their index."""
    act = np.tile(np.repeat(np.arange(len(sizes)), sizes), people).astype(np.int32)
    subject = np.repeat(np.arange(people), sum(sizes)).astype(np.int32)
    windows = np.arange(len(act), dtype=np.float32)[:, None, None]
    return Windows(windows, {"act": act, "subject": subject})


@pytest.mark.parametrize("ratio", [1, 2.5, 9])
def test_each_person_has_the_ratio(ratio):
    before = counted([40, 60, 90], people=30)
    after = imbalance(before, "act", ratio, seed=0)
    majorities = set()
    for who in range(30):
        label = after.labels["act"][after.labels["subject"] == who]
        counts = np.bincount(label, minlength=3)
        low = counts.min()
        # All classes but one are equally small; one is larger by the ratio.
        assert sorted(counts) == [low, low, round(ratio * low)]
        # No window was dropped needlessly.
        major = int(counts.argmax())
        limit = min(np.delete([40, 60, 90], major).min(), [40, 60, 90][major] // ratio)
        assert ratio == 1 or low == limit
        majorities.add(major)
    assert ratio == 1 or majorities == {0, 1, 2}  # Drawn per person.
    rows = after.windows[:, 0, 0].astype(int)
    # In order, without repeats, with their original labels.
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(after.labels["act"], before.labels["act"][rows])


def test_the_seed_decides():
    before = counted([40, 60, 90], people=5)
    one, same, other = (imbalance(before, "act", 3, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.windows, same.windows)
    assert (
        one.windows.shape != other.windows.shape or (one.windows != other.windows).any()
    )


def test_imbalance_says_what_was_wrong():
    with pytest.raises(ValueError, match=r"ratio must be >= 1, .* got 0.5"):
        imbalance(counted([4, 4]), "act", 0.5, 0)
    with pytest.raises(ValueError, match=r"ratio must be >= 1, .* got nan"):
        imbalance(counted([4, 4]), "act", float("nan"), 0)
    with pytest.raises(ValueError, match=r"one of \['act', 'subject'\], got 'sex'"):
        imbalance(counted([4, 4]), "sex", 2, 0)
    with pytest.raises(
        ValueError, match="subject 0 must have at least 2 classes, got 1"
    ):
        imbalance(counted([4]), "act", 2, 0)
    with pytest.raises(
        ValueError, match="ratio must be at most 4, .* of subject 0, got 5"
    ):
        imbalance(counted([4, 4]), "act", 5, 0)


def test_held_out_people_are_tested_and_never_trained_on():
    data = load("smartwatch")
    less = hold_out_subjects(data, 0.4, seed=1)
    train, test = ({*side.labels["subject"].tolist()} for side in less[1:])
    assert len(train) == 6 and len(test) == 4 and not train & test
    assert less.spec.split == "subject" and less.spec.classes == data.spec.classes
    rows = less.train.windows.reshape(-1, 6).astype(float)
    np.testing.assert_allclose(less.spec.mean, rows.mean(axis=0), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(less.spec.std, rows.std(axis=0), rtol=1e-6)
    kept = np.isin(data.train.labels["subject"], sorted(train))
    np.testing.assert_array_equal(less.train.windows, data.train.windows[kept])
    other = hold_out_subjects(data, 0.4, seed=2)
    assert {*other.test.labels["subject"].tolist()} != test


def test_hold_out_says_what_was_wrong():
    data = load("smartwatch")
    for fraction in (0, 1, -0.5, float("nan")):
        with pytest.raises(ValueError, match=r"fraction must be in \(0, 1\), got"):
            hold_out_subjects(data, fraction, 0)
    rows = data.test.labels["subject"] < 0
    empty = Windows(
        data.test.windows[rows], {a: v[rows] for a, v in data.test.labels.items()}
    )
    with pytest.raises(
        ValueError, match="must have a test window, got none; raise fraction"
    ):
        hold_out_subjects(data._replace(test=empty), 0.5, 0)
