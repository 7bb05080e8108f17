"""Knowledge and scoring of attackers, for drawn people, classes and fractions."""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from jaxanon import attacks
from jaxanon.attacks.attackers import features

NEVER = np.float32(np.log(1e-3))  # Value for an unseen class.
SEEDS = st.integers(0, 2**32 - 1)
few = functools.partial(settings, deadline=None)
keys = lambda seed, count=1: jax.random.split(jax.random.key(seed), count)


def windows_of(level, more=0.0):
    """Returns constant windows whose level alone depends on the class."""
    level = np.float32(level) + np.float32(more)
    return np.repeat(level[:, None, None], 4, axis=1)


LABELS = st.lists(st.sampled_from([0, 1, 3]), max_size=7).map(
    lambda some: np.array([*some, *sorted(set(some))], int)
)  # Two of each present class, or more.
ANONYMIZERS = st.sampled_from(
    [lambda key, windows: windows, lambda key, windows: -2 * windows]
)


def counts_of(labels, share, at_least=0):
    """Counts the windows of each class that an attacker knows."""
    sizes = {label: int(np.sum(labels == label)) for label in np.unique(labels)}
    return {
        label: min(size, max(round(share * size), at_least))
        for label, size in sizes.items()
    }


@few(max_examples=25)
@given(
    SEEDS, LABELS, st.sampled_from([0.3, 0.5, 1.0]), st.integers(0, 3), st.booleans()
)
def test_an_attacker_knows_his_share_of_every_class(
    seed, labels, share, at_least, some
):
    windows = np.arange(4.0 * len(labels)).reshape(-1, 4, 1)
    target = attacks.Target(lambda key, x: -x, windows, labels, 4, None, "mood")
    rows = np.flatnonzero(labels != 3) if some else None
    own = labels if rows is None else labels[rows]
    counts = counts_of(own, share, at_least)
    know = lambda: attacks.know(
        keys(seed, 2), target, share, rows=rows, at_least=at_least
    )
    if min(counts.values(), default=2) < 2:
        with pytest.raises(ValueError, match=r"mood class \d .*at least 2"):
            know()
        return
    found = know()
    chosen = (-found.windows[:, 0, 0] / 4).astype(int)
    assert (np.diff(chosen) > 0).all()
    np.testing.assert_array_equal(found.windows, -windows[chosen])
    np.testing.assert_array_equal(found.labels, labels[chosen])
    assert {label: int(np.sum(found.labels == label)) for label in counts} == counts
    assert rows is None or set(chosen) <= set(rows)
    np.testing.assert_array_equal(know().windows, found.windows)


def say_what_was_not_so(evidence, num_classes, occurring):
    assert evidence.dtype == np.float32 and evidence.shape[1] == num_classes
    never = [label for label in range(num_classes) if label not in occurring]
    np.testing.assert_array_equal(evidence[:, never], NEVER)


@few(max_examples=12)
@given(SEEDS, LABELS.filter(len), ANONYMIZERS, st.sampled_from([1.0, 0.6]))
def test_he_reads_what_is_there_alone_and_among_others(seed, labels, anonymize, share):
    labels = np.tile(labels, 2)
    windows, safe = windows_of(labels), anonymize(None, windows_of(labels, 0.1))
    target = attacks.Target(anonymize, windows, labels, 4, safe)
    own = [target, target._replace(safe_test=safe[:1]), target._replace(num_classes=6)]
    whole, first, more = attacks.reidentify(keys(seed, 3), "tree", own, share=share)
    say_what_was_not_so(whole, 4, labels)
    say_what_was_not_so(more, 6, labels)
    np.testing.assert_array_equal(whole.argmax(1), labels)
    np.testing.assert_array_equal(more.argmax(1), labels)
    assert first.shape == (1, 4)
    for key, one, evidence in zip(
        keys(seed, 3), own, (whole, first, more), strict=True
    ):
        pick, safely, train = jax.random.split(key, 3)
        known = attacks.know((pick, safely), one, share)
        read = attacks.ATTACKERS["tree"].fit(train, *known, one.num_classes)
        np.testing.assert_array_equal(evidence, read(one.safe_test))


