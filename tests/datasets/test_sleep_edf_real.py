"""The published features of Sleep-EDF have the counts of their notes."""

import pathlib

import numpy as np
import pytest

from jaxanon.datasets import load, registry, store

PLACE = pathlib.Path(__file__).parents[3] / "shared/data/sleep_edf"
pytestmark = pytest.mark.skipif(
    not PLACE.exists(), reason="../shared/data/sleep_edf is absent"
)


def test_twenty_nights_of_ten_people(cache):
    recordings = store.read(registry.find("sleep_edf"), PLACE, cache)
    assert sum(len(r.rows) for r in recordings) == 52_647
    nights = {(r.labels["subject"], r.trial) for r in recordings}
    assert nights == {(who, night) for who in range(10) for night in (1, 2)}
    data = load("sleep_edf", source=PLACE, preset="whole")
    # No window ends in the first nine epochs of a night.
    assert sum(len(side.windows) for side in data[1:]) == 52_647 - 20 * 9
    data = load("sleep_edf", source=PLACE)
    for side in data[1:]:
        assert set(side.labels["subject"].tolist()) == set(range(10))
        assert set(side.labels["stage"].tolist()) == set(range(5))
    first = data.train.labels["subject"] == 1  # The night is truncated.
    assert 4 not in data.train.labels["stage"][first]


def test_the_channels_are_what_their_names_say():
    data = load("sleep_edf", source=PLACE, preset="whole")
    window = data.train.windows[0].astype(np.float64)
    now, change, mean, std = np.split(window, 4, axis=1)
    np.testing.assert_allclose(change[1:], np.diff(now, axis=0), atol=1e-5)
    three = np.stack([now[:-2], now[1:-1], now[2:]])
    np.testing.assert_allclose(mean[1:-1], three.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(std[1:-1], three.std(axis=0), atol=1e-5)
    theta, alpha, ratio = now[:, 1], now[:, 2], now[:, 5]
    assert data.spec.channels[5] == "Fpz-Cz.theta/alpha"
    np.testing.assert_allclose(ratio, theta / alpha, rtol=1e-5)
