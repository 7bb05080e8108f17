"""Description of Pecan Street: circuits, regions and presets."""

from jaxanon.datasets import energy
from jaxanon.datasets.description import Dataset
from jaxanon.datasets.pecan_street.location import FILES, locate

# Region -> time zone, names in file names, state.
REGIONS = {
    "texas": ("America/Chicago", ("texas", "austin"), "Texas"),
    "new_york": ("America/New_York", ("new_york", "newyork"), "New York"),
    "california": ("America/Los_Angeles", ("california",), "California"),
}
# PFDRL's devices: air conditioning, furnace, dishwasher, dryer, refrigerator, oven.
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
    about="homes in Texas, New York and California, power by the minute",
    rate_hz=1 / 60,
    attributes={"region": EVERYWHERE, "subject": ()},
    private=("subject",),
    presets={
        "texas": _preset(
            "Texas, 24 h of 15-minute means, then the next hour's mean", 15, ("texas",)
        ),
        "texas24": _preset(
            "Texas, 24 h of hourly means, then the next hour's mean", 60, ("texas",)
        ),
        "new_users": _preset(
            "like texas, also tested on unseen homes in New York",
            15,
            ("texas", "new_york"),
            new=("new_york",),
        ),
        "new_users24": _preset(
            "like texas24, also tested on unseen homes in New York",
            60,
            ("texas", "new_york"),
            new=("new_york",),
        ),
        "everywhere24": _preset("like texas24, all regions", 60, ()),
        "circuits24": _preset(
            "like everywhere24, with a channel for each of 6 circuits",
            60,
            (),
            USE | {name: 2 + index for index, name in enumerate(CIRCUITS)},
        ),
    },
    splits=("time_block", "subject"),
    builder="jaxanon.datasets.pecan_street.pecan_street_dataset_builder:Builder",
    locate=locate,
    files=FILES,
    test_fraction=0.2,
)
