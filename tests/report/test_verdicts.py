"""Verdicts: every rule by hand, and scores that the data cannot support."""

import pytest

from jaxanon.report import text, verdicts

SIDES = ("left", "right")


def scores(balanced, *, reach=0.0, auc=None, auc_reach=0.0, chance=0.5, reason=None):
    """Returns scores with symmetric intervals.

    ``reason`` says why they do not count.
    """
    interval = {
        "balanced_accuracy": [balanced - reach, balanced + reach],
        "auc": None if auc is None else [auc - auc_reach, auc + auc_reach],
    }
    half = {"windows": 10, "recall": balanced}
    return {
        **{"balanced_accuracy": balanced, "auc": auc, "chance": chance},
        **{"interval": None if reason else interval, "not_measured": reason},
        "per_class": [half | {"name": name} for name in SIDES],
    }


def report(attackers, *, intrusive=None, attacks=None, linkage=None, utility=None):
    """Returns a report with the private attribute ``side`` and the public ``act``."""
    return {
        "utility": {"attribute": "act"}
        | (utility or {"raw": scores(0.9), "anonymized": scores(0.87, reach=0.02)}),
        "intrusive": {"side": intrusive},
        "reidentification": {"side": {"attackers": attackers}} if attackers else {},
        "linkage": linkage,
        "attacks": attacks or {},
        "attackers": list(attackers),
        "method": None,
        "dataset": {"split": "subject", "public": "act", "private": ("side",)},
    }


def side(*args, **options):
    return verdicts.attribute(report(*args, **options), "side")


@pytest.mark.parametrize(
    ("balanced", "reach", "status"),
    [
        (0.50, 0.05, "green"),  # Ends at chance + 5 points.
        (0.50, 0.06, "amber"),  # Ends at chance + 6: the upper end counts.
        (0.55, 0.10, "amber"),  # Ends at chance + 15.
        (0.55, 0.11, "red"),  # Ends at chance + 16.
        (0.40, 0.05, "green"),  # Below chance level.
    ],
)
def test_the_upper_end_of_the_interval_is_graded(balanced, reach, status):
    row = side({"mlp": scores(balanced, reach=reach)})
    assert row["status"] == status
    assert row["interval"] == pytest.approx([balanced - reach, balanced + reach])


def test_the_larger_of_balanced_accuracy_and_auc_counts():
    """Version 0.1 said 59.8 % where the AUC was 81.2 %."""
    row = side({"mlp": scores(0.598, reach=0.01, auc=0.812, auc_reach=0.02)})
    assert (row["measure"], row["value"], row["status"]) == ("AUC", 0.812, "red")
    row = side({"mlp": scores(0.598, reach=0.01, auc=0.55)})
    assert (row["measure"], row["status"]) == ("balanced accuracy", "amber")


def test_each_measure_counts_above_its_own_chance_level():
    # Ten classes: 30 % is 20 points above 10 %, and an AUC of 65 % 15 above 50 %.
    row = side({"mlp": scores(0.3, auc=0.65, chance=0.1)})
    assert row["measure"] == "balanced accuracy" and row["status"] == "red"
    row = side({"mlp": scores(0.12, auc=0.65, chance=0.1)})
    assert row["measure"] == "AUC" and row["chance"] == 0.5
    assert row["status"] == "amber"


def test_leakage_is_absolute_whatever_raw_windows_leak():
    """Version 0.1 graded the fraction of the way from chance to raw windows."""
    for raw in (0.56, 0.99):
        sides = {"raw": scores(raw), "anonymized": scores(0.5)}
        row = side({"mlp": scores(0.553)}, intrusive=sides)
        assert row["status"] == "amber" and row["raw"] == raw


