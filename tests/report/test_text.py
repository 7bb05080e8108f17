"""Sentences on utility, hidden classes, and methods."""

from jaxanon import metrics
from jaxanon.evaluation.protocol import NAMES
from jaxanon.report import text


def test_a_split_that_leaks_says_so(made):
    report = made.anonymizer()
    assert "never by window" in text.protocol(report)["Split"]
    leaking = report | {"dataset": report["dataset"] | {"split": "official"}}
    assert "twins in training" in text.protocol(leaking)["Split"]
    more = set(text.headline(leaking)) - set(text.headline(report))
    assert more == {"Warning: the split leaks test windows into training."}


def utility(raw, safe, hide=()):
    """Returns sentences on utility for predictions on raw and anonymized windows."""
    labels, names = [0, 0, 1, 1, 1, 1, 2, 2], ("a", "b", "c")
    sides = {"raw": raw, "anonymized": safe}
    lines = text.headline(
        {
            "utility": {"attribute": "activity"}
            | {k: metrics.scores(labels, guess, names) for k, guess in sides.items()},
            "method": {"name": "privatehub", "config": {"classes_to_hide": list(hide)}},
            "dataset": {"split": "given"},
            **{"intrusive": {}, "linkage": None, "reidentification": {}},
            **{"attackers": [], "attacks": {}},
        }
    )
    return [line for line in lines if line.startswith("activity")]


def test_classes_to_hide_have_sentences_of_their_own_and_do_not_count_as_lost():
    raw, safe = [0, 0, 1, 1, 1, 1, 2, 2], [0, 0, 0, 2, 0, 1, 2, 2]
    whole, hiding = utility(raw, safe), utility(raw, safe, hide=["b"])
    # Recalls are 1, 1/4 and 1; without b the mean is 1.
    assert whole == [
        "activity is lost (red): 75.0 % balanced accuracy (no interval); raw windows "
        "100.0 %, chance level 33.3 %."
    ]
    assert hiding == [
        "activity without b is preserved (green): 100.0 % balanced accuracy (no "
        "interval); raw windows 100.0 %, chance level 50.0 %.",
        "activity b is a class to hide: the raw-data classifier recognizes 25.0 % of "
        "its anonymized windows and 100.0 % of its raw windows.",
    ]


def test_what_raw_windows_do_not_predict_is_not_called_lost():
    # Recalls 0, 1/4 and 1/2 of raw windows: less than chance level, a third.
    (first,) = utility([1, 2, 0, 0, 1, 2, 2, 0], [0, 0, 0, 0, 0, 0, 0, 0])
    assert first == (
        "activity: not measured, because raw windows do not predict it above chance "
        "level."
    )


def test_where_one_class_is_left_to_show_its_recall_counts():
    same = [0, 0, 1, 1, 1, 1, 2, 2]
    first, *rest = utility(same, [0, 0, 0, 0, 0, 0, 0, 0], hide=["b", "c"])
    assert first.startswith("activity without b, c is preserved (green): 100.0 %")
    assert ["recognizes 0.0 %" in line for line in rest] == [True, True]
    first, *_ = utility(same, [1, 1, 1, 1, 1, 1, 1, 1], hide=["b", "c"])
    assert first.startswith("activity without b, c is lost (red): 0.0 %")


def test_a_frequent_class_does_not_decide_the_verdict():
    """Always predicting b is right in 4 of 6 windows to show, and its recall is 1/2."""
    none = [1, 1, 1, 1, 1, 1, 2, 2]
    same = [0, 0, 1, 1, 1, 1, 2, 2]
    assert "is lost (red): 50.0 %" in utility(same, none, hide=["c"])[0]


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
