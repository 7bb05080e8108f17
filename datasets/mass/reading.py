"""One night of MASS: its channels at one rate, and the epochs that were scored."""

import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxanon.datasets.mass.description import CHANNELS, RATE_HZ, STAGES
from jaxanon.datasets.resampling import resample

# Of each channel the ways to get it: a signal, or a first less a second.
WAYS = {
    "EEG C4": ((r"EEG C4-(CLE|LER)",),),
    "EOG": ((r"EOG Left Horiz", r"EOG Right Horiz"),),
    "EMG chin": ((r"EMG Chin",), (r"EMG Chin1", r"EMG Chin2")),
}
SCORES = dict(zip("W1234R", ("W", "N1", "N2", "N3", "N3", "REM"), strict=True))
UNSCORED = "?"
MICROVOLTS = {"uV": 1.0, "\u00b5V": 1.0, "mV": 1e3, "V": 1e6}


class Stretch(NamedTuple):
    """Epochs of one stage, one after another."""

    start_s: float
    epochs: int
    stage: int


def read_edf(path: Path, read=lambda edf: edf):
    """``read`` of an EDF file; ValueError naming it if it is not whole."""
    try:
        import edfio
    except ImportError as error:
        raise ImportError(
            "mass is read by the package edfio, which is not installed; run "
            "`pip install 'jaxanon[mass]'`."
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # That is how it tells of a file cut short.
            return read(edfio.read_edf(path, header_encoding="latin-1"))
    except (IndexError, OSError, UserWarning, ValueError) as error:
        raise ValueError(
            f"{path} is truncated or no EDF file ({error}); get it anew."
        ) from error


def read_channels(path: Path) -> tuple[np.ndarray | None, list[str]]:
    """``float[N, 3]`` in uV at ``RATE_HZ``, or None and the channels that it lacks."""
    edf = read_edf(path)
    if edf.reserved.startswith("EDF+D") and not edf.is_continuous:
        raise ValueError(f"{path} has gaps (EDF+D), which this loader does not read.")
    found = {channel: _signals(edf, channel) for channel in CHANNELS}
    if missing := [channel for channel in CHANNELS if not found[channel]]:
        return None, missing
    columns = []
    for signals in found.values():
        first, *second = (_microvolts(path, signal) for signal in signals)
        columns += [first - second[0] if second else first]
    length = min(map(len, columns))
    return np.stack([column[:length] for column in columns], axis=1), []


def read_stretches(path: Path, epoch_s: float) -> list[Stretch]:
    """The stretches of equal stages that a file of annotations holds, by time."""
    scored = [
        (a.onset, a.duration, a.text.removeprefix("Sleep stage").strip())
        for a in read_edf(path, lambda edf: edf.annotations)
        if a.text.startswith("Sleep stage")
    ]
    if not scored:
        raise ValueError(f"{path} holds no annotation 'Sleep stage ...'; is it whole?")
    for onset, duration, score in scored:
        if score not in (*SCORES, UNSCORED) or duration is None:
            raise ValueError(
                f"{path} has 'Sleep stage {score}' at {onset} s for {duration} s; "
                f"stages are {', '.join(SCORES)} and ?, and last for some time."
            )
    return stretches([score for score in scored if score[2] != UNSCORED], epoch_s)


def stretches(scored, epoch_s: float) -> list[Stretch]:
    """Whole epochs that follow one another in the same stage, put together.

    Args:
      scored: ``(onset, duration, score)`` in seconds, in any order.
      epoch_s: what an epoch lasts; longer annotations are several, shorter ones none.

    Example:
      >>> stretches([(0.0, 30.0, "W"), (30.0, 60.0, "W"), (90.0, 29.0, "2")], 30)
      [Stretch(start_s=0.0, epochs=3, stage=0)]
    """
    found = []
    for onset, duration, score in sorted(scored):
        epochs = int((duration + 1 / RATE_HZ) // epoch_s)
        stage = STAGES.index(SCORES[score])
        if not epochs:
            continue
        if found and found[-1].stage == stage:
            end = found[-1].start_s + found[-1].epochs * epoch_s
            if abs(onset - end) < 1 / RATE_HZ:
                found[-1] = found[-1]._replace(epochs=found[-1].epochs + epochs)
                continue
        found.append(Stretch(onset, epochs, stage))
    return found


def _signals(edf, channel):
    """The signals of the first way to a channel that there is; else none."""
    for way in WAYS[channel]:
        signals = [
            next((s for s in edf.signals if re.fullmatch(label, s.label)), None)
            for label in way
        ]
        if None not in signals:
            return signals
    return []


def _microvolts(path, signal):
    unit = signal.physical_dimension
    if unit not in MICROVOLTS:
        raise ValueError(
            f"{path} has {signal.label} in {unit!r}; it must be one of "
            f"{list(MICROVOLTS)}."
        )
    data = resample(signal.data, signal.sampling_frequency, RATE_HZ)
    return data * MICROVOLTS[unit]
