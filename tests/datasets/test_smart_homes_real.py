"""The seven homes, if present, have the counts of their authors."""

import pathlib

import numpy as np
import pytest

from jaxanon.datasets import load, sources
from jaxanon.datasets.smart_homes import smart_homes_dataset_builder as builder
from jaxanon.datasets.smart_homes.location import TABLES
from jaxanon.datasets.smart_homes.naming import TYPES, type_of

PLACE = pathlib.Path(__file__).parents[3] / "shared/data/smart_homes"
pytestmark = pytest.mark.skipif(
    not PLACE.exists(), reason="../shared/data/smart_homes is absent"
)


@pytest.fixture(scope="module")
def source():
    return (sources.find("smart_homes", PLACE, TABLES),)


def test_events_and_activities_are_as_many_as_counted(source):
    # From NOTES.md in the data folder; A, B and C without unnamed sensors.
    homes = list(builder.homes(source))
    assert [len(a.start) for _, a in homes] == [259, 112, 234, 295, 208, 248, 493]
    assert [len(e.start) for e, _ in homes][3:] == [2772, 1962, 409, 2334]
    days = [np.ptp(a.end) / 86400 for _, a in homes]
    np.testing.assert_allclose(days[:5], [25.8, 13.9, 18.1, 15.6, 15.8], atol=0.9)


def test_every_type_is_in_three_homes_at_least(source):
    # A split by home drops some, and no channel may be constant.
    homes = [set(events.kind.tolist()) for events, _ in builder.homes(source)]
    counts = [sum(kind in home for home in homes) for kind in range(len(TYPES))]
    assert min(counts) >= 3, dict(zip(TYPES, counts, strict=True))


def test_every_sensor_that_has_a_name_has_a_type(source):
    for match, content in sources.read_each(source, TABLES):
        if match.group(2) == "sensor_names":
            for line in content.decode().splitlines():
                type_of(match.group(1), line.partition("\t")[2])


def test_nights_are_nights_and_beds_are_slept_in(source):
    data = load("smart_homes", source=PLACE)
    side, spec = data.train, data.spec
    column = spec.channels.index
    label = side.labels["activity"]
    for home in ("Ordonez A", "Ordonez B"):  # Beds of B and C stay on for days.
        mine = side.labels["subject"] == spec.classes["subject"].index(home)
        asleep = mine & (label == spec.classes["activity"].index("sleep"))
        out = mine & (label == spec.classes["activity"].index("leave"))
        bed = side.windows[:, :, column("bed on")].mean(axis=1)
        assert bed[asleep].mean() > 3 * bed[out].mean()
    asleep = label == spec.classes["activity"].index("sleep")
    # From midnight to ten, both are closer to their night values than to the day's.
    for channel in ("sine of day", "cosine of day"):
        clock = side.windows[:, 0, column(channel)]
        assert clock[asleep].mean() > 0.1 > 0 > clock[~asleep].mean()
