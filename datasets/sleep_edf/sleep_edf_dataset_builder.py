"""TFDS builder of the features of Sleep-EDF."""

import re
import zipfile
from pathlib import Path

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.recordings import runs
from jaxanon.datasets.sleep_edf.description import (
    AROUND,
    CHANNELS,
    DATASET,
    FAR,
    STAGES,
)
from jaxanon.datasets.sleep_edf.location import NIGHT


class Builder(RecordingsBuilder):
    """Reads ``<night>.npz`` with X and y, or one file with ``<night>_X`` etc."""

    name = "sleep_edf"
    dataset = DATASET
    num_channels = len(CHANNELS)

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per stretch of a stage, by subject, night and time."""
        nights = {}
        for path in source:
            for night, arrays in read_nights(path).items():
                if night in nights:
                    raise ValueError(
                        f"nights must be unique, got {night} again in {path.name}; "
                        "remove one."
                    )
                nights[night] = arrays
        for night in sorted(nights):
            features, stages = nights[night]
            subject, trial = re.findall(NIGHT, night)[0]
            index = DATASET.attributes["subject"].index(subject)
            stages = mark_far_from_sleep(stages)
            for start, end in runs(stages):
                labels = {"stage": stages[start], "subject": index}
                yield features[start:end], int(trial), labels


def mark_far_from_sleep(stages: np.ndarray) -> np.ndarray:
    """Returns stages with a separate class for waking far from sleep.

    Example:
      >>> marked = mark_far_from_sleep(np.array([0] * 62 + [2, 0, 2] + [0] * 61))
      >>> marked[[0, 1, 2, 63, -2, -1]]
      array([5, 5, 0, 0, 0, 5])
    """
    asleep = np.flatnonzero(stages > 0)
    first, last = (asleep[0], asleep[-1]) if len(asleep) else (len(stages) + AROUND, 0)
    index = np.arange(len(stages))
    far = (index < first - AROUND) | (index > last + AROUND)
    return np.where(far, DATASET.attributes["stage"].index(FAR), stages)


def read_nights(path: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Returns ``float[epochs, 72]`` and ``int[epochs]`` of each night of a file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as members:
            arrays = dict(members)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is a damaged .npz file ({error}); download it again."
        ) from error
    if set(arrays) == {"X", "y"}:
        arrays = {f"{path.stem}_{name}": array for name, array in arrays.items()}
    names = sorted({name.rpartition("_")[0] for name in arrays})
    return {night: _night(path, night, arrays) for night in names}


def _night(path, night, arrays):
    where = f"{path.name}, night {night!r}:"
    match = re.fullmatch(NIGHT, night)
    if match is None or match.group(1) not in DATASET.attributes["subject"]:
        raise ValueError(
            f"{where} nights must be named SC4001E0 to SC4822G0; rename it."
        )
    features, stages = (arrays.get(f"{night}_{name}") for name in "Xy")
    if features is None or stages is None:
        raise ValueError(f"{where} it must have both X and y; download the file again.")
    shapes = (*features.shape[:1], len(CHANNELS)), features.shape[:1]
    if (features.shape, stages.shape) != shapes or not stages.size:
        raise ValueError(
            f"{where} X must be float[epochs, {len(CHANNELS)}] and y int[epochs], got "
            f"shapes {features.shape} and {stages.shape}."
        )
    if not np.isin(stages, np.arange(len(STAGES))).all():
        raise ValueError(
            f"{where} y must be 0 to 4 ({', '.join(STAGES)}), got "
            f"{np.unique(stages).tolist()}."
        )
    return features, stages.astype(int)