@few(max_examples=12)
@given(SEEDS, LABELS.filter(len), st.integers(1, 3), ANONYMIZERS)
def test_by_class_what_changes_its_sign_is_read_and_the_rest_is_not(
    seed, labels, classes, anonymize
):
    public = np.repeat(np.arange(classes), len(labels))
    labels = np.tile(labels, classes)
    level = (1 + labels) * (1 - 2 * (public % 2))
    windows, safe = windows_of(level), anonymize(None, windows_of(level, 0.1))
    target = attacks.Target(anonymize, windows, labels, 4, safe)
    strange = np.where(np.arange(len(labels)) % 3 == 0, 7, public)
    found = attacks.reidentify_by_class(
        keys(seed, 2), "tree", [target] * 2, public, strange, share=1.0
    )
    for evidence in found:
        read = strange != 7
        np.testing.assert_array_equal(evidence[~read], 0)
        np.testing.assert_array_equal(evidence[read].argmax(1), labels[read])
        say_what_was_not_so(evidence[read], 4, labels)


@few(max_examples=12)
@given(SEEDS, LABELS.filter(len), st.sampled_from([0.5, 1.0]))
def test_as_released_he_is_scored_on_what_he_trained_on(seed, labels, share):
    labels = np.tile(labels, 2)
    target = attacks.Target(None, None, None, 5, windows_of(labels))
    ours, again = attacks.reidentify_as_released(
        keys(seed, 2), "tree", [target] * 2, [labels, labels], share=share
    )
    for own in (ours, again):
        assert (np.diff(own.rows) > 0).all()
        chosen = labels[own.rows]
        counts = {label: int(np.sum(chosen == label)) for label in np.unique(labels)}
        assert counts == counts_of(labels, share)
        np.testing.assert_array_equal(own.evidence.argmax(1), chosen)
        say_what_was_not_so(own.evidence, 5, labels)


def attack(kind, attacker="tree", share=0.5, labels=(0, 0, 1, 1)):
    labels = np.array(labels)
    windows = windows_of(labels)
    target = attacks.Target(lambda key, x: x, windows, labels, 2, windows, "mood")
    given = keys(0), attacker, [target]
    public = np.zeros(len(labels), int)
    return {
        "reidentify": functools.partial(attacks.reidentify, *given),
        "class": functools.partial(attacks.reidentify_by_class, *given, public, public),
        "released": functools.partial(attacks.reidentify_as_released, *given, [labels]),
    }[kind](share=share)


@pytest.mark.parametrize("kind", ["reidentify", "class", "released"])
@few(max_examples=12)
@given(st.text(max_size=6), st.floats(-9, 9).filter(lambda x: not 0 < x <= 1))
def test_other_attackers_and_shares_are_refused(kind, name, share):
    if name not in attacks.ATTACKERS:
        with pytest.raises(ValueError, match="attackers must be among"):
            attack(kind, attacker=name)
    with pytest.raises(ValueError, match="share"):
        attack(kind, share=share)
    with pytest.raises(ValueError, match=r"mood .*class 1 has one"):
        attack(kind, share=1.0, labels=(0, 0, 1))


