"""The available parts of WISDM have the counts of their notes."""

import pathlib

import numpy as np
import pytest

from jaxanon.datasets import load, registry, store

PLACE = pathlib.Path(__file__).parents[3] / "shared/data/wisdm"
pytestmark = pytest.mark.skipif(
    not PLACE.exists(), reason="../shared/data/wisdm is absent"
)


def test_both_sensors_of_8_people(cache):
    recordings = store.read(registry.find("wisdm"), PLACE, cache)
    # Neither of the 8 paused for half a second: 18 tasks of each, at least 3 minutes.
    assert len(recordings) == 8 * 18
    assert min(len(r.rows) for r in recordings) >= 3540
    data = load("wisdm", source=PLACE)
    assert data.spec.num_classes("activity") == 12
    assert data.spec.num_classes("subject") == 8
    for side in data[1:]:
        assert len(np.unique(side.labels["subject"] * 18 + side.labels["task"])) == 120
    # At rest, gravity alone: 9.81 m/s^2.
    sitting = data.train.windows[data.train.labels["activity"] == 3]
    assert 9.6 < np.median(np.linalg.norm(sitting[..., :3], axis=-1)) < 10.0


def test_the_accelerometers_of_51_people(cache):
    origin = registry.find("wisdm").presets["watch-accel"].origin
    recordings = store.read(origin, PLACE, cache)
    # 744,000 rows (NOTES.md), less the 14,400 that one file repeats; two of the 306
    # tasks are missing.
    assert sum(len(r.rows) for r in recordings) == 744_000 - 14_400 == 304 * 2400
    data = load("wisdm", source=PLACE, preset="watch-accel")
    assert data.spec.num_classes("subject") == 51
    # 1720 of 2400 rows train, in 16 windows, and 480 test, in 3.
    assert [len(side.windows) for side in data[1:]] == [304 * 16, 304 * 3]
    assert np.bincount(data.test.labels["activity"]).tolist() == [
        *(51 * 3, 50 * 3, 50 * 3),
        *(51 * 3, 51 * 3, 51 * 3),
    ]
    for user, task in (("1616", "jogging"), ("1642", "stairs")):
        who = data.spec.classes["subject"].index(user)
        done = data.train.labels["task"][data.train.labels["subject"] == who]
        assert data.spec.classes["task"].index(task) not in done
