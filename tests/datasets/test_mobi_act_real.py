"""The complete MobiAct, if present, has the published counts."""

import pathlib

import numpy as np
import pytest

from jaxanon.datasets import load

PLACE = pathlib.Path(__file__).parents[3] / "shared/data/mobi_act"
pytestmark = pytest.mark.skipif(
    not PLACE.exists(), reason="../shared/data/mobi_act is absent"
)


def test_the_released_windows_are_456833():
    # SYSTEMS.md, section 1.2.
    data = load("mobi_act", source=PLACE, preset="official", split="official")
    assert [len(side.windows) for side in data[1:]] == [365_452, 91_381]
    assert data.spec.num_classes("subject") == 36


def test_the_corrected_windows_are_of_36_people_in_four_activities():
    data = load("mobi_act", source=PLACE, private=["gender", "weight", "age"])
    for side in data[1:]:
        assert set(side.labels["activity"].tolist()) == {0, 1, 2, 3}
        assert len(np.unique(side.labels["subject"])) == 36
    # At rest, gravity alone: 9.81 m/s^2.
    standing = data.train.windows[data.train.labels["activity"] == 1]
    assert 9.5 < np.median(np.linalg.norm(standing[..., :3], axis=-1)) < 10.1
