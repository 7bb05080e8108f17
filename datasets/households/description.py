"""Description of the five homes: columns and presets."""

from jaxanon.datasets import energy
from jaxanon.datasets.description import Dataset
from jaxanon.datasets.households.location import FILES, locate

SURVEYS = {"REFIT": "REFIT", "UKDALE": "UK-DALE", "IDEAL": "IDEAL"}  # By file name.
# Columns of the files in stored order, after the minute.
COLUMNS = (
    *("Aggregate", "Dishwasher", "WashingMachine"),  # Every home has these.
    *("Kettle", "Microwave", "Shower"),
)
CHANNELS = {"aggregate": 1, "dishwasher": 2, "washing_machine": 3}


def _preset(about, every, **more):
    return energy.hour_ahead(about, every, CHANNELS, unit="W", **more)


DATASET = Dataset(
    name="households",
    about="5 British homes, total power and 2 appliances, by the minute",
    rate_hz=1 / 60,
    attributes={"survey": tuple(SURVEYS.values()), "subject": ()},
    private=("subject",),
    presets={
        "day96": _preset("24 h of 15-minute means, then the next hour's mean", 15),
        "day24": _preset("24 h of hourly means, then the next hour's mean", 60),
        "months24": _preset(
            "like day24, with each month of a home as a client",
            60,
            arrange=energy.by_month,
        ),
    },
    splits=("time_block", "subject"),
    builder="jaxanon.datasets.households.households_dataset_builder:Builder",
    locate=locate,
    files=FILES,
    test_fraction=0.2,
)
