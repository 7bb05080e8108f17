"""Evaluations of anonymizers whose right report is known."""

import functools
import json

import jax
import numpy as np
import pytest

import jaxanon as ja
from jaxanon.core import release
from jaxanon.evaluation import anonymizers, protocol
from jaxanon.evaluation import summary as evaluation_summary
from jaxanon.evaluation.anonymizers import (
    evaluate,
    evaluate_many,
    train_raw_classifiers,
)


@pytest.fixture(scope="module")
def reported(cases, raw_classifiers):
    """Evaluates an anonymizer on the small data, with shared raw-data classifiers."""

    def report(anonymize, **options):
        options = {**cases.QUICK, "raw_classifiers": raw_classifiers, **options}
        return evaluate(cases.Run(anonymize), cases.data(), **options)

    return report


@pytest.fixture(scope="module")
def known(reported):
    """Caches ``reported``, so that each anonymizer is evaluated once."""
    return functools.cache(reported)


@pytest.fixture(scope="module")
def new_people(cases):
    """Returns raw-data classifiers of subjects who differ from the tested ones."""
    return train_raw_classifiers(cases.strangers())


@pytest.fixture(scope="module")
def linked(cases, new_people, tmp_path_factory):
    """Returns the report on new people in the test part, and the progress."""
    told = []
    tell = lambda done, total, what: told.append((done, total, what))
    report = evaluate(
        cases.Run(cases.identity),
        cases.strangers(("side", "subject")),
        raw_classifiers=new_people,
        output_dir=tmp_path_factory.mktemp("strangers"),
        progress=tell,
        **cases.QUICK,
    )
    return report, told


@pytest.fixture(scope="module")
def alone(cases, tmp_path_factory):
    """Returns one run's report, the progress, and the classifiers trained."""
    told, made, train = [], [], protocol.train_raw_classifiers
    tell = lambda done, total, what: told.append((done, total, what))
    run = cases.Run(cases.identity, tmp_path_factory.mktemp("alone"))
    with pytest.MonkeyPatch.context() as patch:
        kept = lambda *words: made.append(train(*words)) or made[-1]
        patch.setattr(protocol, "train_raw_classifiers", kept)
        found = evaluate_many([run], cases.data(), progress=tell, **cases.QUICK)
    return found, told, made


@pytest.fixture(scope="module")
def watched(reported):
    """Returns the keys and windows that an anonymizer received, with seed 5.

    conftest enables JAX's check of key reuse; splitting one is fine.
    """
    keys, seen = [], []

    def spy(key, windows):
        keys.append(np.asarray(jax.random.key_data(key)).tolist())
        seen.append(np.array(windows))
        first, second = (jax.random.normal(own) for own in jax.random.split(key))
        return windows * np.float32(first) + np.float32(second)

    reported(spy, seed=5)
    return keys, seen


@pytest.mark.slow
def test_identity_keeps_all_and_hides_nothing(cases, known):
    report = known(cases.identity)
    utility, side = report["utility"], report["intrusive"]["side"]
    assert utility["raw"] == utility["anonymized"]
    assert utility["anonymized"]["accuracy"] > 0.9
    assert side["anonymized"]["balanced_accuracy"] > 0.9
    found = report["reidentification"]["side"]
    assert found["attackers"][found["strongest"]]["balanced_accuracy"] > 0.9
    assert report["linkage"]["attackers"]["forest"]["balanced_accuracy"] > 0.9
    assert report["mutual_information"]["side"]["raw"] > 0.02
    told = report["mutual_information"]["side"]
    assert told["raw"] == pytest.approx(told["anonymized"])
    assert "activity is preserved" in report["headline"][0]
    assert "side is exposed" in report["headline"][1]
    assert "(not in --private): subject is exposed" in report["headline"][2]
    assert report["verdict"]["status"] == "red"


