"""Reader of a night of MASS: resampled channels and scored epochs."""

import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.mass.description import CHANNELS, RATE_HZ, STAGES
from jaxanon.datasets.resampling import resample

# Alternatives for each channel: a signal, or the difference of two signals.
ALTERNATIVES = {
    "EEG C4": ((r"EEG C4-(CLE|LER)",),),
    "EOG": ((r"EOG Left Horiz", r"EOG Right Horiz"),),
    "EMG chin": ((r"EMG Chin",), (r"EMG Chin1", r"EMG Chin2")),
}
SCORES = dict(zip("W1234R", ("W", "N1", "N2", "N3", "N3", "REM"), strict=True))
UNSCORED = "?"
MICROVOLTS = {"uV": 1.0, "\u00b5V": 1.0, "mV": 1e3, "V": 1e6}


class Stretch(NamedTuple):
    """Consecutive epochs of one stage."""

    start_s: float
    epochs: int
    stage: int


def read_edf(path: Path, read=lambda edf: edf):
    """Returns ``read(edf)`` of an EDF file; raises ValueError if it is damaged."""
    try:
        import edfio
    except ImportError as error:
        raise ImportError(
            "mass requires the package edfio, which is not installed; run "
            "`pip install 'jaxanon[mass]'`."
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # edfio only warns of truncated files.
            return read(edfio.read_edf(path, header_encoding="latin-1"))
    except (IndexError, OSError, UserWarning, ValueError) as error:
        raise ValueError(
            f"{path} is truncated or not an EDF file ({error}); download it again."
        ) from error


def read_channels(path: Path) -> tuple[np.ndarray | None, list[str]]:
    """Returns ``(float[N, 3], [])`` in uV at ``RATE_HZ``, or None and missing channels.

    Raises:
      ValueError: if the file is damaged or has gaps.
    """
    edf = read_edf(path)
    if edf.reserved.startswith("EDF+D") and not edf.is_continuous:
        raise ValueError(f"{path} must be continuous, got an EDF+D file with gaps.")
    sources = {channel: _signals(edf, channel) for channel in CHANNELS}
    if missing := [channel for channel in CHANNELS if not sources[channel]]:
        return None, missing
    columns = []
    for signals in sources.values():
        first, *second = (_microvolts(path, signal) for signal in signals)
        columns += [first - second[0] if second else first]
    length = min(map(len, columns))
    return np.stack([column[:length] for column in columns], axis=1), []


def read_stretches(path: Path, epoch_s: float) -> list[Stretch]:
    """Returns the stretches of equal stages in a file of annotations, by time."""
    scored = [
        (a.onset, a.duration, a.text.removeprefix("Sleep stage").strip())
        for a in read_edf(path, lambda edf: edf.annotations)
        if a.text.startswith("Sleep stage")
    ]
    if not scored:
        raise ValueError(
            f"{path} must hold annotations 'Sleep stage ...', got none; check that it "
            "is complete."
        )
    for onset, duration, score in scored:
        if score not in (*SCORES, UNSCORED) or duration is None:
            raise ValueError(
                f"{path} must have stages {', '.join(SCORES)} or ? with a duration, "
                f"got 'Sleep stage {score}' at {onset} s for {duration} s."
            )
    return stretches([score for score in scored if score[2] != UNSCORED], epoch_s)


def stretches(scored, epoch_s: float) -> list[Stretch]:
    """Joins consecutive whole epochs of the same stage.

    Args:
      scored: ``(onset, duration, score)`` in seconds, in any order.
      epoch_s: length of an epoch; longer annotations are several epochs, shorter ones
        are dropped.

    Example:
      >>> stretches([(0.0, 30.0, "W"), (30.0, 60.0, "W"), (90.0, 29.0, "2")], 30)
      [Stretch(start_s=0.0, epochs=3, stage=0)]
    """
    joined = []
    for onset, duration, score in sorted(scored):
        epochs = int((duration + 1 / RATE_HZ) // epoch_s)
        stage = STAGES.index(SCORES[score])
        if not epochs:
            continue
        if joined and joined[-1].stage == stage:
            end = joined[-1].start_s + joined[-1].epochs * epoch_s
            if abs(onset - end) < 1 / RATE_HZ:
                joined[-1] = joined[-1]._replace(epochs=joined[-1].epochs + epochs)
                continue
        joined.append(Stretch(onset, epochs, stage))
    return joined


def _signals(edf, channel):
    """Returns the signals of the first available alternative, or an empty list."""
    for alternative in ALTERNATIVES[channel]:
        signals = [
            next((s for s in edf.signals if re.fullmatch(label, s.label)), None)
            for label in alternative
        ]
        if None not in signals:
            return signals
    return []


def _microvolts(path, signal):
    unit = signal.physical_dimension
    if unit not in MICROVOLTS:
        raise ValueError(
            f"{path} must have {signal.label} in one of the units {list(MICROVOLTS)}, "
            f"got {unit!r}."
        )
    data = resample(signal.data, signal.sampling_frequency, RATE_HZ)
    return data * MICROVOLTS[unit]
