"""Further attacks, by name, on anonymizers whose right answer is known."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import attacks
from jaxanon.evaluation import attackers, leakage, protocol, streams
from jaxanon.evaluation.anonymizers import evaluate, evaluate_many
from jaxanon.evaluation.protocol import EvaluationContext

RETRAINED = ("released", "per_class", "stream", "pairs", "self-training", "intrusive")


def bent(params, window, label):
    """Computes the loss of a softmax regression with a nonlinearity."""
    said = jax.nn.log_softmax(jnp.tanh(window.ravel() @ params["w"]))
    return -jnp.sum(label * said)


def client_loss():
    """Returns a client's loss and the parameters that it received."""
    return bent, {"w": jax.random.normal(jax.random.key(0), (48, 2)) / 5}


def choices(key, windows):
    """Chooses a model for each subject, which channel z reveals."""
    level = (np.asarray(windows)[:, :, 2].mean(1) - 3) / 4
    return np.int64(np.round(level / 1.5)) + 1


def invert(key, loss_fn, params, sent, window_shape, label_shape):
    """Inverts ``bent`` in closed form: each gradient column is the scaled window."""
    assert loss_fn is bent and label_shape == (2,)
    window = sent["w"][:, 0].reshape(window_shape)
    return attacks.Inverted(window, jnp.ones(2) / 2, jnp.linalg.norm(sent["w"]))


@pytest.fixture(scope="module")
def reports(cases, raw_classifiers):
    """Evaluates flipping and noise under every attack by a tree."""
    runs = [cases.Run(cases.flip_side), cases.Run(cases.noise)]
    for run in runs:
        run.client_loss, run.choices = client_loss, choices
    told, names = [], ("tree", *RETRAINED, "inversion", "fingerprint")
    tell = lambda done, total, what: told.append((done, total))
    options = {"attacks": names, "raw_classifiers": raw_classifiers, "progress": tell}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attacks, "invert_gradient", invert)
        found = evaluate_many(runs, cases.data(), **options)
    assert told == [(index, len(told)) for index in range(len(told))]
    return found["reports"]


def rows(report, attack, **wanted):
    """Returns balanced accuracies, or scores, of the rows with those fields."""
    found = {}
    for row in report["attacks"][attack]:
        if all(row[name] == value for name, value in wanted.items()):
            scores = row["scores"]
            told = row["figures"] if scores is None else scores["balanced_accuracy"]
            found[row["variant"]] = told
    assert found, (attack, wanted)
    return found


def test_all_that_was_asked_for_is_strict_json(reports):
    for report in reports:
        json.dumps(report, allow_nan=False)
        assert list(report["attacks"]) == [*RETRAINED, "inversion", "fingerprint"]
        assert report["attackers"] == ["tree"]


def test_training_accuracy_is_far_above_what_is_read(reports):
    flipped, lost = (
        rows(report, "released", attribute="side")["training accuracy, own share"]
        for report in reports
    )
    assert flipped > 0.9
    honest = reports[1]["reidentification"]["side"]["attackers"]["tree"]
    assert lost > honest["balanced_accuracy"] + 0.15


def test_an_attacker_for_each_class(reports):
    flipped, lost = (rows(r, "per_class", attribute="side") for r in reports)
    assert set(flipped) == {
        "one attacker per activity", "activity slow", "activity fast",
    }  # fmt: skip
    assert min(flipped.values()) > 0.9
    assert 0.3 < lost["one attacker per activity"] < 0.7
    whole = reports[0]["attacks"]["per_class"][0]["scores"]["windows"]
    parts = [
        row["scores"]["windows"] for row in reports[0]["attacks"]["per_class"][1:3]
    ]
    assert whole == 96 and parts == [48, 48]


def test_evidence_of_one_person_adds_up(reports):
    flipped, lost = (rows(r, "stream", attribute="side") for r in reports)
    # A subject has 16 windows on each side.
    assert flipped["5 windows, majority vote"] >= flipped["1 windows, majority vote"]
    assert flipped["5 windows, mean log-odds"] > 0.95
    assert flipped["30 windows, mean log-odds"] == {}
    assert lost["1 windows, mean log-odds"] < 0.7
    single = reports[0]["reidentification"]["side"]["attackers"]["tree"]
    assert flipped["1 windows, majority vote"] == single["balanced_accuracy"]


