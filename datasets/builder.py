"""What the TFDS builders share: a data set is stored as its recordings."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow_datasets as tfds

from jaxanon.datasets.description import Dataset
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.sources import naming

SPLIT = "recordings"


class RecordingsBuilder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """Stores ``rows``, ``trial`` and labels; a class because TFDS wants one.

    A subclass names its ``dataset`` and ``num_channels`` and yields
    ``(rows, trial, labels)`` from ``recordings(source)``, in the order in which they
    are to be read back. README.md, CITATIONS.bib and TAGS.txt beside it describe it.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}  # noqa: RUF012, as TFDS asks.

    dataset: Dataset
    num_channels: int
    dtype: type = np.float32  # As stored.

    def __init__(self, *, source: tuple[Path, ...] = (), **kwargs):
        self._source = source
        super().__init__(file_format="array_record", **kwargs)

    def recordings(self, source: tuple[Path, ...]) -> Iterator[tuple]:
        """Yields ``(float[rows, channels], trial, labels)`` of every recording."""
        raise NotImplementedError

    def read(self) -> list[Recording]:
        """The stored recordings."""
        return [
            Recording(
                example["rows"],
                int(example["trial"]),
                {
                    name: int(example[name]) if names else example[name].decode()
                    for name, names in self.dataset.attributes.items()
                },
            )
            for example in self.as_data_source(SPLIT)
        ]

    def _info(self):
        attributes = self.dataset.attributes.items()
        features = {
            "rows": tfds.features.Tensor(
                shape=(None, self.num_channels), dtype=self.dtype, encoding="bytes"
            ),
            "trial": np.int32,
            **{a: _feature(names) for a, names in attributes},
        }
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict(features), disable_shuffling=True
        )

    def _split_generators(self, dl_manager):
        del dl_manager
        return {SPLIT: self._generate_examples()}

    def _generate_examples(self):
        places = " and ".join(map(str, self._source))
        with naming(f"{self.name}, read from {places}"):
            yield from self._examples()

    def _examples(self):
        for index, (rows, trial, labels) in enumerate(self.recordings(self._source)):
            rows = np.ascontiguousarray(rows, self.dtype)
            if not np.isfinite(rows).all():
                raise ValueError(
                    f"recording {index} of {self.name} (trial {trial}, {labels}) "
                    "holds NaN or infinity; get its file anew."
                )
            if not -(2**31) <= trial < 2**31:
                raise ValueError(
                    f"recording {index} of {self.name} ({labels}) has trial {trial}, "
                    "which is no int32; are its times right? Get its file anew."
                )
            known = {
                name: int(label) if self.dataset.attributes[name] else str(label)
                for name, label in labels.items()
            }
            yield index, {"rows": rows, "trial": trial, **known}


def _feature(names):
    """Of an attribute: its class, or the name itself where names are open."""
    if not names:
        return tfds.features.Text()
    return tfds.features.ClassLabel(names=list(names))
