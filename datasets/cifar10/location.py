"""Location of CIFAR-10: TFDS's prepared files, the archive, or a download."""

import hashlib
import os
import re
from pathlib import Path

from jaxanon.datasets import download, sources

HOME = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
COMPLETE = (
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"  # SHA-256.
)
ARCHIVE = r"(?:^|/)cifar-10-binary\.tar\.gz$"
BATCHES = r"(?:^|/)(data|test)_batch(?:_[1-5])?\.bin$"
PREPARED = r"(?:^|/)cifar10-(?:train|test)\.(array_record|tfrecord)"
FILES = f"{PREPARED}|{BATCHES}|{ARCHIVE}"
REMEDY = (
    f"download {HOME} and pass source=FILE (--source FILE), or pass the folder with "
    "its content, or the folder in which TFDS prepared cifar10 with "
    "file_format='array_record'; or put one of them into $JAXANON_DATA/cifar10."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """Finds or downloads the archive, its content, or TFDS's prepared folder."""
    path = sources.find("cifar10", source, FILES)
    if path is None:
        prepared = os.environ.get("TFDS_DATA_DIR", "~/tensorflow_datasets")
        prepared = Path(os.path.expanduser(prepared)) / "cifar10"
        if prepared.is_dir() and sources.listing([prepared], PREPARED):
            path = prepared
        else:
            path = _fetch(cache / "downloads" / "cifar10")
    if not path.is_dir():
        return (path,)
    names = [name for name, *_ in sources.listing([path], FILES)]
    formats = {m.group(1): name for name in names if (m := re.search(PREPARED, name))}
    if "array_record" in formats:
        return ((path / formats["array_record"]).parent,)
    if set(formats) and len(formats) == len(names):
        raise ValueError(
            f"{path} must hold cifar10 as array_record, got TFRecord, which requires "
            f"TensorFlow; prepare it with file_format='array_record', or {REMEDY}"
        )
    archives = [name for name in names if re.search(ARCHIVE, name)]
    return (path / archives[0],) if archives else (path,)


def _fetch(folder: Path) -> Path:
    archive = download.fetch(HOME, folder / "cifar-10-binary.tar.gz", REMEDY)
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != COMPLETE:
        raise ValueError(
            f"the download {archive} must have the expected SHA-256, but differs; "
            f"delete it, {REMEDY}"
        )
    return archive