@pytest.mark.slow
def test_noise_keeps_nothing_and_hides_all(cases, known):
    report = known(cases.noise)
    # 96 windows at chance level: a std of 5 points, with 3 classes 7.
    assert report["utility"]["anonymized"]["balanced_accuracy"] < 0.7
    found = report["reidentification"]["side"]["attackers"]["forest"]
    assert 0.3 < found["balanced_accuracy"] < 0.7
    link = report["linkage"]["attackers"]["forest"]
    assert link["balanced_accuracy"] < 1 / 3 + 0.2
    assert link["chance"] == 1 / 3
    told = report["mutual_information"]["subject"]
    assert told["anonymized"] < told["raw"]


def test_a_flip_fools_the_intruder_and_is_reidentified(cases, known):
    report = known(cases.flip_side)
    side = report["intrusive"]["side"]
    assert side["raw"]["balanced_accuracy"] > 0.9
    assert side["anonymized"]["balanced_accuracy"] < 0.1
    found = report["reidentification"]["side"]["attackers"]["forest"]
    assert found["balanced_accuracy"] > 0.9
    assert "side is exposed (red): the strongest attack" in report["headline"][1]
    assert "(forest retrained" in report["headline"][1]


def test_chance_and_majority_stand_beside_every_accuracy(cases, known):
    report = known(cases.identity)
    found = [report["utility"][x] for x in ("raw", "anonymized")]
    found += [report["intrusive"]["side"][x] for x in ("raw", "anonymized")]
    found += report["reidentification"]["side"]["attackers"].values()
    for scores in found:
        assert scores["chance"] == scores["majority"] == 0.5
        assert np.sum(scores["confusion"]) == 96 == scores["windows"]
        assert scores["per_class"][0]["name"] in ("slow", "left")
    link = report["linkage"]["attackers"]["forest"]
    assert link["chance"] == link["majority"] == 1 / 3


@pytest.mark.slow
def test_the_seed_decides(cases, known, reported):
    one, again = known(cases.noise), reported(cases.noise)
    assert one == again
    assert one != known(cases.noise, seed=1)


def test_a_private_subject_is_linkage(cases, raw_classifiers):
    run = cases.Run(cases.identity)
    report = evaluate(
        run,
        cases.data(("side", "subject")),
        raw_classifiers=raw_classifiers,
        **cases.QUICK,
    )
    linked = report["linkage"]["attackers"]
    assert report["reidentification"]["subject"]["attackers"] == linked
    assert report["intrusive"]["subject"]["raw"] == report["linkage"]["raw"]
    assert not report["linkage"]["unseen_subjects"]


@pytest.mark.slow
def test_new_people_are_linked_by_halves(linked):
    report, _ = linked
    # Two subjects, two activities, 24 windows each: the last 9 of each are scored.
    link = report["linkage"]
    assert link["unseen_subjects"] and link["attackers"]["forest"]["windows"] == 36
    assert link["attackers"]["forest"]["balanced_accuracy"] > 0.9
    assert link["raw"]["balanced_accuracy"] > 0.9
    # A raw-data classifier of training windows has never seen these people.
    assert report["intrusive"]["subject"] is None
    assert "subject" not in report["reidentification"]
    assert "first half, in time" in report["protocol"]["Linkage"]
    # Two persons are too few for an interval.
    assert "subject: not measured" in report["headline"][2]


def test_one_test_subject_cannot_be_linked(cases, new_people):
    full = cases.strangers()
    kept = full.test.labels["subject"] == 1
    test = type(full.test)(
        full.test.windows[kept], {k: v[kept] for k, v in full.test.labels.items()}
    )
    raw = {name: evidence[kept] for name, evidence in new_people.raw.items()}
    report = evaluate(
        cases.Run(cases.identity),
        full._replace(test=test),
        raw_classifiers=new_people._replace(raw=raw),
        **cases.QUICK,
    )
    assert report["linkage"] is None
    assert report["protocol"]["Linkage"].startswith("Not measured")


