"""Where CIFAR-10 lies: as TFDS prepared it, as it was published, or at its home."""

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
    f"get {HOME} and pass source=FILE (--source FILE), or the folder of what it holds, "
    "or source=FOLDER where TFDS prepared cifar10 with file_format='array_record'; or "
    "put one of them into $JAXANON_DATA/cifar10."
)


def locate(source, cache: Path) -> tuple[Path, ...]:
    """The archive, or the folder or zip of its files, or the folder that TFDS made."""
    found = sources.find("cifar10", source, FILES)
    if found is None:
        prepared = Path(os.environ.get("TFDS_DATA_DIR", "~/tensorflow_datasets"))
        prepared = prepared.expanduser() / "cifar10"
        if prepared.is_dir() and sources.listing([prepared], PREPARED):
            found = prepared
        else:
            found = _fetch(cache / "downloads" / "cifar10")
    if not found.is_dir():
        return (found,)
    names = [name for name, *_ in sources.listing([found], FILES)]
    formats = {m.group(1): name for name in names if (m := re.search(PREPARED, name))}
    if "array_record" in formats:
        return ((found / formats["array_record"]).parent,)
    if set(formats) and len(formats) == len(names):
        raise ValueError(
            f"{found} holds cifar10 as TFRecord, which is not to be read without "
            f"TensorFlow; prepare it with file_format='array_record', or {REMEDY}"
        )
    archives = [name for name in names if re.search(ARCHIVE, name)]
    return (found / archives[0],) if archives else (found,)


def _fetch(folder: Path) -> Path:
    archive = download.fetch(HOME, folder / "cifar-10-binary.tar.gz", REMEDY)
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != COMPLETE:
        raise ValueError(
            f"{archive}, just downloaded, is not the archive that this loader knows; "
            f"delete it, {REMEDY}"
        )
    return archive
