"""Harder data and data listings: drawn people, classes and ratios."""

import json
import math
import urllib.request

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import datasets
from jaxanon.datasets import Data, Spec, Windows
from jaxanon.datasets.targets import Target

many = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)
ratios = st.one_of(st.sampled_from([1, 2, np.int64(3), 1.5]), st.floats(1, 6))


@st.composite
def sides(draw):
    """Draws windows that hold their index, with drawn class counts per person.

    Some people lack classes, and some have no windows.
    """
    table = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1)
    sizes = np.array(draw(table.filter(lambda rows: np.sum(rows) > 0))[:6])
    subject = np.repeat(np.arange(len(sizes)) * 3 + 1, sizes.sum(1))
    act = np.concatenate([np.repeat([0, 1, 2], row) for row in sizes])
    order = np.random.default_rng(draw(seeds)).permutation(len(act))
    windows = np.arange(2.0 * len(act)).reshape(-1, 2, 1)
    labels = {"act": act[order], "subject": subject[order]}
    labels = {name: array.astype(np.int32) for name, array in labels.items()}
    labels["watts"] = np.arange(len(act), dtype=np.float32) ** 2
    return Windows(windows.astype(np.float32), labels)


def rows_of(windows):
    """Returns the indices that the windows hold."""
    return (windows.windows[:, 0, 0] / 2).astype(int)


def are(part, whole, rows):
    """Asserts that ``part`` is these rows of the whole, with labels and types."""
    np.testing.assert_array_equal(part.windows, whole.windows[rows])
    assert part.windows.dtype == whole.windows.dtype
    assert part.labels.keys() == whole.labels.keys()
    for name, label in whole.labels.items():
        np.testing.assert_array_equal(part.labels[name], label[rows])
        assert part.labels[name].dtype == label.dtype


@many
@given(sides(), ratios, seeds)
def test_each_person_has_the_ratio_or_it_is_out_of_reach(before, ratio, seed):
    label, subject = before.labels["act"], before.labels["subject"]
    counts = {who: np.bincount(label[subject == who]) for who in np.unique(subject)}
    counts = {who: dict(enumerate(n)) for who, n in counts.items()}
    there = {who: {c: n for c, n in of.items() if n} for who, of in counts.items()}
    try:
        after = datasets.imbalance(before, "act", ratio, seed)
    except ValueError as error:
        short = [who for who, of in there.items() if min(of.values()) < ratio]
        lone = [who for who, of in there.items() if len(of) < 2]
        told = "majority class of subject ", "must have at least 2 classes, got 1"
        assert any(
            f"{told[0]}{who}, got {ratio};" in str(error) for who in short
        ) or any(f"subject {who} {told[1]}" in str(error) for who in lone)
        return
    rows = rows_of(after)
    assert (np.diff(rows) > 0).all()
    are(after, before, rows)
    for who, of in there.items():
        mine = after.labels["act"][after.labels["subject"] == who]
        kept = {c: int((mine == c).sum()) for c in of}
        low = min(kept.values())
        assert len(of) > 1 and sorted(kept.values())[:-1] == [low] * (len(of) - 1)
        assert max(kept.values()) == round(ratio * low)
        # No class could keep one more window, whichever class is the majority.
        most = [c for c, n in kept.items() if n == max(kept.values())]
        limits = [
            min(min(of.values()), math.floor(of[major] / ratio + 1e-9))
            for major in most
        ]
        assert low >= 1 and low in limits
    again = datasets.imbalance(before, "act", ratio, seed)
    np.testing.assert_array_equal(rows_of(again), rows)


@many
@given(
    sides(),
    st.sampled_from([0, 0.99, -1, math.nan, -math.inf]),
    st.sampled_from(["sex", "", "Act", "watts"]),
)
def test_there_is_no_such_ratio_and_no_such_class(before, ratio, attribute):
    with pytest.raises(ValueError, match="ratio must be >= 1, majority over minority"):
        datasets.imbalance(before, "act", ratio, 0)
    with pytest.raises(ValueError, match="attribute must (be one of|have classes)"):
        datasets.imbalance(before, attribute, 1, 0)


def spec_of(train, tokens):
    rows = train.windows.astype(np.float64)
    watts = train.labels["watts"].astype(np.float64)
    target = Target(unit="W", mean=float(watts.mean()), std=float(watts.std()) or 1.0)
    return Spec(
        name="drawn",
        preset="",
        channels=("x",),
        units=("g",),
        rate_hz=10.0,
        time=2,
        public="act",
        private=("subject",),
        classes={"act": tuple("abc"), "subject": tuple(map(str, range(20)))},
        mean=(0.0,) if tokens else (float(rows.mean()),),
        std=(1.0,) if tokens else (float(rows.std()),),
        split="trial",
        targets={"watts": target},
        tokens=tokens,
    )


