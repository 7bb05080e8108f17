"""Base of the TFDS builders, which store a data set as recordings."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow_datasets as tfds
from etils import epath

from jaxanon.datasets.description import Dataset
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.sources import naming

SPLIT = "recordings"


class RecordingsBuilder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """TFDS builder that stores ``rows``, ``trial`` and labels of each recording.

    A subclass sets ``dataset`` and ``num_channels``. Its ``recordings(source)`` yields
    ``(rows, trial, labels)`` in a fixed order; ``source`` holds the paths that
    ``Dataset.locate`` returns. Labels are class indices, or text for an attribute
    without class names. ``name`` is the folder of the prepared data, by default the
    data set's name. Optional files README.md, CITATIONS.bib and TAGS.txt next to the
    subclass's module describe the data set.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}  # noqa: RUF012, required by TFDS.

    dataset: Dataset
    num_channels: int
    dtype: type = np.float32  # Type of the stored rows.

    def __init_subclass__(cls, **kwargs):
        """Sets the name and the paths that TFDS otherwise derives from a package."""
        if "name" not in vars(cls):
            cls.name = cls.dataset.name
        # TFDS's names are global, and would clash with those of other packages.
        options = {"skip_registration": True} | kwargs
        super().__init_subclass__(**options)  # pyrefly: ignore
        module = sys.modules[cls.__module__]
        cls.code_path = epath.Path(getattr(module, "__file__", None) or "notebook")
        cls.pkg_dir_path = cls.code_path.parent

    def __init__(self, *, source: tuple[Path, ...] = (), **kwargs):
        self._source = source
        super().__init__(file_format="array_record", **kwargs)

    def recordings(self, source: tuple[Path, ...]) -> Iterator[tuple]:
        """Yields ``(float[rows, channels], trial, labels)`` of every recording."""
        raise NotImplementedError

    def read(self) -> list[Recording]:
        """Returns the stored recordings."""
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
        files = " and ".join(map(str, self._source))
        with naming(f"{self.name}, read from {files}"):
            yield from self._examples()

    def _examples(self):
        for index, (rows, trial, labels) in enumerate(self.recordings(self._source)):
            rows = np.ascontiguousarray(rows, self.dtype)
            if not np.isfinite(rows).all():
                raise ValueError(
                    f"recording {index} of {self.name} (trial {trial}, {labels}) must "
                    "be finite, got NaN or infinity; download its file again."
                )
            if not -(2**31) <= trial < 2**31:
                raise ValueError(
                    f"recording {index} of {self.name} ({labels}) must have an int32 "
                    f"trial, got {trial}; check its times, or download its file again."
                )
            known = {
                name: int(label) if self.dataset.attributes[name] else str(label)
                for name, label in labels.items()
            }
            yield index, {"rows": rows, "trial": trial, **known}


def _feature(names):
    """Returns the feature of an attribute: a class, or text if names are open."""
    if not names:
        return tfds.features.Text()
    return tfds.features.ClassLabel(names=list(names))
