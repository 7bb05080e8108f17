"""``load`` lists valid choices in its errors; listings are complete."""

import pytest

from jaxanon.datasets import describe, load, names
from jaxanon.datasets.casas.casas_dataset_builder import Builder as Casas
from jaxanon.datasets.cifar10.cifar10_dataset_builder import Builder as Cifar10
from jaxanon.datasets.households.households_dataset_builder import (
    Builder as Households,
)
from jaxanon.datasets.mass.mass_dataset_builder import Builder as Mass
from jaxanon.datasets.mobi_act.mobi_act_dataset_builder import Builder as MobiAct
from jaxanon.datasets.motion_sense.motion_sense_dataset_builder import (
    Builder as MotionSense,
)
from jaxanon.datasets.occupancy.occupancy_dataset_builder import Builder as Occupancy
from jaxanon.datasets.pecan_street.pecan_street_dataset_builder import Builder as Pecan
from jaxanon.datasets.room_climate.room_climate_dataset_builder import Builder as Rooms
from jaxanon.datasets.sleep_edf.sleep_edf_dataset_builder import Builder as SleepEdf
from jaxanon.datasets.smart_homes.smart_homes_dataset_builder import Builder as Homes
from jaxanon.datasets.smartwatch.smartwatch_dataset_builder import Builder as Watch
from jaxanon.datasets.tracebase.tracebase_dataset_builder import Builder as Traces
from jaxanon.datasets.uci_hapt.uci_hapt_dataset_builder import Builder as Hapt
from jaxanon.datasets.uci_har.uci_har_dataset_builder import Builder as Har
from jaxanon.datasets.wifi_har.wifi_har_dataset_builder import Builder as Wifi
from jaxanon.datasets.wisdm.wisdm_dataset_builder import AccelBuilder as WisdmAccel
from jaxanon.datasets.wisdm.wisdm_dataset_builder import Builder as Wisdm

METERED = (Households, Traces, Pecan)
COUNTED = (Casas, Cifar10)  # Their samples are events and pixels, without a rate.
BUILDERS = (
    *(Watch, MotionSense, Hapt, MobiAct, Wifi, Wisdm, Har, SleepEdf, Mass, Homes),
    *(Rooms, Occupancy),
    *COUNTED,
    *METERED,
)


@pytest.mark.parametrize(
    "choice, message",
    [
        ({"public": "gender"}, r"public must be one of \['exercise', .* got 'gender'"),
        ({"private": "age"}, r"private must be one of \['exercise', .* got 'age'"),
        ({"private": ["side", "age"]}, r"private must be one of .* got 'age'"),
        ({"private": []}, "private must be a tuple with at least one attribute"),
        ({"private": "exercise"}, "must not repeat an attribute or contain"),
        ({"preset": "mag4"}, r"preset must be one of \['raw6', .*\], got 'mag4'"),
        ({"split": "trial"}, r"split must be one of \['time_block', 'subject'\], got"),
        ({"split": "window"}, r"split must be one of .*, got 'window'"),
    ],
)
def test_wrong_choices(choice, message):
    with pytest.raises(ValueError, match=message):
        load("smartwatch", **choice)


def test_an_unknown_name():
    with pytest.raises(ValueError, match=r"dataset must be one of \['smart"):
        load("mnist")


@pytest.mark.parametrize("spelling", ["time block", "time_block", "time-block"])
def test_splits_as_they_are_typed(spelling, watch_file):
    assert (
        load("smartwatch", source=watch_file, split=spelling).spec.split == "time_block"
    )


def test_other_attributes_may_be_public(watch_file):
    spec = load("smartwatch", source=watch_file, public="side", private="exercise").spec
    assert (spec.public, spec.private) == ("side", ("exercise",))
    assert list(spec.classes) == ["exercise", "side", "subject"]


def test_listing():
    rows = {row["name"]: row for row in describe()}
    assert tuple(rows) == names()
    assert names() == tuple(builder.dataset.name for builder in BUILDERS)
    row = rows["motion_sense"]
    presets = ["mag4", "mag5", "raw12", "raw6", "acc10", "gen12"]
    assert list(row["presets"]) == presets
    assert row["attributes"]["subject"] == 24 and row["attributes"]["weight"] == 3
    assert (row["public"], row["private"]) == ("activity", ("gender",))
    assert row["splits"] == ("trial", "subject", "time_block")
    assert all(row["about"] for row in rows.values())
    rates = [50, 50, 50, 200, 320, 20, 50, 1 / 30, 100, pytest.approx(1 / 60)]
    rates += [1 / 4, pytest.approx(1 / 30), 1, 1]
    assert [row["rate_hz"] for row in rows.values()][:-3] == rates
    for builder, unit in zip(METERED, ("W", "W", "kW"), strict=True):
        row = rows[builder.dataset.name]
        assert row["targets"] == {"power": unit} and row["public"] == "power"
        assert row["rate_hz"] == 1 / 60
        assert row["attributes"]["subject"] == 0  # All that are found.


@pytest.mark.parametrize("builder", [*BUILDERS, WisdmAccel])
def test_tfds_finds_what_lies_beside_the_builder(builder, tmp_path):
    info = builder(data_dir=tmp_path).info
    rate = f"{builder.dataset.rate_hz:g} Hz"
    rate = "minute" if builder in METERED else rate
    assert rate in info.description or builder in COUNTED
    assert "Licence" in info.description
    assert info.citation.startswith("@")
    kind = "image" if builder is Cifar10 else "time-series"
    assert f"content.data-type.{kind}" in builder.get_metadata().tags
    if people := builder.dataset.attributes["subject"]:
        assert info.features["subject"].names == list(people)
