"""Description of Tracebase: composed homes and presets."""

import functools

import numpy as np

from jaxanon.datasets import energy
from jaxanon.datasets.description import Dataset
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.tracebase.composition import compose
from jaxanon.datasets.tracebase.location import FILES, locate

NUM_HOMES = 100
# Types with a device of at least five whole days in the complete data. Homes consist of
# these types.
TYPES = tuple(
    "Alarmclock Amplifier BeanToCupCoffeemaker Breadcutter Coffeemaker "
    "Cookingstove DigitalTvReceiver Dishwasher EthernetSwitch Freezer Lamp "
    "LaundryDryer MicrowaveOven Monitor-CRT Monitor-TFT Multimediacenter "
    "PC-Desktop PC-Laptop Playstation3 Printer Refrigerator Router "
    "Subwoofer TV-CRT TV-LCD Toaster USBHarddrive USBHub VideoProjector "
    "Washingmachine WaterFountain WaterKettle".split()
)


def compose_recordings(
    recordings, *, num_homes: int, by_type: bool = False
) -> list[Recording]:
    """Returns a recording per home of ``compose`` with seed 0.

    Columns are the minute of the day, the total power and, with ``by_type``, the power
    of each type.
    """
    homes = compose(recordings, num_homes, seed=0)
    if by_type and homes.names != TYPES:
        raise ValueError(
            f"tracebase must be complete, with devices of the types {TYPES}, got "
            f"{homes.names}; choose the preset day24."
        )
    clock = np.arange(homes.power.shape[1], dtype=np.float32) % energy.DAY
    parts = []
    for number, (power, types) in enumerate(
        zip(homes.power, homes.types, strict=True), 1
    ):
        rows = np.zeros((len(power), 2 + by_type * len(TYPES)), np.float32)
        rows[:, 0], rows[:, 1] = clock, power.sum(axis=1)
        if by_type:
            rows[:, 2 + types] = power
        parts.append(Recording(rows, 0, {"subject": f"home {number}"}))
    return parts


def _preset(about, every, channels, num_homes=NUM_HOMES, **options):
    arrange = functools.partial(compose_recordings, num_homes=num_homes, **options)
    return energy.hour_ahead(about, every, channels, unit="W", arrange=arrange)


AGGREGATE = {"aggregate": 1}

DATASET = Dataset(
    name="tracebase",
    about="homes composed of 257 devices of 43 types, metered at the plug",
    rate_hz=1 / 60,
    attributes={"subject": ()},
    private=("subject",),
    presets={
        "day96": _preset(
            f"{NUM_HOMES} homes, 24 h of 15-minute means, then the next hour's mean",
            15,
            AGGREGATE,
        ),
        "day24": _preset(
            f"{NUM_HOMES} homes, 24 h of hourly means, then the next hour's mean",
            60,
            AGGREGATE,
        ),
        "types24": _preset(
            "like day24, with a channel per type of device",
            60,
            AGGREGATE | {kind: 2 + index for index, kind in enumerate(TYPES)},
            by_type=True,
        ),
        "homes200": _preset("like day24, 200 homes", 60, AGGREGATE, 2 * NUM_HOMES),
    },
    splits=("time_block",),
    builder="jaxanon.datasets.tracebase.tracebase_dataset_builder:Builder",
    locate=locate,
    files=FILES,
    test_fraction=0.2,
)
