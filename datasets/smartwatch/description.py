"""Description of the smartwatch recordings, which need no download."""

import importlib.util
from pathlib import Path

from jaxanon.datasets.description import Dataset, Preset

CHANNELS = tuple(f"{sensor}.{axis}" for sensor in ("acc", "gyro") for axis in "xyz")
EXERCISES = ("PEN", "ABD", "FEL", "IR", "ER", "TRAP", "ROW")
SUBJECTS = tuple(str(number) for number in range(1, 11))


def locate(source, cache) -> tuple[Path, ...]:
    """Finds the data file of the package seglearn without importing it."""
    del cache
    if source is None:
        package = importlib.util.find_spec("seglearn")
        if package is None or package.origin is None:
            raise FileNotFoundError(
                "smartwatch is part of the package seglearn, which is not installed; "
                "run `pip install seglearn`, or pass source=FILE (--source FILE)."
            )
        source = Path(package.origin).parent / "data" / "watch_dataset.npy"
    if not Path(source).is_file():
        raise FileNotFoundError(
            f"smartwatch must be the file {source}, which does not exist; run `pip "
            "install --force-reinstall seglearn`, or pass source=FILE (--source FILE)."
        )
    return (Path(source),)


DATASET = Dataset(
    name="smartwatch",
    about="10 people, 7 shoulder exercises, watch on the left and the right wrist",
    rate_hz=50.0,
    attributes={
        "exercise": EXERCISES,
        "side": ("left", "right"),
        "subject": SUBJECTS,
    },
    private=("side",),
    presets={
        "raw6": Preset(
            about="accelerometer and gyroscope, 2.56 s windows every 0.32 s",
            channels=CHANNELS,
            units=("g",) * 3 + ("rad/s",) * 3,
            length=128,
            stride=16,
        ),
        "acc10": Preset(
            about="acceleration at 10 Hz, 1 s windows, as in DEEProtect",
            channels=CHANNELS[:3],
            units=("g",) * 3,
            length=10,
            stride=10,
            derive=lambda rows: rows[:, :3],
            every=5,
        ),
    },
    splits=("time_block", "subject"),
    builder="jaxanon.datasets.smartwatch.smartwatch_dataset_builder:Builder",
    locate=locate,
)