@pytest.mark.slow
def test_the_mlp_attacks_too(cases, reported):
    report = reported(cases.flip_side, attacks=("mlp", "forest"))
    found = report["reidentification"]["side"]
    assert set(found["attackers"]) == {"mlp", "forest"}
    scores = {k: v["balanced_accuracy"] for k, v in found["attackers"].items()}
    assert scores[found["strongest"]] == max(scores.values())
    assert scores["mlp"] > 0.8


def test_test_windows_are_never_given_to_the_attacker(cases, watched):
    whole, *shares = watched[1]
    np.testing.assert_array_equal(whole, cases.data().test.windows)
    train = {row.tobytes() for row in cases.data().train.windows}
    for share in shares:
        assert {row.tobytes() for row in share} <= train
        # 20 % of 48 per side, of 32 per subject.
        assert len(share) in (2 * 10, 3 * 6)


def test_the_seed_gives_other_keys_than_training_has(watched):
    """``split(key, n)[i]`` is ``fold_in(key, i)``, and training splits the seed's."""
    keys, _ = watched
    trained = jax.random.key_data(jax.random.split(jax.random.key(5), 4)).tolist()
    assert len(keys) == 3 and not any(key in trained for key in keys)
    assert keys[0] != keys[1] != keys[2] != keys[0]


@pytest.mark.slow
def test_progress_counts_to_its_total(alone, linked):
    for told in (alone[1], linked[1]):
        total = told[0][1]
        assert [entry[:2] for entry in told] == [(i, total) for i in range(total)]
        assert told[-1][2] == "writing the report"


def test_classifiers_count_their_progress(trained):
    assert trained[1] == [(0, 1)]  # One program for all attributes.


@pytest.mark.slow
def test_many_runs_train_their_own_classifiers(cases, known, alone, raw_classifiers):
    """They equal those of ``train_raw_classifiers`` to the bit, every time."""
    reports = [known(cases.identity)]
    assert alone[0] == {
        "reports": reports,
        "summary": evaluation_summary.of_runs(reports),
    }
    (made,) = alone[2]
    for attribute, evidence in raw_classifiers.raw.items():
        np.testing.assert_array_equal(made.raw[attribute], evidence)


@pytest.mark.slow
def test_many_runs_share_classifiers(cases, known, raw_classifiers):
    got = evaluate_many(
        [cases.Run(cases.identity), cases.Run(cases.noise)],
        cases.data(),
        raw_classifiers=raw_classifiers,
        **cases.QUICK,
    )
    reports, summary = got["reports"], got["summary"]
    both = [r["intrusive"]["side"]["anonymized"]["accuracy"] for r in reports]
    told = summary["intrusive"]["side"]["anonymized"]["accuracy"]
    assert told["mean"] == pytest.approx(np.mean(both))
    assert told["std"] == pytest.approx(np.std(both, ddof=1))
    assert reports[1] == known(cases.noise, seed=1)
    json.dumps(summary, allow_nan=False)


def test_what_is_of_one_run_is_not_summed_up(cases, monkeypatch):
    """One run was not profiled, and one is not finished."""
    told = [
        {"headline": ["a"], "costs": None, "protocol": ["p"], "share": 0.2},
        {"headline": ["b", "late"], "costs": {"s": 1}, "protocol": [], "share": 1},
    ]
    monkeypatch.setattr(anonymizers, "evaluate_each", lambda *_, **__: told)
    runs = [cases.Run(cases.identity)] * 2
    found = evaluate_many(runs, cases.data())
    assert found["reports"] == told and set(found["summary"]) == {"share"}


def test_the_api_finds_it():
    assert ja.evaluate is evaluate


@pytest.mark.slow
def test_what_is_guaranteed_stands_behind_what_was_found(
    cases, known, reported, monkeypatch
):
    said = lambda run, windows: [f"Guarantee: of {len(windows)} windows."]
    monkeypatch.setattr(release, "headline", said)
    *found, last = reported(cases.identity)["headline"]
    assert last == f"Guarantee: of {len(cases.data().test.windows)} windows."
    assert found == known(cases.identity)["headline"]
