"""``load`` answers a wrong choice with the right ones; listings are complete."""

import pytest

from jaxanon.datasets import describe, load, names
from jaxanon.datasets.households.households_dataset_builder import (
    Builder as Households,
)
from jaxanon.datasets.mobi_act.mobi_act_dataset_builder import Builder as MobiAct
from jaxanon.datasets.motion_sense.motion_sense_dataset_builder import (
    Builder as MotionSense,
)
from jaxanon.datasets.pecan_street.pecan_street_dataset_builder import Builder as Pecan
from jaxanon.datasets.smartwatch.smartwatch_dataset_builder import Builder as Watch
from jaxanon.datasets.tracebase.tracebase_dataset_builder import Builder as Traces
from jaxanon.datasets.uci_hapt.uci_hapt_dataset_builder import Builder as Hapt
from jaxanon.datasets.wifi_har.wifi_har_dataset_builder import Builder as Wifi


@pytest.mark.parametrize(
    "choice, message",
    [
        ({"public": "gender"}, r"public must be one of \['exercise', .* got 'gender'"),
        ({"private": "age"}, r"private must be one of \['exercise', .* got 'age'"),
        ({"private": ["side", "age"]}, r"private must be one of .* got 'age'"),
        ({"private": []}, "private must be a tuple with at least one attribute"),
        ({"private": "exercise"}, "an attribute is kept or hidden"),
        ({"preset": "mag4"}, r"preset must be one of \['raw6', .*\], got 'mag4'"),
        ({"split": "trial"}, r"split must be one of \['time block', 'subject'\], got"),
        ({"split": "window"}, r"split must be one of .*, got 'window'"),
    ],
)
def test_wrong_choices(choice, message):
    with pytest.raises(ValueError, match=message):
        load("smartwatch", **choice)


def test_an_unknown_name():
    with pytest.raises(
        ValueError, match=r"no data set 'mnist'; choose one of \['smart"
    ):
        load("mnist")


@pytest.mark.parametrize("spelling", ["time block", "time_block", "time-block"])
def test_splits_as_they_are_typed(spelling, watch_file):
    assert (
        load("smartwatch", source=watch_file, split=spelling).spec.split == "time block"
    )


def test_other_attributes_may_be_public(watch_file):
    spec = load("smartwatch", source=watch_file, public="side", private="exercise").spec
    assert (spec.public, spec.private) == ("side", ("exercise",))
    assert list(spec.classes) == ["exercise", "side", "subject"]


def test_listing():
    rows = {row["name"]: row for row in describe()}
    assert tuple(rows) == names()
    moved = ("smartwatch", "motion_sense", "uci_hapt", "mobi_act", "wifi_har")
    metered = ("households", "tracebase", "pecan_street")
    assert names() == moved + metered
    row = rows["motion_sense"]
    presets = ["mag4", "mag5", "raw12", "raw6", "acc10", "gen12"]
    assert list(row["presets"]) == presets
    assert row["attributes"]["subject"] == 24 and row["attributes"]["weight"] == 3
    assert (row["public"], row["private"]) == ("activity", ("gender",))
    assert row["splits"] == ("trial", "subject", "time block")
    assert all(row["about"] for row in rows.values())
    assert [rows[name]["rate_hz"] for name in moved] == [50, 50, 50, 200, 320]
    for name, unit in zip(metered, ("W", "W", "kW"), strict=True):
        assert (
            rows[name]["targets"] == {"power": unit} and not rows[moved[0]]["targets"]
        )
        assert rows[name]["public"] == "power" and rows[name]["rate_hz"] == 1 / 60
        assert rows[name]["attributes"]["subject"] == 0  # As many as are found.


MOVED, METERED = (Watch, MotionSense, Hapt, MobiAct, Wifi), (Households, Traces, Pecan)


@pytest.mark.parametrize("builder", [*MOVED, *METERED])
def test_tfds_finds_what_lies_beside_the_builder(builder, tmp_path):
    info = builder(data_dir=tmp_path).info
    rate = "minute" if builder in METERED else f"{builder.dataset.rate_hz:g} Hz"
    assert rate in info.description and "Licence" in info.description
    assert info.citation.startswith("@")
    assert "content.data-type.time-series" in builder.get_metadata().tags
    if builder in MOVED:
        people = builder.dataset.attributes["subject"]
        assert info.features["subject"].names == list(people)
