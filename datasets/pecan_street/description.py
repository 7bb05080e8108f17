"""Pecan Street: its circuits, its regions and the ways in which they are cut."""

from jaxanon.datasets import energy
from jaxanon.datasets.description import Dataset
from jaxanon.datasets.pecan_street.location import FILES, locate

# Region -> the zone of its clocks, what files of it are called, its state.
REGIONS = {
    "texas": ("America/Chicago", ("texas", "austin"), "Texas"),
    "new_york": ("America/New_York", ("new_york", "newyork"), "New York"),
    "california": ("America/Los_Angeles", ("california",), "California"),
}
# Heating and cooling, furnace, dishwasher, dryer, refrigerator, oven: PFDRL's devices.
CIRCUITS = (
    *("air1", "furnace1", "dishwasher1"),
    *("drye1", "refrigerator1", "oven1"),
)
USE = {"use": 1}
EVERYWHERE = tuple(REGIONS)


def _preset(about, every, keep, channels=USE, **more):
    return energy.hour_ahead(about, every, channels, unit="kW", keep=keep, **more)


DATASET = Dataset(
    name="pecan_street",
    about="homes in Texas, New York and California, their power by the minute",
    rate_hz=1 / 60,
    attributes={"region": EVERYWHERE, "subject": ()},
    private=("subject",),
    presets={
        "texas": _preset(
            "Texas, 24 h of 15-minute means, then the next hour's mean", 15, ("texas",)
        ),
        "texas24": _preset("the same of hourly means", 60, ("texas",)),
        "new_users": _preset(
            "as texas, and tested with homes in New York, too, whom nobody knows",
            15,
            ("texas", "new_york"),
            new=("new_york",),
        ),
        "new_users24": _preset(
            "the same of hourly means", 60, ("texas", "new_york"), new=("new_york",)
        ),
        "everywhere24": _preset("as texas24, of all regions", 60, ()),
        "circuits24": _preset(
            "as everywhere24, with a channel for each of 6 circuits",
            60,
            (),
            USE | {name: 2 + place for place, name in enumerate(CIRCUITS)},
        ),
    },
    splits=("time block", "subject"),
    builder="jaxanon.datasets.pecan_street.pecan_street_dataset_builder:Builder",
    locate=locate,
    files=FILES,
    test_fraction=0.2,
)
