"""TFDS builder of MASS."""

import re
import warnings
from pathlib import Path

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.mass.description import CHANNELS, DATASET, EPOCH_S, RATE_HZ
from jaxanon.datasets.mass.location import SIGNALS, STAGES
from jaxanon.datasets.mass.reading import read_channels, read_stretches


class Builder(RecordingsBuilder):
    """Reads ``<subject> PSG.edf`` and ``<subject> Base.edf`` or ``Annotations.edf``."""

    name = "mass"
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per stretch of a stage, by subject and time."""
        (folder,) = source
        nights, scores = files(folder, SIGNALS), files(folder, STAGES)
        dropped = {}
        for subject, night in sorted(nights.items()):
            if subject not in DATASET.attributes["subject"]:
                raise ValueError(
                    f"{night} must be named after a subject of MASS; undo renaming."
                )
            if subject not in scores:
                dropped[subject] = ["Base.edf or Annotations.edf"]
                continue
            rows, missing = read_channels(night)
            if missing:
                dropped[subject] = missing
                continue
            index = DATASET.attributes["subject"].index(subject)
            epoch_s = EPOCH_S[int(subject[4])]
            for part, stage in cut(night, rows, scores[subject], epoch_s):
                yield part, 1, {"stage": stage, "subject": index}
        if dropped:
            warnings.warn(
                f"mass: dropped people with missing files or channels, {dropped}.",
                stacklevel=2,
            )


def files(folder: Path, pattern: str) -> dict[str, Path]:
    """Returns paths by subject; prefers Base.edf to Annotations.edf."""
    paths = {}
    for path in sorted(folder.rglob("*.edf"), key=lambda path: path.name):
        if match := re.search(pattern, path.name):
            subject = match.group(1)
            if subject in paths and paths[subject].name == path.name:
                raise ValueError(
                    f"files must be unique, got {path} and {paths[subject]}; remove "
                    "one."
                )
            paths[subject] = path
    return paths


def cut(night: Path, rows, scores: Path, epoch_s: int):
    """Yields ``(float[rows, 3], stage)`` of each stretch, in whole epochs."""
    size = epoch_s * RATE_HZ
    for start_s, epochs, stage in read_stretches(scores, epoch_s):
        start = round(start_s * RATE_HZ)
        part = rows[start : start + epochs * size]
        if epochs - len(part) // size > 1:
            raise ValueError(
                f"{night} must last {start_s + epochs * epoch_s:g} s like the stages "
                f"in {scores.name}, got {len(rows) / RATE_HZ:g} s; it is truncated, "
                "download it again."
            )
        if whole := len(part) // size * size:
            yield part[:whole], stage
