"""The TFDS builder of MASS."""

import re
import warnings
from pathlib import Path

from etils import epath

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.mass.description import CHANNELS, DATASET, EPOCH_S, RATE_HZ
from jaxanon.datasets.mass.location import SIGNALS, STAGES
from jaxanon.datasets.mass.reading import read_channels, read_stretches


class Builder(RecordingsBuilder):
    """Reads ``<subject> PSG.edf`` and ``<subject> Base.edf`` or ``Annotations.edf``."""

    name = "mass"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """One per stretch of a stage, by subject and time."""
        (folder,) = source
        nights, scores = files(folder, SIGNALS), files(folder, STAGES)
        left_out = {}
        for subject, night in sorted(nights.items()):
            if subject not in DATASET.attributes["subject"]:
                raise ValueError(f"{night} is of nobody in MASS; is it renamed?")
            if subject not in scores:
                left_out[subject] = ["Base.edf or Annotations.edf"]
                continue
            rows, missing = read_channels(night)
            if missing:
                left_out[subject] = missing
                continue
            who = DATASET.attributes["subject"].index(subject)
            epoch_s = EPOCH_S[int(subject[4])]
            for part, stage in cut(night, rows, scores[subject], epoch_s):
                yield part, 1, {"stage": stage, "subject": who}
        if left_out:
            warnings.warn(
                f"mass: {left_out} are lacking, these people are left out.",
                stacklevel=2,
            )


def files(folder: Path, pattern: str) -> dict[str, Path]:
    """Paths by subject; of two files of stages Base.edf, the later in the alphabet."""
    found = {}
    for path in sorted(folder.rglob("*.edf"), key=lambda path: path.name):
        if match := re.search(pattern, path.name):
            subject = match.group(1)
            if subject in found and found[subject].name == path.name:
                raise ValueError(
                    f"{path} is there twice, also as {found[subject]}; take one away."
                )
            found[subject] = path
    return found


def cut(night: Path, rows, scores: Path, epoch_s: int):
    """Yields ``(float[rows, 3], stage)`` of each stretch, whole epochs all of them."""
    size = epoch_s * RATE_HZ
    for start_s, epochs, stage in read_stretches(scores, epoch_s):
        start = round(start_s * RATE_HZ)
        part = rows[start : start + epochs * size]
        if epochs - len(part) // size > 1:
            raise ValueError(
                f"{night} ends after {len(rows) / RATE_HZ:g} s, but {scores.name} has "
                f"stages until {start_s + epochs * epoch_s:g} s; it is truncated, get "
                "it anew."
            )
        if whole := len(part) // size * size:
            yield part[:whole], stage