def test_the_strongest_attack_that_was_run_counts():
    stream = [
        attack("mlp", "1 windows, majority vote", scores(0.99)),
        attack("mlp", "30 windows, majority vote", scores(0.7, reach=0.1)),
        attack("raw-data classifier", "raw stream, 30 windows, majority vote",
               scores(0.95)),
    ]  # fmt: skip
    released = [attack("mlp", "training accuracy, own share", scores(1.0))]
    sides = {"raw": scores(0.9), "anonymized": scores(0.6)}
    row = side(
        {"mlp": scores(0.52), "forest": scores(0.55)},
        intrusive=sides,
        attacks={"stream": stream, "released": released},
    )
    # Not training accuracy, nor a baseline on raw windows.
    assert row["attack"] == "mlp, 30 windows, majority vote"
    assert row["value"] == 0.7 and row["status"] == "red"
    assert row["raw"] == 0.95  # The same attack on raw streams.
    row = side({"mlp": scores(0.52), "forest": scores(0.55)}, intrusive=sides)
    assert row["attack"] == "raw-data classifier on anonymized windows"
    assert row["raw"] == 0.9


def attack(name, variant, scores, reason=None):
    row = {"attribute": "side", "attacker": name, "variant": variant}
    return row | {"scores": scores, "figures": {}, "reason": reason}


def test_what_data_cannot_support_is_not_measured():
    reason = "the test windows have one class, 'left'"
    row = side({"mlp": scores(1.0, reason=reason)})
    assert row["status"] == "not measured" and row["reason"] == reason
    assert row["value"] is None
    sentence = text.private_sentence(row)
    assert sentence == f"side: not measured, because {reason}."
    assert side({})["reason"] == "no attack could run on this data"


def test_an_attack_without_support_does_not_count_among_others():
    reason = "class 'left' has 2 streams of 100 windows (at least 5)"
    rows = [attack("mlp", "100 windows, majority vote", scores(1.0, reason=reason))]
    whole = report({"mlp": scores(0.51)}, attacks={"stream": rows})
    assert verdicts.attribute(whole, "side")["value"] == 0.51
    assert "streams of 100 windows (side)" in verdicts.untested(whole)


def test_a_report_without_intervals_has_no_verdict():
    """Older versions wrote such reports."""
    old = {"balanced_accuracy": 0.7, "auc": None, "chance": 0.5}
    row = side({"mlp": old})
    assert row["status"] == "not measured" and "interval" in row["reason"]
    assert row["value"] == 0.7


def test_old_reports_name_the_strongest_attacker_by_another_key():
    assert verdicts.strongest({"worst": "mlp"}) == "mlp"
    assert verdicts.strongest({"strongest": "forest"}) == "forest"


@pytest.mark.parametrize(
    ("raw", "safe", "status"),
    [(0.9, 0.85, "green"), (0.9, 0.75, "amber"), (0.9, 0.74, "red"),
     (0.5, 0.5, "not measured"), (0.515, 0.9, "not measured")],
)  # fmt: skip
def test_utility_is_graded_by_lost_points(raw, safe, status):
    sides = {"raw": scores(raw), "anonymized": scores(safe, reach=0.01)}
    found = verdicts.verdict(report({"mlp": scores(0.5)}, utility=sides))
    assert found["utility"]["status"] == status


def test_utility_of_one_class_is_not_measured():
    """Version 0.1 reported: not readable even from raw windows: 100.0 %."""
    reason = "the test windows have one class, 'left'"
    one = scores(1.0, reason=reason)
    sides = {"raw": one, "anonymized": one}
    found = verdicts.verdict(report({"mlp": scores(0.5)}, utility=sides))
    sentence = text.utility_sentence(found["utility"])
    assert sentence == f"act: not measured, because {reason}."


def test_attributes_that_nobody_asked_to_hide_are_warnings():
    subject = {"attackers": {"mlp": scores(0.9)}, "strongest": "mlp"}
    linkage = subject | {"raw": scores(0.95), "unseen_subjects": False}
    whole = report({"mlp": scores(0.5)}, linkage=linkage)
    found = verdicts.verdict(whole)
    assert [row["attribute"] for row in found["private"]] == ["side"]
    assert [row["status"] for row in found["warnings"]] == ["red"]
    assert found["status"] == "green"  # The attribute to hide.
    (line,) = [line for line in text.headline(whole) if line.startswith("Warning")]
    assert line.startswith("Warning (not in --private): subject is exposed (red)")


