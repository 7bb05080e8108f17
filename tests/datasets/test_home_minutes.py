"""Minutes of a home: active sensors, activities, and grouping into windows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon.datasets.smart_homes import minutes
from jaxanon.datasets.smart_homes.location import HOUSES
from jaxanon.datasets.smart_homes.minutes import AFTER, BEFORE, DAY, NOTHING, Spans
from jaxanon.datasets.smart_homes.naming import ACTIVITIES, class_of, type_of

WINDOW = BEFORE + 1 + AFTER


def spans(*rows):
    return Spans(*np.array(rows, np.int64).reshape(-1, 3).T)


some_spans = st.lists(
    st.tuples(st.integers(-90, 500), st.integers(1, 200), st.integers(0, 2)), max_size=8
).map(lambda rows: spans(*((start, start + n, kind) for start, n, kind in rows)))


@given(some_spans)
def test_states_agree_with_looking_at_every_second(events):
    count, origin = 6, 30
    on, changed = minutes.states(events, origin, count, 3)
    for minute in range(count):
        first = origin + 60 * minute
        for kind in range(3):
            mine = [
                (start, end)
                for start, end, of in zip(*events, strict=True)
                if of == kind
            ]
            seconds = [
                any(start <= second < end for start, end in mine)
                for second in range(first, first + 60)
            ]
            assert on[minute, kind] == np.float32(np.mean(seconds))
            ends = [first <= time < first + 60 for times in mine for time in times]
            assert changed[minute, kind] == any(ends)


def test_sensors_of_a_type_count_once():
    # On for 0-40 s and 20-50 s: 50 s of the minute.
    on, changed = minutes.states(spans((0, 40, 0), (20, 50, 0)), 0, 1, 1)
    assert on[0, 0] == np.float32(50 / 60) and changed[0, 0] == 1


@given(some_spans)
def test_doing_agrees_with_looking_at_every_second(activities):
    count, origin = 6, 30
    label = minutes.doing(activities, origin, count)
    for minute in range(count):
        first = origin + 60 * minute
        scores = [
            (sum(start <= s < end for s in range(first, first + 60)), start, number)
            for number, (start, end) in enumerate(zip(*activities[:2], strict=True))
        ]
        # The longest; on a tie the last to begin.
        best = max(scores, default=(0, 0, 0))
        expected = activities.kind[best[2]] if best[0] else NOTHING
        alike = [s[2] for s in scores if s[:2] == best[:2]]
        assert label[minute] == expected or (
            len(alike) > 1 and label[minute] in activities.kind[alike]
        )


@given(
    st.lists(
        st.tuples(st.integers(-1, 3), st.integers(1, 700)), min_size=6, max_size=14
    )
)
def test_stretches_stay_in_a_day_and_hold_what_they_say(runs):
    label = np.concatenate([np.full(length, kind) for kind, length in runs])
    label = np.resize(label, 3 * DAY)
    found = list(minutes.stretches(label))
    told = np.zeros(len(label), int)
    for first, end, kind in found:
        assert first // DAY == (end - 1) // DAY
        own = slice(first + BEFORE, end - AFTER)
        assert kind != NOTHING and (label[own] == kind).all() and end - first >= WINDOW
        told[own] += 1
    # Includes every minute with an activity whose window fits within its day.
    minute = np.arange(len(label)) % DAY
    room = (minute >= BEFORE) & (minute < DAY - AFTER) & (label != NOTHING)
    np.testing.assert_array_equal(told, room)


def test_a_day_begins_at_four():
    # 1970-01-02 03:59:59 belongs to the day before, a second later does not.
    day = 86400
    assert minutes.day_begun(day + 4 * 3600 - 1) == 4 * 3600
    assert minutes.day_begun(day + 4 * 3600) == day + 4 * 3600


def test_time_of_day_goes_round_once():
    clock = minutes.time_of_day(6 * 3600, DAY)  # From 6 in the morning on.
    np.testing.assert_allclose(
        clock[[0, 360, 720]], [[1, 0], [0, -1], [-1, 0]], atol=1e-6
    )


def test_names_of_different_homes_meet():
    same = [("A", "Toilet Flush"), ("C", "toilet flush bottom flush")]
    same += [("D", "Bathroom,Toilet Flush "), ("Ordonez A", "Toilet Bathroom")]
    assert len({type_of(home, name) for home, name in same}) == 1
    assert type_of("A", "Hall-Toilet door") != type_of("A", "Toilet Flush")
    classes = tuple(ACTIVITIES)
    assert classes[class_of("B", "take-shower")] == "bathe"
    assert classes[class_of("E", "Going-out-for-shopping")] == "leave"
    assert classes[-1] == "other" and len(HOUSES) == 5


def test_strange_names_are_refused():
    with pytest.raises(
        ValueError, match="home B must have a known sensor, got 'robot'"
    ):
        type_of("B", "robot")
    with pytest.raises(
        ValueError, match="home B must have a known activity, got 'flying'"
    ):
        class_of("B", "flying")
