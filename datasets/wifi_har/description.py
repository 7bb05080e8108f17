"""Description of Wi-Fi HAR: channels, people and Blinder's preset."""

from jaxanon.datasets.description import Dataset, Preset, brackets
from jaxanon.datasets.wifi_har.location import FILES, locate

# Activity codes of the file names.
ACTIVITIES = {
    **{"04": "stand", "01": "sit", "03": "lie"},
    **{"07": "turn", "09": "turn"},  # At the far end and at the near end.
}
# 3 receiving antennas with 30 subcarriers each.
CHANNELS = tuple(
    f"csi_1_{antenna}_{carrier}" for antenna in range(1, 4) for carrier in range(1, 31)
)
# Upper bounds of the first class, in kg and cm, as in Blinder.
BOUNDS = {"weight": (80,), "height": (175,)}

DATASET = Dataset(
    name="wifi_har",
    about="10 people, 4 activities, amplitudes of 90 Wi-Fi channels, line of sight",
    rate_hz=320.0,
    attributes={
        "activity": tuple(dict.fromkeys(ACTIVITIES.values())),
        **{attribute: brackets(*bounds) for attribute, bounds in BOUNDS.items()},
        "subject": tuple(str(number) for number in range(1, 31)),
    },
    private=("weight",),
    presets={
        "amp90": Preset(
            about="90 amplitudes, 0.25 s windows every 0.125 s, as in Blinder",
            channels=CHANNELS,
            units=("1",) * len(CHANNELS),
            length=80,
            stride=40,
        ),
    },
    splits=("trial", "subject", "official"),
    builder="jaxanon.datasets.wifi_har.wifi_har_dataset_builder:Builder",
    locate=locate,
    files=FILES,
    last_train_trial=16,  # There are 20 trials.
)
