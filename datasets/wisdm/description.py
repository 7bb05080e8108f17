"""Description of WISDM: activities, people and presets."""

from jaxanon.datasets.description import Dataset, Origin, Preset
from jaxanon.datasets.wisdm.location import ACCEL, WATCH, locate, locate_accel

# Letters of the files; the letter N is unused.
TASKS = {
    **{"A": "walking", "B": "jogging", "C": "stairs", "D": "sitting", "E": "standing"},
    **{"F": "typing", "G": "brushing teeth", "H": "soup", "I": "chips", "J": "pasta"},
    **{"K": "drinking", "L": "sandwich", "M": "kicking", "O": "catching"},
    **{"P": "dribbling", "Q": "writing", "R": "clapping", "S": "folding"},
}
EATING = dict.fromkeys(("soup", "chips", "pasta", "sandwich"), "eating")
ACTIVITIES = tuple(dict.fromkeys(EATING.get(task, task) for task in TASKS.values()))
BALL = ("kicking", "catching", "dribbling")
CHANNELS = tuple(f"{sensor}.{axis}" for sensor in ("acc", "gyro") for axis in "xyz")
CUTTING = {"length": 200, "stride": 100}
BUILDERS = "jaxanon.datasets.wisdm.wisdm_dataset_builder"

DATASET = Dataset(
    name="wisdm",
    about="51 people, 12 activities of daily life, watch on the wrist, 6 channels",
    rate_hz=20.0,
    attributes={
        "activity": ACTIVITIES,
        "task": tuple(TASKS.values()),
        "subject": tuple(str(number) for number in range(1600, 1651)),
    },
    private=("subject",),
    presets={
        "watch": Preset(
            about="both sensors, 12 activities, 10 s windows every 5 s, as in FedAIoT",
            channels=CHANNELS,
            units=("m/s^2",) * 3 + ("rad/s",) * 3,
            keep=tuple(name for name in ACTIVITIES if name not in BALL),
            **CUTTING,
        ),
        "watch-accel": Preset(
            about="accelerometer only, 6 activities, 10 s windows every 5 s",
            channels=CHANNELS[:3],
            units=("m/s^2",) * 3,
            keep=("walking", "jogging", "stairs", "sitting", "standing", "kicking"),
            origin=Origin(
                name="wisdm",
                builder=f"{BUILDERS}:AccelBuilder",
                locate=locate_accel,
                files=ACCEL,
            ),
            **CUTTING,
        ),
    },
    splits=("time_block", "subject"),
    builder=f"{BUILDERS}:Builder",
    locate=locate,
    files=WATCH,
    test_fraction=0.2,
)
