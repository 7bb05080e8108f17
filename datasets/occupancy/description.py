"""Description of the room: channels and preset."""

from jaxanon.datasets.description import Dataset, Preset
from jaxanon.datasets.occupancy.location import FILES, locate

# Title of a column in the file -> channel.
COLUMNS = {
    f"S{node}_{quantity}": f"{node} {quantity.lower()}"
    for node in (1, 2, 3, 4)
    for quantity in ("Temp", "Light", "Sound")
} | {"S5_CO2": "CO2", "S6_PIR": "PIR 6", "S7_PIR": "PIR 7"}
NODE_UNITS = ("°C", "lx", "V")
PEOPLE = ("0", "1", "2", "3")

DATASET = Dataset(
    name="occupancy",
    about="a room with up to 3 people, CO2, temperature, light, sound and motion",
    rate_hz=1 / 30,
    attributes={"people": PEOPLE, "subject": ()},
    private=("subject",),
    presets={
        "eight_minutes": Preset(
            about="all seven nodes, 8 min windows every minute",
            channels=tuple(COLUMNS.values()),
            units=(*NODE_UNITS * 4, "ppm", "1", "1"),
            length=16,
            stride=2,
        ),
    },
    splits=("time_block",),
    test_fraction=0.25,
    builder="jaxanon.datasets.occupancy.occupancy_dataset_builder:Builder",
    locate=locate,
    files=FILES,
)
