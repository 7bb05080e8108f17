"""Custom files are read as declared; invalid ones raise an error with the reason."""

import numpy as np
import pytest

from jaxanon.datasets import load

CHOICE = {"public": "act", "private": "subject"}


@pytest.fixture
def saved(tmp_path):
    """Returns a function that saves arrays and returns the path."""

    def save(arrays, **changes):
        arrays = {k: v for k, v in (arrays | changes).items() if v is not None}
        np.savez(tmp_path / "mine.npz", **arrays)
        return tmp_path / "mine.npz"

    return save


def test_the_least_that_a_file_can_hold(own, saved):
    data = load(saved(own), **CHOICE)
    spec = data.spec
    assert (spec.name, spec.preset, spec.split) == ("mine", "file", "time_block")
    assert (spec.channels, spec.units, spec.rate_hz) == (("0", "1"), ("", ""), 1.0)
    assert (spec.time, spec.private) == (8, ("subject",))
    # Named classes keep their numbers; subjects 3 and 7 become 0 and 1.
    assert spec.classes == {"act": ("sit", "walk"), "subject": ("3", "7")}
    assert data.train.labels["subject"].dtype == np.int32
    # 30 % of 10 windows per person and act; none overlap, so none is dropped.
    assert [len(side.windows) for side in data[1:]] == [4 * 7, 4 * 3]
    np.testing.assert_array_equal(data.test.windows[:3], own["windows"][7:10])
    np.testing.assert_array_equal(data.test.labels["act"], np.repeat([0, 1, 0, 1], 3))
    rows = data.train.windows.reshape(-1, 2).astype(float)
    np.testing.assert_allclose(spec.mean, rows.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(spec.std, rows.std(axis=0), rtol=1e-9)


def test_all_that_a_file_can_say(own, saved):
    said = {
        "split": np.tile([0, 1], 20),
        "channels": np.array(["x", "y"]),
        "units": np.array(["g", "rad/s"]),
        "rate_hz": np.array(20.0),
        "mean": np.array([0.5, 0.25]),
        "std": np.array([2.0, 4.0]),
        "name": np.array("watch"),
        "preset": np.array("fine"),
        "public": np.array("act"),
        "private": np.array(["subject"]),
    }
    data = load(saved(own, **said))
    spec = data.spec
    assert (spec.name, spec.preset, spec.split) == ("watch", "fine", "given")
    assert (spec.channels, spec.units) == (("x", "y"), ("g", "rad/s"))
    assert (spec.rate_hz, spec.mean, spec.std) == (20.0, (0.5, 0.25), (2.0, 4.0))
    assert (spec.public, spec.private) == ("act", ("subject",))
    np.testing.assert_array_equal(data.test.windows, own["windows"][1::2])
    # Another split changes the training windows and so the statistics.
    other = load(saved(own, **said), split="subject")
    assert other.spec.mean != spec.mean and other.spec.split == "subject"


def test_split_by_subject(own, saved):
    sides = [load(saved(own), split="subject", **CHOICE, seed=s)[1:] for s in range(6)]
    tested = set()
    for train, test in sides:
        both = {*train.labels["subject"]}, {*test.labels["subject"]}
        assert len(both[0]) == len(both[1]) == 1 and both[0] != both[1]
        tested |= both[1]
    assert tested == {0, 1}


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"windows": None},
            r"must hold 'windows', .*got the arrays \['act', 'act_names'",
        ),
        (
            {"windows": np.ones((40, 8))},
            r"must be a non-empty float.*, got shape \(40, 8\); for",
        ),
        ({"windows": np.ones((0, 8, 2))}, r"non-empty float.*, got shape \(0, 8, 2\)"),
        (
            {"windows": np.full((40, 8, 2), "a")},
            "windows must be numbers, got dtype <U1",
        ),
        ({"subject": None}, "must hold 'subject', .*got the attributes .*'act'"),
        (
            {"subject": np.arange(39)},
            "subject must have one entry for each of the 40 windows, got 39",
        ),
        ({"act": np.zeros(40)}, r"act must be int\[40\], one .* got float64\[40\]"),
        (
            {"sex_names": np.array(["f"])},
            "sex_names must belong to an attribute of the file, got no array 'sex'",
        ),
        ({"act_names": np.array(["a"])}, r"act must be in 0..0, .* got 0..1"),
        ({"act_names": np.array(["a", "a"])}, "act_names must be distinct"),
        (
            {"act_names": np.array(["a", ""])},
            "act_names must be distinct and not empty",
        ),
        ({"channels": np.array(["x", "x"])}, "channels must be distinct"),
        ({"act": np.repeat([-1, 0], 20)}, r"act must be in 0..1, .* got -1..0"),
        (
            {"subject": np.repeat([0, 2], 20), "subject_names": np.array(list("abc"))},
            r"subject_names must list only .*, got also \['b'\]",
        ),
        ({"split": np.repeat([0, 2], 20)}, r"split must be 0 .* got also \[2\]"),
        ({"split": np.zeros(39, int)}, "split must have one entry for each of the 40"),
        ({"split": np.zeros(40)}, r"split must be int\[40\]"),
        (
            {"split": np.zeros(40, int)},
            "split='given' must give test windows, got none out of 40",
        ),
        (
            {"split": np.ones(40, int)},
            "split='given' must give training windows, got none out of 40",
        ),
        ({"channels": np.array(["x"])}, r"channels must have one entry .* 2 channels"),
        ({"units": np.array(["g"])}, r"units must have one entry .* shape \(1,\)"),
        ({"rate_hz": np.array(-5.0)}, "rate_hz must be > 0, got -5.0"),
        ({"channels": np.array(["x", None])}, "holds Python objects"),
    ],
)
def test_says_what_is_wrong(own, saved, changes, message):
    with pytest.raises(ValueError, match=message):
        load(saved(own, **changes), **CHOICE)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_says_which_window_is_not_finite(own, saved, value):
    own["windows"][17, 3, 1] = value
    with pytest.raises(ValueError, match=r"in 1 of 40, first in window 17; drop"):
        load(saved(own), **CHOICE)


