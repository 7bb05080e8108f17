"""Description of Sleep-EDF: features, stages and presets."""

from jaxanon.datasets.description import Dataset, Preset
from jaxanon.datasets.sleep_edf.location import ARRAYS, locate

STAGES = ("W", "N1", "N2", "N3", "REM")
FAR = "W far from sleep"  # More than AROUND epochs before or after sleep.
AROUND = 60

FEATURES = {
    **dict.fromkeys(("delta", "theta", "alpha", "beta", "gamma"), "log V^2/Hz"),
    **{"theta/alpha": "1", "alpha/delta": "1", "variance": "log V^2", "mobility": "1"},
}
CHANNELS, UNITS = zip(
    *(
        (f"{derivation}.{feature}{of}", unit)
        for of in ("", ".change", ".mean", ".std")
        for derivation in ("Fpz-Cz", "Pz-Oz")
        for feature, unit in FEATURES.items()
    ),
    strict=True,
)


def _preset(about, **cutting):
    return Preset(
        about=about,
        channels=CHANNELS,
        units=UNITS,
        length=10,
        stride=1,
        keep=STAGES,
        sequence=True,
        **cutting,
    )


DATASET = Dataset(
    name="sleep_edf",
    about="two nights of 10 people, 5 sleep stages, 72 EEG features per epoch",
    rate_hz=1 / 30,
    attributes={
        "stage": (*STAGES, FAR),
        "subject": tuple(f"{number:02}" for number in range(83)),
    },
    private=("subject",),
    presets={
        "sleep": _preset("10 epochs, from 30 min before sleep to 30 min after it"),
        "whole": _preset("10 epochs, entire recordings", read_as={FAR: "W"}),
    },
    splits=("trial", "time_block", "subject"),
    builder="jaxanon.datasets.sleep_edf.sleep_edf_dataset_builder:Builder",
    locate=locate,
    files=ARRAYS,
    last_train_trial=1,
    test_fraction=0.2,
)