@few(max_examples=20)
@given(
    SEEDS,
    st.lists(st.integers(0, 7), min_size=2, max_size=5),
    st.booleans(),
    st.integers(0, 2),
)
def test_strangers_are_linked_by_the_first_half_of_their_windows(
    seed, sizes, mixed, reach
):
    groups = [(place // 2, place % 2) for place in range(len(sizes))]
    who = np.array([pair for pair, size in zip(groups, sizes, strict=True)
                    for _ in range(size)], int).reshape(-1, 2)  # fmt: skip
    if mixed:  # Still in order of time within each group.
        who = np.random.default_rng(seed).permutation(who)
    subjects, activities = who.T
    known, scored = [], []
    for pair in groups:
        rows = [row for row in range(len(who)) if tuple(who[row]) == pair]
        if len(rows) >= 3:
            known += rows[: len(rows) // 2]
            scored += rows[len(rows) - max(1, int(0.4 * len(rows))) :]
    own = windows_of(subjects)
    link = lambda **options: attacks.link_unseen_subjects(
        keys(seed, 2), "tree", [own, -own], subjects, activities, 4, **options
    )
    if len(set(subjects[known])) < 2:
        with pytest.raises(ValueError, match="linkage needs at least 2 test subjects"):
            link()
        return
    for found in link():
        np.testing.assert_array_equal(found.rows, sorted(scored))
        assert found.evidence.shape == (len(scored), 4)
        assert found.evidence.dtype == np.float32
    # With two known windows of each, the tree may separate them.
    if min(np.unique(subjects[known], return_counts=True)[1]) >= 2:
        for found in link():
            np.testing.assert_array_equal(
                found.evidence.argmax(1), subjects[found.rows]
            )
    apart = link(overlap=lambda earlier, later: False)
    np.testing.assert_array_equal(apart[1].evidence, link()[1].evidence)


@few(max_examples=15)
@given(SEEDS, LABELS.filter(len), st.booleans())
def test_judges_know_raw_windows_of_every_attribute(seed, labels, swap):
    labels = {"one": labels, "other": np.sort(labels)[::-1] + 1}
    sizes = {"other": 6, "one": 4} if swap else {"one": 4, "other": 5}
    level = labels["one"] + 10 * labels["other"]
    raw, test, told = windows_of(level), windows_of(level, 0.1), []
    raw_classifiers = attacks.train_raw_classifiers(
        jax.random.key(seed), raw, labels, sizes, test,
        attacker="tree", progress=told.append,
    )  # fmt: skip
    assert len(told) == 1 and list(raw_classifiers.infer) == list(
        raw_classifiers.raw
    ) == list(sizes)
    for name, size in sizes.items():
        say_what_was_not_so(raw_classifiers.raw[name], size, labels[name])
        np.testing.assert_array_equal(
            raw_classifiers.infer[name](test), raw_classifiers.raw[name]
        )
        assert raw_classifiers.infer[name](test[:0]).shape == (0, size)
    alone, *_ = sizes
    found = attacks.train_raw_classifiers(
        jax.random.key(seed), raw, labels, {alone: sizes[alone]}, test, attacker="tree"
    )
    np.testing.assert_array_equal(found.raw[alone], raw_classifiers.raw[alone])


@pytest.mark.slow
@few(max_examples=15)
@given(SEEDS, st.integers(0, 12), st.sampled_from([0, 1, 3]), st.integers(2, 4))
def test_who_trains_himself_reads_what_hangs_together(seed, number, rounds, classes):
    rng = np.random.default_rng(seed)
    level = lambda of: 3 * of + rng.uniform(-1, 1, size=len(of))
    known, truth = np.arange(2 * classes) % classes, rng.integers(classes, size=number)
    windows, unlabelled = windows_of(level(known)), windows_of(level(truth))
    train = lambda rows, rounds: attacks.self_train(
        jax.random.key(seed), windows, 2 * known, rows, 2 * classes + 1, rounds=rounds
    )
    found = train(unlabelled, rounds)
    assert found.shape == (number, 2 * classes + 1) and found.dtype == np.float32
    assert (found <= 0).all() and (found >= NEVER).all()
    say_what_was_not_so(found, 2 * classes + 1, 2 * np.arange(classes))
    if number:
        model = make_pipeline(StandardScaler(), SVC(class_weight="balanced"))
        model.fit(features(windows), 2 * known)
        margins = model.decision_function(features(unlabelled))
        guesses = margins > 0 if classes == 2 else margins.argmax(1)
        # Without rounds, it is the SVM of the labelled windows only.
        np.testing.assert_array_equal(train(unlabelled, 0).argmax(1), 2 * guesses)
    order = rng.permutation(number)
    np.testing.assert_array_equal(
        train(unlabelled[order], 0), train(unlabelled, 0)[order]
    )


@given(st.integers(0, 3), st.integers(max_value=-1))
def test_one_class_or_rounds_below_none_are_refused(number, rounds):
    windows = windows_of(np.ones(number))
    train = functools.partial(attacks.self_train, jax.random.key(0))
    with pytest.raises(ValueError, match="labels must have at least 2 classes"):
        train(windows, np.ones(number, int), windows, 2)
    with pytest.raises(ValueError, match=f"rounds must be >= 0, got {rounds}"):
        train(windows_of([0, 1]), [0, 1], windows, 2, rounds=rounds)
