"""Files of recordings: plain, compressed, in folders and in zip archives."""

import gzip
import io
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from jaxanon.datasets.sources import expanded

TEXT = (".csv", ".tsv", ".txt", ".dat")
ARROW = (".parquet", ".pq", ".feather", ".arrow")
HDF5 = (".h5", ".hdf5", ".hdf")
SUFFIXES = (*TEXT, *ARROW, *HDF5, ".xml")


class File(NamedTuple):
    """A file with rows.

    Attributes:
      where: path for messages; of a member of an archive, both.
      name: path inside the folder or archive that was given, with slashes.
      person: name of a recording of several files: the archive, the first folder
        inside the folder that was given, or the folder of the file.
      path: path on the disk, if the file is not compressed; else None.
      read: function that returns the whole content, without compression.
    """

    where: str
    name: str
    person: str
    path: Path | None
    read: Callable[[], bytes]

    @property
    def stem(self) -> str:
        """Name without folder and suffixes."""
        return _plain(self.name)[0]

    @property
    def suffix(self) -> str:
        """Suffix in lower case, without that of a compression."""
        return _plain(self.name)[1]


def expand(source: str | os.PathLike, skip: Iterable[Path] = ()) -> list[File]:
    """Returns the files of a file, folder or zip archive, sorted by name.

    Hidden files, and files of folders and archives without a suffix in ``SUFFIXES``,
    are left out. A folder may hold archives.

    Args:
      source: path of a file, folder or archive.
      skip: files of folders to leave out.

    Raises:
      FileNotFoundError: if the path does not exist.
      ValueError: if an archive is damaged, or no file has rows.
    """
    path = expanded("paths", source)
    if not path.exists():
        raise FileNotFoundError(f"{str(path)!r} does not exist.")
    if path.is_dir():
        skipped = {each.resolve() for each in skip}
        found = []
        for each in sorted(path.rglob("*")):
            name = each.relative_to(path)
            if each.resolve() in skipped or not each.is_file() or _hidden(name):
                continue
            if each.suffix.lower() == ".zip":
                found += _members(each)
            elif _plain(each.name)[1] in SUFFIXES:
                person = name.parts[0] if name.parts[1:] else path.resolve().name
                found.append(_file(each, name.as_posix(), person))
        if not found:
            raise ValueError(
                f"{str(path)!r}: it must hold recordings ({', '.join(SUFFIXES)}, also "
                "in .gz or .zip), got none."
            )
        return found
    if path.suffix.lower() == ".zip":
        return _members(path)
    return [_file(path, path.name, path.resolve().parent.name)]


def _file(path, name, person):
    compressed = path.suffix.lower() == ".gz"

    def read():
        return (
            _unpack(path.read_bytes(), str(path)) if compressed else path.read_bytes()
        )

    return File(str(path), name, person, None if compressed else path, read)


def _unpack(data, where):
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{where}: the gzip file is damaged ({error}).") from None


def _members(path):
    """Returns the files in a zip archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
    # Damaged directories raise many kinds of errors.
    except Exception as error:
        raise ValueError(f"{path}: the zip archive is damaged ({error}).") from None
    found, names = [], set()
    for info in sorted(infos, key=lambda info: info.filename):
        name = PurePosixPath(info.filename)
        if info.is_dir() or _hidden(name) or _plain(name.name)[1] not in SUFFIXES:
            continue
        if (plain := name.as_posix().lstrip("/")) in names:
            raise ValueError(
                f"{path}: the archive must hold distinct names, got {plain!r} twice."
            )
        names.add(plain)
        where = f"{path}/{info.filename}"
        read = lambda name=info.filename, where=where: _member(path, name, where)
        found.append(File(where, plain, path.stem, None, read))
    if not found:
        raise ValueError(
            f"{path}: the archive must hold recordings ({', '.join(SUFFIXES)}), got "
            "none."
        )
    return found


def _member(path, name, where):
    try:
        with zipfile.ZipFile(path) as archive:
            data = archive.read(name)
    except FileNotFoundError:
        raise
    # Damage shows as errors of zipfile, zlib, struct and of the system.
    except Exception as error:
        raise ValueError(f"{where}: the zip archive is damaged ({error}).") from None
    return _unpack(data, where) if name.lower().endswith(".gz") else data


def _plain(name):
    """Returns the stem and the suffix of a name without a compression's suffix."""
    base = PurePosixPath(name).name
    if base.lower().endswith(".gz"):
        base = base[:-3]
    stem, suffix = os.path.splitext(base)
    return stem, suffix.lower()


def _hidden(name):
    return any(part.startswith((".", "__MACOSX")) for part in name.parts)


def buffer(file: File):
    """Returns what pyarrow and h5py open: the path, or the content in memory."""
    return str(file.path) if file.path is not None else io.BytesIO(file.read())
