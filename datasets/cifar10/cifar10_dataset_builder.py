"""The TFDS builder of CIFAR-10's photographs, from TFDS's own or from its archive."""

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from etils import epath

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.cifar10.description import CLASSES, DATASET, SIDE
from jaxanon.datasets.cifar10.location import BATCHES, PREPARED, REMEDY
from jaxanon.datasets.sources import listing, read_each

TRIALS = {"train": 1, "test": 2}
PIXELS = SIDE**2


class Builder(RecordingsBuilder):
    """Reads TFDS's array_record files, or ``*_batch*.bin`` in a tar, zip or folder."""

    name = "cifar10"
    pkg_dir_path = epath.Path(__file__).parent
    code_path = epath.Path(__file__)
    dataset = DATASET
    num_channels = 3
    dtype = np.uint8

    def recordings(self, source: tuple[Path, ...]):
        """One for each side and class: its photographs, pixel by pixel, end to end."""
        (place,) = source
        prepared = place.is_dir() and listing([place], PREPARED)
        for side, trial in TRIALS.items():
            read = prepared_images if prepared else published_images
            images, labels = read(place, side)
            for label in range(len(CLASSES)):
                rows = images[labels == label].reshape(-1, 3)
                if len(rows):
                    yield rows, trial, {"object": label, "subject": 0}


def prepared_images(place: Path, side: str):
    """``uint8[N, 32, 32, 3]`` and ``int[N]`` of what TFDS prepared; no TensorFlow."""
    builder = tfds.builder_from_directory(str(place))
    found: list[Any] = list(builder.as_data_source(split=side))
    images = np.stack([example["image"] for example in found])
    return images, np.array([int(example["label"]) for example in found])


def published_images(place: Path, side: str):
    """The same of the archive: a byte for the class, and 1,024 for each colour."""
    wanted = "data" if side == "train" else side
    batches = [
        np.frombuffer(_whole(name, content), np.uint8).reshape(-1, 1 + 3 * PIXELS)
        for name, kind, content in _batches(place)
        if kind == wanted
    ]
    if not batches:
        raise ValueError(f"{place} holds no {wanted}_batch of CIFAR-10; {REMEDY}")
    rows = np.concatenate(batches)
    planes = rows[:, 1:].reshape(-1, 3, SIDE, SIDE)
    return planes.transpose(0, 2, 3, 1), rows[:, 0]


def _batches(place: Path) -> Iterator[tuple[str, str, bytes]]:
    """Name, side and content of each batch, in the order of their names."""
    if place.is_dir() or not tarfile.is_tarfile(place):
        for match, content in read_each([place], BATCHES):
            yield match.string, match.group(1), content
        return
    with tarfile.open(place) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            file = archive.extractfile(member)
            match = re.search(BATCHES, member.name)
            if match is not None and file is not None:
                yield member.name, match.group(1), file.read()


def _whole(name: str, content: bytes) -> bytes:
    size = 1 + 3 * PIXELS
    labels = np.frombuffer(content, np.uint8)[::size]
    if not content or len(content) % size or labels.max() >= len(CLASSES):
        raise ValueError(
            f"{name} is not of photographs of {size} bytes each, the first a class "
            "below 10; it is truncated or of CIFAR-100, get the archive anew."
        )
    return content
