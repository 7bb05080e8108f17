"""TFDS builder of the smartwatch recordings."""

import hashlib
import io
from pathlib import Path

import numpy as np

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.smartwatch.description import DATASET, EXERCISES

# SHA-256 of ``watch_dataset.npy`` of seglearn 1.2.5. Reading a pickle can run any code,
# so no other file is unpickled.
SHA256 = frozenset({"eb122f23cdf06ef6bd6c6c5312958ec5cf9d038e2e6d457b8081662c75a42537"})


class Builder(RecordingsBuilder):
    """Reads ``watch_dataset.npy`` of the package seglearn."""

    name = "smartwatch"
    dataset = DATASET
    num_channels = 6

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording per subject, side and exercise, in that order."""
        (file,) = source
        content = file.read_bytes()  # Read once: hash and parse the same bytes.
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 not in SHA256:
            raise ValueError(
                f"{file} must be watch_dataset.npy of seglearn 1.2.5, got another file "
                f"(SHA-256 {sha256}); run `pip install --force-reinstall "
                "seglearn==1.2.5`."
            )
        watch = np.load(io.BytesIO(content), allow_pickle=True).item()
        columns = [watch[key] for key in ("X", "y", "side", "subject")]
        if tuple(watch["y_labels"]) != EXERCISES:
            raise ValueError(
                f"{file} must hold the exercises {EXERCISES}, got {watch['y_labels']}; "
                "run `pip install --force-reinstall seglearn`."
            )
        rows = sorted(
            zip(*columns, strict=True), key=lambda row: (row[3], row[2], row[1])
        )
        for signal, exercise, side, subject in rows:
            labels = {"exercise": exercise, "side": side, "subject": subject - 1}
            yield signal, 1, labels
