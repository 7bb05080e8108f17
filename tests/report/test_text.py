"""Sentences: grades, what survives, what is hidden, how numbers were obtained."""

import pytest

from jaxanon import metrics
from jaxanon.evaluation.protocol import NAMES
from jaxanon.report import text


@pytest.mark.parametrize(
    ("worst", "raw", "grade"),
    [
        (0.5, 0.9, "well hidden"),
        (0.45, 0.9, "well hidden"),
        (0.6, 0.9, "mostly hidden"),
        (0.75, 0.9, "partly exposed"),
        (0.89, 0.9, "exposed"),
        (0.9, 0.51, "not readable even from raw windows"),
    ],
)
def test_grades(worst, raw, grade):
    # Of the way from chance 0.5 to raw 0.9: 0, below, 1/4, 5/8, nearly all.
    assert text.exposure(worst, raw, 0.5) == grade


def test_a_split_that_leaks_says_so(made):
    report = made.anonymizer()
    assert "never by window" in text.protocol(report)["Split"]
    leaking = report | {"dataset": report["dataset"] | {"split": "official"}}
    assert "twins in training" in text.protocol(leaking)["Split"]
    assert text.headline(leaking)[:-1] == text.headline(report)
    assert "leaks" in text.headline(leaking)[-1]


def told(raw, safe, hide=()):
    """The first sentences, of guesses of raw and rewritten windows of three classes."""
    labels, names = [0, 0, 1, 1, 1, 1, 2, 2], ("a", "b", "c")
    sides = {"raw": raw, "anonymized": safe}
    return text.headline(
        {
            "utility": {"attribute": "activity"}
            | {k: metrics.scores(labels, guess, names) for k, guess in sides.items()},
            "method": {"name": "privatehub", "config": {"classes_to_hide": list(hide)}},
            "dataset": {"split": "given"},
            **{"intrusive": {}, "linkage": None, "reidentification": {}},
        }
    )


def test_classes_to_hide_have_sentences_of_their_own_and_do_not_count_as_lost():
    raw, safe = [0, 0, 1, 1, 1, 1, 2, 2], [0, 0, 0, 2, 0, 1, 2, 2]
    whole, hiding = told(raw, safe), told(raw, safe, hide=["b"])
    assert whole == [
        "activity suffers: 62.5 % of anonymized windows are classified right, of raw "
        "windows 100.0 %."
    ]
    assert hiding == [
        "activity survives: 100.0 % of anonymized windows of classes to show (all but "
        "b) are classified right, of raw windows 100.0 %.",
        "activity b was to be hidden: 25.0 % of its windows are still recognised, of "
        "raw ones 100.0 %.",
    ]


def test_what_raw_windows_do_not_tell_either_is_not_called_lost():
    # Less than always naming b, and less than guessing evenly, which gives a third.
    (first,) = told([1, 2, 0, 0, 1, 2, 2, 0], [0, 0, 0, 0, 0, 0, 0, 0])
    assert first.startswith("activity is not readable even from raw windows: 25.0 % of")


def test_where_one_class_is_left_to_show_nothing_of_it_is_lost():
    same = [0, 0, 1, 1, 1, 1, 2, 2]
    first, *rest = told(same, [0, 0, 0, 0, 0, 0, 0, 0], hide=["b", "c"])
    assert first.startswith("activity survives: 100.0 % of anonymized windows of class")
    assert [line.split(":")[1][:6] for line in rest] == [" 0.0 %", " 0.0 %"]
    first, *_ = told(same, [1, 1, 1, 1, 1, 1, 1, 1], hide=["b", "c"])
    assert first.startswith("activity is lost: 0.0 % of")


def test_a_class_that_is_nearly_all_there_is_hides_nothing_from_the_verdict():
    """Always naming b is right in 4 of 6 windows to show, and tells nothing of a."""
    both = [0, 0, 1, 1, 0, 0, 2, 2]  # No more are right, and both are told.
    assert told(both, both, hide=["c"])[0].startswith("activity survives: 66.7 %")
    none = [1, 1, 1, 1, 1, 1, 2, 2]
    assert told(both, none, hide=["c"])[0].startswith("activity is lost: 66.7 %")


def test_every_attack_has_a_title_and_says_how(made):
    assert set(text.ATTACKS) == set(NAMES)
    report = made.anonymizer(attacks={name: [] for name in NAMES})
    for title, method in text.ATTACKS.values():
        assert report["protocol"][title] == method


def test_a_name_of_several_lines_is_one_sentence():
    lines = "a\n\nb"
    told = text.sentences("costs.txt", costs=COSTS | {"device": lines})
    assert "on a b)." in told[0] and len(told) == 2


COSTS = {
    **{"compile_s": 2.0, "round_s": None, "first_round": 1, "last_round": 3000},
    **{"memory_bytes": 3_000_000, "memory_of": "device", "device": "cpu"},
}