def test_streams_that_data_cannot_support_are_not_measured(cases, reports):
    (row,) = [
        row
        for row in reports[0]["attacks"]["stream"]
        if row["attribute"] == "side"
        and row["attacker"] == "tree"
        and row["variant"] == "30 windows, majority vote"
    ]
    assert row["scores"] is None
    assert row["reason"] == "no test subject has 30 windows of one class"
    data = cases.data()
    sides = data.test.labels["side"]
    few = np.concatenate([np.flatnonzero(sides == 0)[:5], np.flatnonzero(sides)[:4]])
    reason = streams._few_streams(data, "side", few[:, None], 5)
    assert reason == "class 'right' has 4 streams of 5 windows (at least 5)"
    enough = np.concatenate([few, np.flatnonzero(sides)[4:5]])
    assert streams._few_streams(data, "side", enough[:, None], 5) is None


def test_raw_streams_are_the_baseline(reports):
    """They do not depend on the anonymizer."""
    flipped, lost = (
        rows(r, "stream", attacker="raw-data classifier", attribute="side")
        for r in reports
    )
    assert flipped == lost and flipped["raw stream, 5 windows, mean log-odds"] > 0.9


def test_the_stream_attack_runs_by_default():
    assert attackers.choose(None).attacks == ("stream",)
    assert attackers.choose(["forest"]).attacks == ()


def test_two_streams_of_one_person_are_matched(reports):
    for name in ("untrained", "tree"):
        (row,) = [r for r in reports[0]["attacks"]["pairs"] if r["attacker"] == name]
        assert row["scores"]["accuracy"] == 1 and row["scores"]["auc"] == 1
        assert row["scores"]["chance"] == 1 / 3 and row["scores"]["windows"] == 3


def test_streams_of_noise_are_matched_by_chance(cases, raw_classifiers):
    data, told = cases.data(), lambda what: None
    trials = [
        protocol.prepare_evaluation(
            cases.Run(cases.noise), seed, data, ("tree",), 0.2, told
        )
        for seed in range(16)
    ]
    found = streams.pairs(EvaluationContext(trials, [{}] * 16, raw_classifiers))
    for name in ("untrained", "tree"):
        own = [
            row["scores"] for rows in found for row in rows if row["attacker"] == name
        ]
        # The area for 3 pairs against 6 has a std of 0.25, so 16 of them have 0.06.
        assert 0.3 < np.mean([scores["auc"] for scores in own]) < 0.7
        assert np.mean([scores["accuracy"] for scores in own]) < 0.6


def test_few_labels_are_enough(reports):
    flipped, lost = (rows(r, "self-training", attribute="side") for r in reports)
    assert set(flipped) == {"4 labels alone", "4 labels and self-training"}
    assert flipped["4 labels and self-training"] > 0.9
    assert 0.3 < min(lost.values()) <= max(lost.values()) < 0.7


def test_every_attacker_of_raw_windows(reports):
    flipped = rows(reports[0], "intrusive", attribute="side")
    # A flip fools any attacker that never saw one.
    assert flipped["raw windows"] > 0.9 and flipped["anonymized windows"] < 0.1
    assert rows(reports[0], "intrusive", attribute="activity")["raw windows"] > 0.7


def test_what_a_client_sends_is_inverted(reports):
    found = rows(reports[0], "inversion")
    assert found["no noise"]["correlation"] == pytest.approx(1, abs=1e-4)
    # Four windows of 48 numbers; noise alone correlates by 0.12.
    noisy = found["clipped to 1, noise multiplier 1"]
    assert noisy["correlation"] < 0.6 and noisy["distance"] > 3


def test_a_dense_layer_tells_what_went_into_it(cases):
    """A softmax regression with biases, on windows flattened channel by channel."""

    def loss_fn(params, window, label):
        said = window.T.ravel() @ params["layer"]["kernel"] + params["layer"]["bias"]
        return -jnp.sum(label * jax.nn.log_softmax(said))

    params = {"layer": {"kernel": jnp.zeros((48, 2)), "bias": jnp.zeros(2)}}
    run = cases.Run(cases.identity)
    run.client_loss = lambda: (loss_fn, params)
    one = protocol.prepare_evaluation(
        run, 0, cases.data(), ("tree",), 0.2, lambda what: None
    )
    with pytest.MonkeyPatch.context() as patch:
        nothing = attacks.Inverted(jnp.zeros((16, 3)), jnp.ones(2) / 2, jnp.ones(()))
        patch.setattr(attacks, "invert_gradient", lambda *_: nothing)
        (found,) = leakage.inversion(EvaluationContext([one], [{}], None))
    told = {
        (row["attacker"], row["variant"]): row["figures"]["correlation"]
        for row in found
    }
    assert told["gradient inversion", "no noise"] == 0
    assert told["first dense layer", "no noise"] == pytest.approx(1, abs=1e-4)
    assert told["first dense layer", "clipped to 1, noise multiplier 1"] < 0.6
    lost = {"layer": {"kernel": jnp.zeros((48, 2)), "bias": jnp.zeros(2)}}
    assert not attacks.dense_input(lost, 48).any()
    assert attacks.dense_input({"w": jnp.zeros((48, 2))}, 48) is None