@pytest.mark.parametrize(
    ("statuses", "whole"),
    [
        (["green", "red", "not measured"], "red"),
        (["green", "amber", "not measured"], "not measured"),
        (["green", "amber"], "amber"),
        ([], "not measured"),
    ],
)
def test_the_worst_attribute_decides(statuses, whole):
    assert verdicts._worst(statuses) == whole


def test_what_was_not_tested_is_listed():
    found = verdicts.untested(report({"mlp": scores(0.5)}))
    assert found[0] == "attackers cnn, forest, boosting"
    assert "streams of one person" in found and "linkage of two streams" in found
    run = {name: [] for name in verdicts.GENERAL_ATTACKS}
    every = {name: scores(0.5) for name in verdicts.GENERAL_ATTACKERS}
    assert verdicts.untested(report(every, attacks=run)) == []
    assert not [x for x in text.headline(report(every, attacks=run)) if "Not te" in x]
    whole = report(every, attacks=run)
    whole["dataset"]["classes"] = {"act": (), "side": (), "age": (), "height": ()}
    found = verdicts.untested(whole)
    assert found[0] == "attributes outside --private: age, height"


def test_recordings_are_quoted_next_to_windows():
    rows = [
        attack("forest", "windows cut from released recordings", scores(0.6)),
        attack("raw-data classifier", "windows ...", scores(0.9))
        | {"attribute": "act"},
    ]
    whole = report({"forest": scores(0.55)}, attacks={"recordings": rows})
    (line,) = text.recordings_sentences(whole)
    utility = whole["utility"]["anonymized"]["balanced_accuracy"]
    assert line == (
        "Balanced accuracy on recordings as released: side 60.0 % (windows 55.0 %) by "
        f"the forest; act 90.0 % (windows {100 * utility:.1f} %) by the raw-data "
        "classifier."
    )
    assert line in text.headline(whole)
    row = side({"forest": scores(0.55)}, attacks={"recordings": rows})
    assert row["value"] == 0.6  # Recordings count as an attack.


def test_recordings_that_cannot_be_measured_say_why():
    rows = [attack("forest", "windows cut ...", None, reason="windows do not overlap")]
    every = {name: scores(0.5) for name in verdicts.GENERAL_ATTACKERS}
    run = {name: [] for name in verdicts.GENERAL_ATTACKS} | {"recordings": rows}
    whole = report(every, attacks=run)
    assert text.recordings_sentences(whole) == [
        "Recordings as released: not measured, because windows do not overlap."
    ]
    found = verdicts.verdict(whole)
    assert found["not_tested"] == ["recordings as released (windows do not overlap)"]
    assert "jaxanon export" in found["next_step"]  # Running it again does not help.


def test_one_next_step_by_urgency():
    lost = {"raw": scores(0.9), "anonymized": scores(0.6)}
    step = lambda *args, **more: verdicts.verdict(report(*args, **more))["next_step"]
    few = "2 persons are too few (at least 3)"
    assert few in step({"mlp": scores(0.9, reason=few)}, utility=lost)
    assert "protection of side" in step({"mlp": scores(0.9)}, utility=lost)
    assert "Recover utility" in step({"mlp": scores(0.5)}, utility=lost)
    assert "--attacks mlp,cnn" in step({"mlp": scores(0.5)})
    every = {name: scores(0.5) for name in verdicts.GENERAL_ATTACKERS}
    run = {name: [] for name in verdicts.GENERAL_ATTACKS}
    assert "jaxanon export" in step(every, attacks=run)


def test_sentences_quote_the_verdict():
    found = side({"mlp": scores(0.6, reach=0.04, auc=0.7, auc_reach=0.05)})
    assert text.private_sentence(found) == (
        "side is exposed (red): the strongest attack that was run (mlp retrained on "
        "anonymized windows) reaches 70.0 % AUC (balanced accuracy 60.0 %), 95 % "
        "interval over persons 65.0 to 75.0 %; chance level 50.0 %."
    )
    kept = verdicts.verdict(report({"mlp": scores(0.5)}))["utility"]
    assert text.utility_sentence(kept) == (
        "act is preserved (green): 87.0 % balanced accuracy (95 % interval 85.0 to "
        "89.0 %); raw windows 90.0 %, chance level 50.0 %."
    )
