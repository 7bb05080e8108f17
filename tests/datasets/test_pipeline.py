"""Classes that a preset drops leave no gap in the numbering."""

import dataclasses

import numpy as np
import pytest

from jaxanon.datasets import registry
from jaxanon.datasets.description import Dataset, Preset
from jaxanon.datasets.pipeline import cut_and_split
from jaxanon.datasets.recordings import Recording


def test_a_dropped_class_counts_for_the_statistics_only():
    dataset = registry.find("uci_hapt")
    preset = dataclasses.replace(
        dataset.presets["basic6"],
        **{"keep": ("sitting", "walking", "laying"), "drop": ("walking",)},
        **{"length": 4, "stride": 4},
    )
    activities = dataset.attributes["activity"]
    parts = [
        Recording(
            np.full((40, 6), activities.index(name), np.float32),
            trial=1,
            labels={"activity": activities.index(name), "subject": subject},
        )
        for subject in (0, 1)
        for name in ("walking", "sitting", "laying")
    ]
    classes, mean, _, train, test = cut_and_split(
        dataset, preset, parts, "time_block", 0
    )
    assert classes["activity"] == ("sitting", "laying")
    for side in (train, test):  # Every row holds its activity's number.
        expected = np.array([3, 5])[side.labels["activity"]]
        np.testing.assert_array_equal(side.windows[:, 0, 0], expected)
        assert set(side.labels["activity"].tolist()) == {0, 1}
    np.testing.assert_allclose(mean, [(0 + 3 + 5) / 3] * 6)


def test_whoever_is_new_only_tests_and_open_names_are_numbered_as_they_come():
    preset = Preset(
        about="",
        channels=("x",),
        units=("W",),
        length=2,
        stride=2,
        keep=("here", "there"),
        new=("there",),
        arrange=lambda parts: parts[::-1],
    )
    dataset = Dataset(
        name="made up",
        about="",
        rate_hz=1.0,
        attributes={"place": ("there", "here", "nowhere"), "subject": ()},
        private=("subject",),
        presets={"only": preset},
        splits=("time_block",),
        builder="",
        locate=lambda source, cache: (),
        test_fraction=0.5,
    )
    parts = [
        Recording(
            np.arange(12.0)[:, None] + 100 * place, 0, {"place": place, "subject": who}
        )
        for place, who in ((0, "c"), (1, "a"), (1, "b"), (2, "d"))
    ]
    classes, mean, _, train, test = cut_and_split(
        dataset, preset, parts, "time_block", 0
    )
    assert classes == {"place": ("here", "there"), "subject": ("b", "a", "c")}
    assert train.labels["subject"].tolist() == [0, 0, 1, 1]  # 12 / 2 less a window.
    assert test.labels["subject"].tolist() == [0] * 3 + [1] * 3 + [2] * 6
    assert mean == (101.5,)  # Rows 100 to 103, without the new people's rows.
    with pytest.raises(
        ValueError, match=r"with place in \('there',\), the test classes of this pr"
    ):
        cut_and_split(dataset, preset, parts[1:], "time_block", 0)