def test_who_chooses_a_model_of_his_own_is_unique(reports):
    found = rows(reports[0], "fingerprint")
    assert found["p = 1"] == {"uniqueness": 1.0, "std": 0.0} and len(found) == 5


@pytest.mark.slow
def test_the_page_shows_them(reports, cases, raw_classifiers, tmp_path):
    run, names = cases.Run(cases.noise), ("tree", "stream", "fingerprint")
    run.choices = choices
    evaluate(
        run,
        cases.data(),
        raw_classifiers=raw_classifiers,
        attacks=names,
        output_dir=tmp_path,
    )
    html = (tmp_path / "report.html").read_text()
    assert "<h3>Streams of one person</h3>" in html
    assert "5 windows, mean log-odds" in html and "not measured" in html
    assert "uniqueness 1.000" in html and "p = 5" in html
    assert "<dt>Model choices as a fingerprint</dt>" in html
    assert "steps per window, jerk pace" in html and "z: kurtosis" in html


def test_distortion_is_that_of_the_windows(reports, cases):
    data, found = cases.data(), reports[0]["distortion"]
    assert found["windows"] == 96
    assert found["statistics"]["x"]["mean"]["absolute_error"] < 1e-5  # It is unchanged.
    y = data.test.windows[:, :, 1].mean(1)
    want = np.abs((4 - y) - y).mean()  # Mirrored about 2.
    told = found["statistics"]["y"]["mean"]["absolute_error"]
    assert told == pytest.approx(want, rel=1e-4)
    assert found["warping"]["mean"] > 1
    assert set(found["steps"]) == {"threshold", "jerk_pace"}


@pytest.mark.slow
def test_strangers_are_matched_too(cases, raw_classifiers):
    run, names = cases.Run(cases.identity), ("tree", "pairs")
    report = evaluate(
        run, cases.strangers(), raw_classifiers=raw_classifiers, attacks=names
    )
    # One training subject does not suffice to learn to distinguish people; features do.
    assert [row["attacker"] for row in report["attacks"]["pairs"]] == ["untrained"]
    assert report["attacks"]["pairs"][0]["scores"]["accuracy"] == 1


def test_the_classifiers_are_the_mlp_of_raw_windows(
    cases, raw_classifiers, monkeypatch
):
    monkeypatch.setattr(
        protocol, "train_raw_classifiers", lambda *_: pytest.fail("once more")
    )
    run, told = cases.Run(cases.flip_side), lambda what: None
    one = protocol.prepare_evaluation(run, 0, cases.data(), ("mlp",), 0.2, told)
    (found,) = attackers.intrusive(EvaluationContext([one], [{}], raw_classifiers))
    assert len(found) == 6 and {row["attacker"] for row in found} == {"mlp"}


def test_a_class_of_one_window_within_an_activity_is_refused_at_the_door(
    cases, raw_classifiers
):
    full = cases.data()
    labels = full.train.labels
    fast = np.flatnonzero(labels["activity"] == 1)
    side = labels["side"].copy()
    side[fast] = np.arange(len(fast)) == 7  # 25 windows have all activities.
    own = full._replace(train=full.train._replace(labels={**labels, "side": side}))
    run = cases.Run(lambda key, windows: pytest.fail("too late"))
    message = "side within public class 1, class 1 has one training window"
    with pytest.raises(ValueError, match=message):
        evaluate(
            run, own, raw_classifiers=raw_classifiers, attacks=("tree", "per_class")
        )


def test_every_training_has_a_key_of_its_own(cases):
    data, told = cases.data(), lambda what: None
    put = lambda seed: protocol.prepare_evaluation(
        cases.Run(cases.noise), seed, data, ("tree",), 1, told
    )
    trials = [put(0), put(1)]
    found = protocol.folded(trials, [3, 4], 7)
    assert found.shape == (4,)
    fold = lambda key, *numbers: functools.reduce(jax.random.fold_in, numbers, key)
    for place, (seed, number) in enumerate([(0, 3), (0, 4), (1, 3), (1, 4)]):
        want = jax.random.key_data(fold(protocol.root(seed), number, 7))
        np.testing.assert_array_equal(jax.random.key_data(found[place]), want)


def test_names_are_told_apart():
    chosen = attackers.choose(["pairs", "svm", "svm", "released"])
    assert chosen.attackers == ("svm",) and chosen.attacks == ("pairs", "released")
    assert attackers.choose(["pairs"]).attackers == ("mlp", "forest")
