"""Events of CASAS: sensor numbers, annotations, and division into sequences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxanon.datasets.casas import tokens
from jaxanon.datasets.casas.activities import (
    ACTIVITIES,
    OTHER,
    Event,
    class_of,
    sequences,
)
from jaxanon.datasets.casas.casas_dataset_builder import day_of
from jaxanon.datasets.casas.tokens import token

CLASSES = tuple(ACTIVITIES)

every_event = [
    (f"{kind.prefix}{number:03}", word)
    for kind in tokens.KINDS
    for number in range(1, kind.most + 1)
    for word in kind.words
]


def test_every_event_has_a_number_of_its_own():
    numbers = [token(*event) for event in every_event]
    numbers += [token(sensor, "") for sensor in tokens.OTHERS]
    assert sorted(numbers) == list(range(1, tokens.COUNT))
    three = [e for e in every_event if e[0][0] in "MDT"]
    assert max(token(*e) for e in three) == tokens.MOTION_DOORS_TEMPERATURE - 1


@pytest.mark.parametrize(
    "event",
    [("M065", "ON"), ("M000", "ON"), ("M001", "OPEN"), ("Z1", "ON"), ("c", "ON")],
)
def test_what_is_unknown_is_of_the_last_number(event):
    assert token(*event) == tokens.COUNT - 1


def test_temperatures_are_rounded_and_bounded():
    degree = lambda word: token("T003", word) - token("T003", "10")
    assert [degree(word) for word in ("21.4", "21.5", "-3", "99", "40")] == (
        [11, 12, 0, 30, 30]
    )
    assert token("T003", "nan") == token("T003", "warm") == tokens.COUNT - 1


@pytest.mark.parametrize(
    ("note", "name"),
    [
        *(("R1_Bed_to_Toilet", "bed to toilet"), ("R2 sleep", "sleep")),
        *(("Master_Bathroom", "bathe"), ("R1_Enter_Home", "enter home")),
        *(("Eve_Meds", "take medicine"), ("R2_work", "work"), ("Watch_TV", "relax")),
        *(("R1_Personal_Hygiene", "personal hygiene"), ("Meditate", "other")),
        *(("Dining_Rm_Activity", "eat"), ("", "other"), ("R1 work in office", "work")),
    ],
)
def test_annotations_are_merged(note, name):
    assert CLASSES[class_of(note)] == name


names = st.sampled_from(["Sleep", "R1_Work", "Eat"])
notes = st.one_of(
    st.just(""),
    st.tuples(names, st.sampled_from([" begin", " end", '="begin"', " END"])).map(
        "".join
    ),
)


@given(st.lists(st.tuples(st.integers(0, 30), notes), max_size=25))
def test_every_event_is_in_one_sequence_of_one_day(steps):
    hour = np.cumsum([step for step, _ in steps]).tolist()
    events = [
        Event(3600.0 * when, number, note)
        for number, (when, (_, note)) in enumerate(zip(hour, steps, strict=True))
    ]
    found = list(sequences(events, day_of))
    assert [number for *_, part in found for number in part] == list(range(len(steps)))
    for day, label, part in found:
        assert {day_of(events[number].second) for number in part} == {day}
        # An activity began that day, and its annotation is in force.
        begun = [
            e.note.lower() for e in events[: part[-1] + 1] if day_of(e.second) == day
        ]
        begun = {
            class_of(note.split("begin")[0].rstrip(' ="'))
            for note in begun
            if ("begin" in note)
        }
        assert label == OTHER or label in begun
        first = events[part[0]].note
        if "begin" in first:
            assert label == class_of(first.split("begin")[0].rstrip(' ="'))


def test_noon_ends_what_was_going_on():
    at = lambda hour, number, note="": Event(3600.0 * hour, number, note)
    events = [at(11, 1, "Sleep begin"), at(11.9, 2), at(12, 3), at(13, 4, "Sleep end")]
    sleep = CLASSES.index("sleep")
    assert list(sequences(events, day_of)) == [(-1, sleep, [1, 2]), (0, OTHER, [3, 4])]


def test_an_end_without_a_beginning_is_nothing():
    events = [Event(0.0, 1, "Eat end"), Event(1.0, 2, "Eat begin"), Event(2.0, 3, "")]
    eat = CLASSES.index("eat")
    assert [part[1:] for part in sequences(events, day_of)] == [
        (OTHER, [1]),
        (eat, [2, 3]),
    ]
