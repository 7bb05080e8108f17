"""The sides of a split are disjoint."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon.datasets import splits
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.spec import Windows


def recording(rows, subject=0, act=0, trial=0, start=0):
    values = np.arange(start, start + rows, dtype=np.float32)[:, None]
    return Recording(values, trial, {"act": act, "subject": subject})


def values(recordings):
    return np.concatenate([np.zeros(0), *(r.rows[:, 0] for r in recordings)])


def test_trials_up_to_the_bound_train():
    train, test = splits.by_trial([recording(5, trial=t) for t in (9, 11, 1)], 9)
    assert [r.trial for r in train] == [9, 1] and [r.trial for r in test] == [11]


@given(st.integers(2, 40), st.floats(0.01, 0.99), st.integers(0, 9))
def test_held_out_subjects_are_some_but_not_all(count, share, seed):
    out = splits.draw_test_subjects(np.repeat(np.arange(count), 3), share, seed)
    assert (
        len(np.unique(out)) == len(out) == min(max(1, round(share * count)), count - 1)
    )


def test_the_seed_draws_the_subjects():
    recordings = [recording(5, subject=s) for s in range(10)]
    sides = [splits.by_subject(recordings, seed) for seed in (0, 0, 1, 2, 3)]
    people = [sorted(r.labels["subject"] for r in test) for _, test in sides]
    assert len(people[0]) == 3 and people[0] == people[1]
    assert len(set(map(tuple, people))) > 2
    for train, test in sides:
        both = {r.labels["subject"] for r in train}, {r.labels["subject"] for r in test}
        assert not both[0] & both[1] and both[0] | both[1] == set(range(10))


def test_one_subject_cannot_be_split():
    with pytest.raises(
        ValueError, match="at least 2 subjects, one on each side, got 1"
    ):
        splits.by_subject([recording(5)], seed=0)


@given(
    st.dictionaries(
        st.integers(0, 3),
        st.lists(st.integers(1, 30), min_size=1, max_size=12),
        min_size=1,
    )
)
def test_of_everybody_s_days_the_last_test(days):
    parts = [recording(5, who, trial=day) for who in days for day in days[who]]
    train, test = splits.by_day(parts, 0.2)
    assert len(train) + len(test) == len(parts)
    for who in days:
        sides = [
            {r.trial for r in s if r.labels["subject"] == who} for s in (train, test)
        ]
        distinct = len(set(days[who]))
        # A fifth, rounded, at least one: 0 of 1 day, 1 of 2 to 7, 2 of 8.
        expected = 0 if distinct == 1 else 1 if distinct < 8 else 2
        assert len(sides[1]) == expected and len(sides[0]) == distinct - expected
        assert not sides[1] or max(sides[0]) < min(sides[1])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(0, 9))
def test_released_draws_a_fifth_of_each_subject_rounded_up(subjects, seed):
    labels = {"subject": np.array(subjects), "index": np.arange(len(subjects))}
    windows = Windows(np.arange(len(subjects))[:, None, None], labels)
    sides = splits.as_released(windows, seed)
    for side in sides:  # A label stays with its window, and the order is preserved.
        np.testing.assert_array_equal(side.windows[:, 0, 0], side.labels["index"])
        assert (np.diff(side.labels["index"]) > 0).all()
    both = np.concatenate([side.labels["index"] for side in sides])
    assert sorted(both) == list(range(len(subjects)))
    # So 36 people have 91,381 of 456,833 windows, where a fifth is 91,366.6.
    for who in set(subjects):
        held = np.sum(sides[1].labels["subject"] == who)
        assert held == np.ceil(subjects.count(who) / 5)


def test_the_released_draw_follows_the_seed_and_is_spread():
    labels = {"subject": np.zeros(1000, int)}
    windows = Windows(np.arange(1000)[:, None, None], labels)
    first, again, other = (
        splits.as_released(windows, seed)[1].windows.ravel() for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert len(np.intersect1d(first, other)) < 100  # 40 random ones of 200.
    # Over the whole recording; a block would fill a fifth of it.
    assert np.histogram(first, 5, (0, 1000))[0].min() > 20


def test_a_long_recording_is_cut_with_a_gap():
    train, test = splits.by_time_block([recording(100)], window=10)
    # 70 % is row 70; neither side has the 10 rows before it.
    np.testing.assert_array_equal(values(train), np.arange(60))
    np.testing.assert_array_equal(values(test), np.arange(70, 100))


def test_the_share_that_tests_may_be_another():
    train, test = splits.by_time_block([recording(100)], window=10, fraction=0.2)
    np.testing.assert_array_equal(values(train), np.arange(70))
    np.testing.assert_array_equal(values(test), np.arange(80, 100))
    people = [recording(5, subject=s) for s in range(10)]
    assert len(splits.by_subject(people, seed=0, fraction=0.2)[1]) == 2


def test_a_recording_may_be_cut_at_steps_alone():
    first, second = recording(100), recording(100, act=1)
    train, test = splits.by_time_block([first, second], window=10, step=16)
    for side in (train, test):  # 64 is the last multiple of 16 before 70.
        assert len(side) == 2
    np.testing.assert_array_equal(train[1].rows[:, 0], np.arange(54))
    np.testing.assert_array_equal(test[1].rows[:, 0], np.arange(64, 100))


def test_a_trial_is_cut_whatever_was_done():
    nights = [
        *(recording(30, act=0), recording(6, act=1, start=30)),
        *(recording(4, act=0, start=36), recording(60, act=1, start=40)),
        recording(10, trial=1, start=200),
    ]
    train, test = splits.by_time_of_trial(nights, window=5, fraction=0.4)
    # Row 60 of 100, and row 6 of 10; the 5 rows before are on neither side.
    np.testing.assert_array_equal(values(train), [*range(55), 200])
    np.testing.assert_array_equal(values(test), [*range(60, 100), *range(206, 210)])
    assert [(r.labels["act"], r.trial) for r in test] == [(1, 0), (0, 1)]


def test_the_share_and_where_a_recording_is_cut_are_the_callers():
    train, test = splits.by_time_block([recording(99)], 10, fraction=0.2, step=4)
    # 80 % of 99 is row 79; the multiple of 4 before it is 76.
    np.testing.assert_array_equal(values(train), np.arange(66))
    np.testing.assert_array_equal(values(test), np.arange(76, 99))


def test_short_recordings_stay_whole():
    series = [recording(20, start=100 * i) for i in range(5)]
    # The boundary, row 70, is the middle of the fourth: a tie trains.
    train, test = splits.by_time_block(series, window=15)
    assert [r.rows[0, 0] for r in train] == [0, 100, 200, 300]
    assert [r.rows[0, 0] for r in test] == [400]
    # Row 84 of six recordings lies 4 rows into the fifth, most of which comes after it.
    train, test = splits.by_time_block([*series, recording(20, start=500)], window=15)
    assert [r.rows[0, 0] for r in test] == [400, 500]


@given(
    st.lists(st.tuples(st.integers(1, 90), st.integers(0, 1)), min_size=1, max_size=8),
    st.integers(1, 20),
)
def test_time_blocks_keep_order_and_distance(parts, window):
    recordings = [
        recording(rows, act=act, start=1000 * index)
        for index, (rows, act) in enumerate(parts)
    ]
    train, test = splits.by_time_block(recordings, window)
    everything = values(recordings)
    assert np.isin(values(train), everything).all()
    assert np.isin(values(test), everything).all()
    for act in (0, 1):
        past = values([r for r in train if r.labels["act"] == act])
        future = values([r for r in test if r.labels["act"] == act])
        if len(past) and len(future):
            assert past.max() + window < future.min()