def test_a_constant_channel_is_refused(own, saved):
    own["windows"][..., 1] = 4.0
    with pytest.raises(
        ValueError, match=r"channel '1' must .* got mean 4.0 and std 0.0"
    ):
        load(saved(own), **CHOICE)


def test_attributes_must_be_chosen_from_the_file(own, saved):
    with pytest.raises(
        ValueError, match=r"public \(--public\) must be given.*\['act', 'subject'\]"
    ):
        load(saved(own), private="subject")
    with pytest.raises(
        ValueError,
        match="private .--private. must be given .*hide .unused by learners",
    ):
        load(saved(own), public="act")
    with pytest.raises(
        ValueError, match=r"public must be one of \['act', .* got 'sex'"
    ):
        load(saved(own), public="sex", private="subject")
    with pytest.raises(
        ValueError, match=r"private must be one of \['act', .* got 'sex'"
    ):
        load(saved(own), public="act", private=["subject", "sex"])


def test_splits_that_a_file_cannot_have(own, saved):
    with pytest.raises(ValueError, match="split='given' requires an array split"):
        load(saved(own), split="given", **CHOICE)
    with pytest.raises(ValueError, match=r"split must be one of .* got 'window'"):
        load(saved(own), split="window", **CHOICE)
    with pytest.raises(ValueError, match="preset must be None for an .npz file"):
        load(saved(own), preset="raw", **CHOICE)
    with pytest.raises(ValueError, match="source must be None for an .npz file"):
        load(saved(own), source="there", **CHOICE)
    one = np.zeros(40, int)
    with pytest.raises(ValueError, match="requires at least 2 subjects"):
        load(saved(own, subject=one), split="subject", public="act", private="act")


def test_a_file_that_is_damaged_or_absent(own, saved, tmp_path):
    path = saved(own)
    whole = path.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 10):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"mine.npz' is (truncated|damaged)"):
            load(path, **CHOICE)
    flipped = bytearray(whole)
    flipped[300] ^= 255  # Inside the windows: the zip checksum detects it.
    path.write_bytes(flipped)
    with pytest.raises(ValueError, match=r"mine.npz' is truncated or not an .npz file"):
        load(path, **CHOICE)
    with pytest.raises(FileNotFoundError, match=r"gone.npz' does not exist"):
        load(tmp_path / "gone.npz", **CHOICE)
