"""Description of MASS: people, stages and presets by length of epochs."""

from jaxanon.datasets.description import Dataset, Preset
from jaxanon.datasets.mass.location import FILES, locate

STAGES = ("W", "N1", "N2", "N3", "REM")
CHANNELS = ("EEG C4", "EOG", "EMG chin")
RATE_HZ = 100
EPOCH_S = {1: 30, 2: 20, 3: 30, 4: 20, 5: 20}  # Epoch length of each subset.
_MAX_NUMBER = {1: 53, 2: 19, 3: 64, 4: 40, 5: 26}  # Largest subject number.
SUBJECTS = {
    subset: tuple(f"01-0{subset}-{number:04}" for number in range(1, most + 1))
    for subset, most in _MAX_NUMBER.items()
}


def _preset(about, epoch_s):
    people = [SUBJECTS[subset] for subset in EPOCH_S if EPOCH_S[subset] == epoch_s]
    return Preset(
        about=about,
        channels=CHANNELS,
        units=("uV",) * 3,
        length=epoch_s * RATE_HZ,
        stride=epoch_s * RATE_HZ,
        people=sum(people, ()),
        precut=True,
    )


DATASET = Dataset(
    name="mass",
    about="nights of 200 people, 5 sleep stages, EEG, EOG and EMG",
    rate_hz=float(RATE_HZ),
    attributes={"stage": STAGES, "subject": sum(SUBJECTS.values(), ())},
    private=("subject",),
    presets={
        "aasm": _preset("epochs of 30 s, people of SS1 and SS3", 30),
        "rk": _preset("epochs of 20 s, people of SS2, SS4 and SS5", 20),
    },
    splits=("time_block", "subject"),
    builder="jaxanon.datasets.mass.mass_dataset_builder:Builder",
    locate=locate,
    files=FILES,
    test_fraction=0.2,
)
