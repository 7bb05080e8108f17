"""TFDS builder of UCI HAPT."""

from pathlib import Path

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.sources import read_each
from jaxanon.datasets.tables import read_numbers
from jaxanon.datasets.uci_hapt.description import DATASET, LABELS, SIGNALS


class Builder(RecordingsBuilder):
    """Reads ``RawData/{acc,gyro}_expNN_userMM.txt`` and ``RawData/labels.txt``."""

    name = "uci_hapt"
    dataset = DATASET
    num_channels = 6

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per labelled segment, in the order of ``labels.txt``."""
        segments = [content for _, content in read_each(source, LABELS)]
        if not segments:
            raise ValueError(
                "RawData/labels.txt (labels of all segments) is missing; download the "
                "archive again."
            )
        signals = {}
        for match, content in read_each(source, SIGNALS):
            sensor, experiment, user = match.groups()
            rows = read_numbers(match.string, content, 3)
            signals[sensor, int(experiment), int(user)] = rows
        for segment in read_numbers("labels.txt", segments[0], 5).astype(int):
            yield cut_segment(signals, *segment.tolist())


def cut_segment(signals, experiment, user, activity, start, end):
    """Returns rows ``start`` to ``end`` of both sensors, counted from 1, inclusive."""
    where = f"labels.txt: experiment {experiment}, user {user}, rows {start}-{end}"
    labels = {"activity": activity - 1, "subject": user - 1}
    for name, label in labels.items():
        if not 0 <= label < len(DATASET.attributes[name]):
            raise ValueError(
                f"{where}: {name} must be from 1 to {len(DATASET.attributes[name])}, "
                f"got {label + 1}."
            )
    parts = []
    for sensor in ("acc", "gyro"):
        rows = signals.get((sensor, experiment, user))
        if rows is None or not 1 <= start <= end <= len(rows):
            got = "no such file" if rows is None else f"{len(rows)} rows"
            raise ValueError(
                f"{where}: {sensor}_exp{experiment:02}_user{user:02}.txt must hold "
                f"these rows, got {got}; download the archive again."
            )
        parts.append(rows[start - 1 : end])
    return np.concatenate(parts, axis=1), experiment, labels
