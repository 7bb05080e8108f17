"""Description of MobiAct v2: channels, people and presets."""

from jaxanon.datasets.description import Dataset, Preset, brackets
from jaxanon.datasets.mobi_act.location import FILES, locate

ACTIVITIES = ("WAL", "STD", "JOG", "STU")
OTHER = "other"  # Rows of other activities in the files of these four.
CHANNELS = tuple(f"{sensor}_{axis}" for sensor in ("acc", "gyro") for axis in "xyz")

# Upper bounds of all classes but the last, in kg, cm and years. Weight and age have
# ObscureNet's classes; height has thirds of the 36 people.
BOUNDS = {"weight": (70, 90), "height": (170, 177), "age": (23, 26)}

# The people used by ObscureNet and its successors: 20 men, 16 women.
SELECTED = tuple(
    "1 2 3 4 5 6 8 9 10 11 12 16 18 19 20 21 25 26 27 35 36 37 38 39 40 41 42 43 46 "
    "47 50 51 54 55 58 59".split()
)


def _preset(about, people, **cutting):
    return Preset(
        about=about,
        channels=CHANNELS,
        units=("m/s^2",) * 3 + ("rad/s",) * 3,
        length=128,
        stride=10,
        keep=ACTIVITIES,
        people=people,
        **cutting,
    )


DATASET = Dataset(
    name="mobi_act",
    about="36 people by default, 4 activities, phone in the trouser pocket, 6 channels",
    rate_hz=200.0,
    attributes={
        "activity": (*ACTIVITIES, OTHER),
        "gender": ("male", "female"),
        **{attribute: brackets(*bounds) for attribute, bounds in BOUNDS.items()},
        "subject": tuple(str(number) for number in range(1, 68)),
    },
    private=("gender",),
    presets={
        "raw6": _preset("4 activities, 0.64 s windows every 0.05 s", SELECTED),
        "everyone": _preset("like raw6, all people with all 4 activities", ()),
        "official": _preset(
            "as in ObscureNet and Blinder: concatenated, other activities as WAL",
            SELECTED,
            read_as={OTHER: "WAL"},
            stream=True,
            across=True,
        ),
    },
    splits=("time_block", "subject", "official"),
    builder="jaxanon.datasets.mobi_act.mobi_act_dataset_builder:Builder",
    locate=locate,
    files=FILES,
)
