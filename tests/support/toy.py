"""A small synthetic dataset whose windows clearly show both attributes."""

import numpy as np

from jaxanon.datasets import Data, Spec, Windows

TIME, CHANNELS, SUBJECTS = 16, 2, 5


def data(seed=0, per_subject=40, time=TIME) -> Data:
    """Returns data whose activities differ in frequency and subjects in amplitude.

    Each subject has one gender.
    """
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(SUBJECTS), per_subject)
    activity = rng.integers(0, 3, len(subject))
    gender = subject % 2
    t = np.arange(time)[None, :, None]
    phase = rng.uniform(0, 2 * np.pi, (len(subject), 1, CHANNELS))
    wave = np.sin((activity[:, None, None] + 1) * 2 * np.pi * t / time + phase)
    windows = 10 + 3 * (1 + gender[:, None, None]) * wave
    labels = {"activity": activity, "gender": gender, "subject": subject}
    test = rng.random(len(subject)) < 0.3

    def rows(keep):
        kept = {k: v[keep].astype(np.int32) for k, v in labels.items()}
        return Windows(windows[keep].astype(np.float32), kept)

    train = rows(~test)
    spec = Spec(
        name="toy",
        preset="toy",
        channels=("x", "y"),
        units=("g", "g"),
        rate_hz=10.0,
        time=time,
        public="activity",
        private=("gender",),
        classes={
            "activity": ("a", "b", "c"),
            "gender": ("f", "m"),
            "subject": tuple(map(str, range(SUBJECTS))),
        },
        mean=tuple(train.windows.mean((0, 1)).tolist()),
        std=tuple(train.windows.std((0, 1)).tolist()),
        split="given",
    )
    return Data(spec, train, rows(test))
