"""Regression targets of a custom file: read, split, written again, rejected."""

import numpy as np
import pytest

from jaxanon.datasets import Spec, export, hold_out_subjects, imbalance, load


@pytest.fixture
def watts(own):
    """Returns the valid file with the power that continues its second channel."""
    said = {"targets": np.array(["power"]), "target_units": np.array(["W"])}
    said |= {"target_channels": np.array(["1"]), "target_samples": np.array([2])}
    power = np.linspace(10, 49, 40)
    return own | said | {"power": power, "public": "power", "private": ["subject"]}


@pytest.fixture
def saved(tmp_path):
    """Returns a function that saves arrays and returns the path."""

    def save(arrays, **changes):
        arrays = {k: v for k, v in (arrays | changes).items() if v is not None}
        np.savez(tmp_path / "mine.npz", **arrays)
        return tmp_path / "mine.npz"

    return save


def test_a_target_goes_with_its_windows(watts, saved):
    data = load(saved(watts))
    spec = data.spec
    assert spec.classes == {"act": ("sit", "walk"), "subject": ("3", "7")}
    # Same as without targets: the last 3 of 10 windows per act and subject test.
    place = np.arange(40) % 10 >= 7
    np.testing.assert_array_equal(
        data.test.labels["power"], np.float32(10 + np.arange(40))[place]
    )
    assert data.train.labels["power"].dtype == np.float32
    told = spec.target
    assert (told.unit, told.channel, told.samples) == ("W", "1", 2)
    trained = 10.0 + np.arange(40)[~place]
    assert told.mean == pytest.approx(trained.mean())
    assert told.std == pytest.approx(trained.std())
    assert Spec.from_json(spec.to_json()) == spec
    assert load(saved(watts), public="act").spec.target is None


def test_a_file_need_not_say_more_than_the_name(watts, saved):
    least = dict.fromkeys(("target_units", "target_channels", "target_samples"))
    told = load(saved(watts, **least, power=np.arange(40))).spec.target
    assert (told.unit, told.channel, told.samples) == ("", "", 1)


@pytest.mark.parametrize("split", ["time_block", "subject"])
def test_what_is_exported_comes_back(watts, saved, tmp_path, split):
    data = load(saved(watts), split=split)
    again = load(export(data, "all", tmp_path / "all.npz"))
    assert again.spec.targets == data.spec.targets and again.spec.split == "given"
    assert again.spec.public == "power"
    for one, other in zip(again[1:], data[1:], strict=True):
        np.testing.assert_array_equal(one.labels["power"], other.labels["power"])
    test = load(export(data, "test", tmp_path / "test.npz"), private="act")
    # The exported file has its own statistics.
    assert test.spec.target.mean != data.spec.target.mean


def test_statistics_are_of_those_who_train(watts, saved):
    data = load(saved(watts))
    held = hold_out_subjects(data, 0.5, seed=0)
    power = held.train.labels["power"].astype(float)
    assert held.spec.target.mean == pytest.approx(power.mean())
    assert held.spec.target.std == pytest.approx(power.std())
    with pytest.raises(
        ValueError, match="must have classes to skew, got the numeric 'power'"
    ):
        imbalance(data.train, "power", 2.0, seed=0)


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"power": None},
            r"targets must name arrays float.*, got 'power'",
        ),
        ({"targets": ["subject"]}, "targets must name arrays .*, got 'subject'"),
        ({"power": np.ones(39)}, r"target power must be float\[40\], .*float64\[39\]"),
        ({"power": np.full(40, "a")}, r"target power must be float\[40\], .* got <U1"),
        ({"power": np.r_[np.nan, np.ones(39)]}, "power must be finite, .* in 1 of 40"),
        ({"power": np.ones(40)}, "got mean 1.0 and std 0.0; drop constant"),
        (
            {"target_units": ["W", "V"]},
            "target_units must have .* each of the 1 targets",
        ),
        ({"target_channels": ["9"]}, "must have a channel in .*, got '9'"),
        ({"private": ["power"]}, "private must be one of .*, got 'power'"),
        ({"public": None}, r"from \['act', 'subject', 'power'\]"),
        (
            {"targets": None},
            "power must be int.* list a number to predict in targets",
        ),
    ],
)
def test_says_what_is_wrong(watts, saved, changes, message):
    with pytest.raises(ValueError, match=message):
        load(saved(watts, **changes))
