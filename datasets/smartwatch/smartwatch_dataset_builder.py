"""The TFDS builder of the smartwatch recordings."""

import pickle
from pathlib import Path

import numpy as np
from etils import epath

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.smartwatch.description import DATASET, EXERCISES

# What NumPy and pickle raise for a file that is cut short or is another one.
DAMAGE = (
    *(AttributeError, EOFError, KeyError, OSError, TypeError, ValueError),
    pickle.UnpicklingError,
)


class Builder(RecordingsBuilder):
    """Reads ``watch_dataset.npy`` of the package seglearn."""

    name = "smartwatch"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = 6

    def recordings(self, source: tuple[Path, ...]):
        """One recording for each person, side and exercise, in that order."""
        (file,) = source
        # A pickle of NumPy arrays, trusted as much as the package that carries it.
        try:
            watch = np.load(file, allow_pickle=True).item()
            columns = [watch[key] for key in ("X", "y", "side", "subject")]
        except DAMAGE as error:
            raise ValueError(
                f"{file} is not the seglearn watch data ({error}); reinstall with "
                "`pip install --force-reinstall seglearn`."
            ) from error
        if tuple(watch["y_labels"]) != EXERCISES:
            raise ValueError(
                f"{file} holds exercises {watch['y_labels']}, wanted {EXERCISES}; "
                "reinstall with `pip install --force-reinstall seglearn`."
            )
        rows = sorted(
            zip(*columns, strict=True), key=lambda row: (row[3], row[2], row[1])
        )
        for signal, exercise, side, subject in rows:
            labels = {"exercise": exercise, "side": side, "subject": subject - 1}
            yield signal, 1, labels
