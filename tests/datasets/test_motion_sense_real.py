"""The complete MotionSense has the published counts and constants."""

import dataclasses
import pathlib

import numpy as np
import pytest

from jaxanon.datasets import load, registry, store
from jaxanon.datasets.motion_sense.location import COMPLETE, fingerprint
from jaxanon.datasets.pipeline import cut_and_split, divide, select

ARCHIVE = pathlib.Path(__file__).parents[3] / "shared/data/motion_sense/motionsense.zip"
pytestmark = pytest.mark.skipif(
    not ARCHIVE.is_file(),
    reason="../shared/data/motion_sense/motionsense.zip is absent",
)

# SYSTEMS.md, section 1.1: rows, mean, std, windows by activity (dws ups wlk jog std).
PUBLISHED = {
    "mag4": (
        (621_973, 145_687),
        (2.20896278, 1.19815844),
        (1.42146386, 0.70139403),
        (60_059, (10_325, 12_315, 27_293, 10_126)),
        (13_344, (1_943, 2_494, 6_222, 2_685)),
    ),
    "mag5": (
        (846_789, 227_298),
        (1.65126541, 1.14737672),
        (1.53328895, 0.60708026),
        (82_235, (10_321, 12_319, 27_290, 10_129, 22_176)),
        (21_210, (1_947, 2_495, 6_225, 2_686, 7_857)),
    ),
}


@pytest.fixture(scope="module")
def recordings(cache):
    return store.read(registry.find("motion_sense"), ARCHIVE, cache)


def test_every_row_is_there(recordings):
    assert len(recordings) == 360
    assert sum(len(r.rows) for r in recordings) == 1_412_865
    assert fingerprint(ARCHIVE) == COMPLETE


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_counts_and_constants(recordings, name):
    rows, mean, std, train, test = PUBLISHED[name]
    dataset = registry.find("motion_sense")
    preset = dataclasses.replace(dataset.presets[name], drop=())
    parts, _ = select(dataset, preset, recordings)
    sides = divide(dataset, preset, parts, "trial", seed=0)
    assert tuple(sum(len(r.rows) for r in side) for side in sides) == rows
    got = cut_and_split(dataset, preset, recordings, "trial", seed=0)
    # Eight decimals are published, so the tolerance is half of the ninth.
    np.testing.assert_allclose(got[1], mean, rtol=0, atol=5.1e-9)
    np.testing.assert_allclose(got[2], std, rtol=0, atol=5.1e-9)
    for side, (count, by_activity) in zip(got[3:], (train, test), strict=True):
        assert len(side.windows) == count
        assert tuple(np.bincount(side.labels["activity"])) == by_activity


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_load_leaves_standing_out(name):
    *_, std, train, test = PUBLISHED[name]
    data = load("motion_sense", preset=name, source=ARCHIVE)
    assert data.spec.classes["activity"] == ("dws", "ups", "wlk", "jog")
    np.testing.assert_allclose(data.spec.std, std, rtol=0, atol=5.1e-9)
    for side, (_, by_activity) in zip(data[1:], (train, test), strict=True):
        assert tuple(np.bincount(side.labels["activity"])) == by_activity[:4]
        assert len(np.unique(side.labels["subject"])) == 24


def test_a_constant_guess_of_male_is_right_in_57_percent():
    test = load("motion_sense", source=ARCHIVE).test
    assert round(100 * float(np.mean(test.labels["gender"] == 1)), 1) == 57.0


def test_windows_are_those_of_dysan():
    data = load("motion_sense", preset="raw6", source=ARCHIVE)
    counts = [np.bincount(part.labels["activity"]).tolist() for part in data[1:]]
    assert counts == [[1_667, 1_982, 4_359, 1_621], [321, 410, 1_001, 441]]
    assert [len(part.windows) for part in data[1:]] == [9_629, 2_173]
    men = [round(float(part.labels["gender"].mean()), 3) for part in data[1:]]
    assert men == [0.573, 0.570]
