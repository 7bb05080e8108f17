"""TFDS builder of UCI HAR."""

import itertools
from pathlib import Path

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.sources import read_each
from jaxanon.datasets.tables import read_numbers
from jaxanon.datasets.uci_har.description import CHANNELS, DATASET, LABELS, SIGNALS

SIDES = ("train", "test")  # Trials 1 and 2.
LENGTH, HALF = 128, 64


class Builder(RecordingsBuilder):
    """Reads ``{train,test}/Inertial Signals/*.txt``, ``subject_*`` and ``y_*.txt``."""

    name = "uci_har"
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per run of overlapping windows, in the files' order."""
        columns = {}
        for match, content in read_each(source, SIGNALS):
            rows = read_numbers(match.string, content, LENGTH)
            columns[match.groups()] = rows.astype(np.float32)
        for match, content in read_each(source, LABELS):
            columns[match.groups()] = read_numbers(match.string, content, 1)[:, 0]
        for trial, side in enumerate(SIDES, start=1):
            windows, labels = stack_side(columns, side)
            for first, last in runs(windows, labels):
                run_labels = {name: label[first] for name, label in labels.items()}
                yield join_windows(windows[first:last]), trial, run_labels


def stack_side(columns, side: str):
    """Returns ``float32[N, 128, 9]`` windows of a side and ``int[N]`` attributes."""
    names = (*CHANNELS, "subject", "y")
    if missing := [
        f"{name}_{side}.txt" for name in names if (side, name) not in columns
    ]:
        raise ValueError(
            f"uci_har must have the files {missing}; download the archive again."
        )
    counts = {f"{name}_{side}.txt": len(columns[side, name]) for name in names}
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"the files of uci_har must have one line per window, got {counts}; "
            "shorter files are truncated, download the archive again."
        )
    labels = {}
    for attribute, name in {"activity": "y", "subject": "subject"}.items():
        numbers, classes = columns[side, name], len(DATASET.attributes[attribute])
        wrong = ~np.isin(numbers, np.arange(1, classes + 1))
        if wrong.any():
            raise ValueError(
                f"{name}_{side}.txt must hold whole numbers from 1 to {classes}, got "
                f"{numbers[wrong][0]:g} in line {np.argmax(wrong) + 1}."
            )
        labels[attribute] = numbers.astype(int) - 1
    return np.stack([columns[side, name] for name in CHANNELS], axis=-1), labels


def runs(windows: np.ndarray, labels):
    """Returns ``(first, end)`` of each run of windows that overlap by half."""
    follows = (windows[:-1, HALF:] == windows[1:, :HALF]).all(axis=(1, 2))
    for label in labels.values():
        follows &= label[1:] == label[:-1]
    edges = [0, *(np.flatnonzero(~follows) + 1).tolist(), len(windows)]
    return list(itertools.pairwise(edges))


def join_windows(windows: np.ndarray) -> np.ndarray:
    """Returns the rows that overlapping windows were cut from.

    Example:
      >>> rows = np.arange(256.0)[:, None]
      >>> windows = np.stack([rows[:128], rows[64:192], rows[128:]])
      >>> bool((join_windows(windows) == rows).all())
      True
    """
    return np.concatenate([*windows[:, :HALF], windows[-1, HALF:]])