@many
@given(sides(), sides(), st.floats(0.01, 0.99), seeds, st.sampled_from([0, 500]))
def test_strangers_are_tested_and_the_others_train(train, test, fraction, seed, tokens):
    data = Data(spec_of(train, tokens), train, test)
    people = set(train.labels["subject"].tolist())
    tested = set(test.labels["subject"].tolist())
    call = lambda: datasets.hold_out_subjects(data, fraction, seed)
    if len(people) < 2:
        with pytest.raises(ValueError, match="requires at least 2 subjects"):
            call()
        return
    number = min(max(1, round(fraction * len(people))), len(people) - 1)
    try:
        less = call()
    except ValueError as error:
        # No window is left for testing; or a single one trains, and its std is 0.
        alone = min(np.unique(train.labels["subject"], return_counts=True)[1]) == 1
        nobody = len(people - tested) >= number and not tested - people
        assert (
            nobody and "must have a test window, got none; raise" in str(error)
        ) or (alone and "drop constant" in str(error))
        return
    training = set(less.train.labels["subject"].tolist())
    assert training < people and len(people) - len(training) == number
    for part, whole, kept in [
        (less.train, train, np.isin(train.labels["subject"], [*training])),
        (less.test, test, ~np.isin(test.labels["subject"], [*training])),
    ]:
        assert len(part.windows) > 0
        are(part, whole, kept)
    spec, values = less.spec, less.train.windows.astype(np.float64)
    want = (0.0, 1.0) if tokens else (values.mean(), values.std())
    assert (*spec.mean, *spec.std) == pytest.approx(want)
    watts = less.train.labels["watts"].astype(np.float64)
    told = spec.targets["watts"].mean, spec.targets["watts"].std
    assert told == pytest.approx((watts.mean(), watts.std()))
    assert spec.split == "subject" and spec.classes == data.spec.classes
    assert data.spec.split == "trial"  # The input is unchanged.
    np.testing.assert_array_equal(call().test.windows, less.test.windows)


@many
@given(sides(), st.sampled_from([0, 1, -0.5, 1.5, math.nan, math.inf]))
def test_a_fraction_is_neither_nobody_nor_everybody(train, fraction):
    data = Data(spec_of(train, 0), train, train)
    with pytest.raises(ValueError, match=r"fraction must be in \(0, 1\), got"):
        datasets.hold_out_subjects(data, fraction, 0)


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """Hides all local data sets and forbids downloads."""
    monkeypatch.setenv("JAXANON_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("jaxanon.datasets.sources.__file__", str(tmp_path / "a/b/c.py"))

    def opened(*_, **__):
        raise AssertionError("something was downloaded")

    monkeypatch.setattr(urllib.request, "urlopen", opened)


@pytest.mark.parametrize("row", datasets.describe(), ids=lambda row: row["name"])
def test_what_is_listed_agrees_with_itself_and_says_where_it_is(row, bare, tmp_path):
    json.dumps(row)
    assert row["name"] in datasets.names() and row["about"] and row["splits"]
    known = {*row["attributes"], *row["targets"]}
    assert {row["public"], *row["private"]} <= known
    assert row["public"] not in row["private"] and row["rate_hz"] > 0
    assert not {*row["attributes"]} & {*row["targets"]}
    assert all(number >= 0 for number in row["attributes"].values())
    assert "subject" in row["attributes"] and row["presets"]
    before = sorted(tmp_path.rglob("*"))
    found = {
        datasets.data_locations(row["name"], at) for at in (tmp_path, str(tmp_path))
    }
    assert len(found) == 1 and found.pop().strip()
    assert sorted(tmp_path.rglob("*")) == before  # No file was read or written.


@many
@given(
    st.one_of(st.text(max_size=12), st.sampled_from(["UCI_HAR", "mass ", "wisdm.npz"]))
)
def test_there_is_no_data_set_of_another_name(name):
    if name not in datasets.names():
        with pytest.raises(ValueError, match="dataset must be one of .*, got"):
            datasets.data_locations(name)


def test_names_are_those_that_are_listed():
    assert tuple(row["name"] for row in datasets.describe()) == datasets.names()
