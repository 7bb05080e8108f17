"""Classes that a preset drops leave no gap in the numbering."""

import dataclasses

import numpy as np

from jaxanon.datasets import registry
from jaxanon.datasets.pipeline import windowed
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
    classes, mean, _, train, test = windowed(dataset, preset, parts, "time block", 0)
    assert classes["activity"] == ("sitting", "laying")
    for side in (train, test):  # Every row holds the number of its activity.
        expected = np.array([3, 5])[side.labels["activity"]]
        np.testing.assert_array_equal(side.windows[:, 0, 0], expected)
        assert set(side.labels["activity"].tolist()) == {0, 1}
    np.testing.assert_allclose(mean, [(0 + 3 + 5) / 3] * 6)
