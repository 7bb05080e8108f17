"""TFDS builder of CIFAR-10, from TFDS's prepared files or the published archive."""

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from jaxanon.datasets.builder import RecordingsBuilder
from jaxanon.datasets.cifar10.description import CLASSES, DATASET, SIDE
from jaxanon.datasets.cifar10.location import BATCHES, PREPARED, REMEDY
from jaxanon.datasets.sources import listing, read_each

TRIALS = {"train": 1, "test": 2}
PIXELS = SIDE**2


class Builder(RecordingsBuilder):
    """Reads TFDS's array_record files, or ``*_batch*.bin`` in a tar, zip or folder."""

    name = "cifar10"
    dataset = DATASET
    num_channels = 3
    dtype = np.uint8

    def recordings(self, source: tuple[Path, ...]):
        """Yields one recording of concatenated photographs per side and class."""
        (path,) = source
        prepared = path.is_dir() and listing([path], PREPARED)
        for side, trial in TRIALS.items():
            read = prepared_images if prepared else published_images
            images, labels = read(path, side)
            for label in range(len(CLASSES)):
                rows = images[labels == label].reshape(-1, 3)
                if len(rows):
                    yield rows, trial, {"object": label, "subject": 0}


def prepared_images(path: Path, side: str):
    """Reads images ``uint8[N, 32, 32, 3]`` and labels ``int[N]`` prepared by TFDS."""
    builder = tfds.builder_from_directory(str(path))
    examples: list[Any] = list(builder.as_data_source(split=side))
    images = np.stack([example["image"] for example in examples])
    return images, np.array([int(example["label"]) for example in examples])


def published_images(path: Path, side: str):
    """Reads images and labels of the published archive.

    A photograph is a byte for the class and 1,024 bytes for each colour.
    """
    prefix = "data" if side == "train" else side
    batches = [
        np.frombuffer(_checked(name, content), np.uint8).reshape(-1, 1 + 3 * PIXELS)
        for name, kind, content in _batches(path)
        if kind == prefix
    ]
    if not batches:
        raise ValueError(f"{path} has no {prefix}_batch of CIFAR-10; {REMEDY}")
    rows = np.concatenate(batches)
    planes = rows[:, 1:].reshape(-1, 3, SIDE, SIDE)
    return planes.transpose(0, 2, 3, 1), rows[:, 0]


def _batches(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yields name, side and content of each batch, in order of names."""
    if path.is_dir() or not tarfile.is_tarfile(path):
        for match, content in read_each([path], BATCHES):
            yield match.string, match.group(1), content
        return
    with tarfile.open(path) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            file = archive.extractfile(member)
            match = re.search(BATCHES, member.name)
            if match is not None and file is not None:
                yield member.name, match.group(1), file.read()


def _checked(name: str, content: bytes) -> bytes:
    size = 1 + 3 * PIXELS
    labels = np.frombuffer(content, np.uint8)[::size]
    if not content or len(content) % size or labels.max() >= len(CLASSES):
        raise ValueError(
            f"{name} must hold photographs of {size} bytes, the first a class below "
            "10, but is truncated or part of CIFAR-100; download the archive again."
        )
    return content
