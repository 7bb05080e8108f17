"""Recordings in zip archives and HDF5 files, and those with one file per sensor."""

import collections
import contextlib
import importlib
import io
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from jaxanon.datasets import writing
from jaxanon.datasets.importing import files, frames, reading
from jaxanon.datasets.importing.table import Columns
from jaxanon.recordings import dialect
from jaxanon.recordings.csv_rows import TIME_NAMES
from jaxanon.streaming import tables
from jaxanon.streaming.frames import TableRecording

ENTRY_TIME = 1980, 1, 1, 0, 0, 0  # Replaces the time at which an entry was written.


SUFFIXES = *tables.SUFFIXES, ".zip"


class Item(NamedTuple):
    """A recording to read, and the file to write."""

    name: str
    open: Callable[[], Any]
    target: Path
    member: str = ""  # path inside an archive


def suffix_of(path: Path) -> str:
    """Returns the suffix of a file that ``items`` reads; empty for other files."""
    return ".zip" if path.suffix.lower() == ".zip" else tables.suffix_of(path)


def are_sensors(path: Path, channels: Sequence[str]) -> bool:
    """Returns whether a folder or archive has one file for each sensor.

    Then each channel is named ``<file>.<column>``, such as ``accelerometer.x``.
    """
    stems = {name.rpartition(".")[0] for name in channels}
    if "" in stems or not (path.is_dir() or path.suffix.lower() == ".zip"):
        return False
    try:
        group = files.expand(path, _below(path))
    except ValueError:  # Reading the path gives the cause.
        return False
    if len({PurePosixPath(file.name).parent for file in group}) > 1:
        return False  # One recording would be joined from several folders.
    return reading.are_sensors(group, Columns(channels=tuple(channels)))


def _below(path) -> list[Path]:
    """Returns the files in the folders of a folder."""
    if not path.is_dir():
        return []
    return [each for each in path.rglob("*") if each.parent != path]


@contextlib.contextmanager
def items(path: Path, target: Path, columns: Columns) -> Iterator[list[Item]]:
    """Yields the recordings of a path; writes an archive's outputs at the end.

    Args:
      path: a file, a zip archive, or a folder or archive with one file per sensor.
      target: the output. It is an archive with files of the same names for an archive,
        an HDF5 file with one array per column for HDF5, and one CSV file for a folder
        or archive of sensors.
      columns: channels of the model, time and labels, to join sensors.
    """
    if are_sensors(path, columns.channels):
        yield [Item(str(path), lambda: JoinedRecording(path, columns), target)]
        return
    if path.suffix.lower() != ".zip":
        yield [Item(str(path), lambda: _open(path, columns.encoding), target)]
        return
    members = files.expand(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".safe.", dir=target.parent) as folder:
        found = []
        for number, member in enumerate(members):
            safe = Path(folder, str(number), Path(member.name).name)
            open_member = lambda member=member: _open(
                Path(member.where), columns.encoding, member
            )
            found.append(Item(member.where, open_member, safe, member.name))
        yield found
        with (
            writing.replacing(target) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for member, item in zip(members, found, strict=True):
                entry = zipfile.ZipInfo(member.name, ENTRY_TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, item.target.read_bytes())


def _open(path, encoding, member=None):
    """Opens a file, or the member of an archive."""
    if tables.suffix_of(path) in tables.HDF5:
        whole = files.File(str(path), path.name, "", path, path.read_bytes)
        return Hdf5Recording(member or whole)
    return tables.open_recording(path, encoding, member and member.read)


class Hdf5Recording(TableRecording):
    """The arrays of an HDF5 file that have one length, one column each."""

    def __init__(self, file: files.File):
        arrays = frames.hdf5_arrays(file)
        lengths = collections.Counter(len(array) for array, _ in arrays.values())
        count = max(lengths, key=lambda n: (lengths[n], n), default=0)
        arrays = {k: each for k, each in arrays.items() if len(each[0]) == count}
        super().__init__({name: _text(array) for name, (array, _) in arrays.items()})
        self.path = file.where
        stated = [unit for _, unit in arrays.values()]
        self.units = [a or b for a, b in zip(stated, self.units, strict=True)]
        self._double = [array.dtype == np.float64 for array, _ in arrays.values()]

    @contextlib.contextmanager
    def writer(self, path: Path, columns: Sequence[int], gap: bool):
        """Yields a function that collects columns, which are written at the end."""
        h5py: Any = importlib.import_module("h5py")
        parts: list[list] = []

        def write(values, gaps):
            parts.append([*values, *([] if gaps is None else [gaps])])

        yield write
        content = io.BytesIO()
        with h5py.File(content, "w") as opened:
            for number, index in enumerate([*columns, *([None] if gap else [])]):
                whole = np.concatenate([_numpy(part[number]) for part in parts])
                name = "gap" if index is None else self.header[index]
                if whole.dtype.kind in "OU":
                    whole = np.array([x or "" for x in whole], h5py.string_dtype())
                elif index is not None and self._double[index]:
                    whole = whole.astype(np.float64)
                item = opened.create_dataset(name, data=whole)
                if index is not None and self.units[index]:
                    item.attrs["units"] = self.units[index]
        writing.write(path, content.getvalue())


def _text(array):
    """Returns an array whose bytes are text."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind == "O":
        decoded = [x.decode(errors="replace") if type(x) is bytes else x for x in array]
        return np.array(decoded, object)
    return array


def _numpy(column):
    if isinstance(column, np.ndarray):
        return column
    return column.to_numpy(zero_copy_only=False)


class JoinedRecording(TableRecording, tables.CsvRecording):
    """The files of several sensors, joined by time as in an import, as one CSV file.

    It has the rows of the fastest sensor.
    """

    times_text = tables.CsvRecording.times_text

    def __init__(self, path: Path, columns: Columns):
        skip = _below(path)
        if columns.time is None:
            columns = columns._replace(time=_usual_time(files.expand(path, skip)))
        (table,) = reading.tables([path], columns, skip)
        named = zip(table.channels, table.units, strict=True)
        titles = [f"{name} [{unit}]" if unit else name for name, unit in named]
        content: dict[str, Any] = {"time": _exact(np.asarray(table.times))}
        content |= dict(zip(titles, table.samples.T, strict=True))
        for name, label in table.labels.items():
            names = np.array([*label.names, ""], object)
            content[name] = names[label.codes]
        TableRecording.__init__(self, content)
        self.path: Any = path
        self.losses.update(table.losses)
        self.dialect = dialect.Dialect(
            *("utf-8", b"", ",", ".", "\n"),
            *(tuple(self.header), tuple(self.names), tuple(self.units)),
            *(2, ()),
        )


def _usual_time(group):
    """Returns the name of the column with times of the first file; None if unknown."""
    names = frames.of_file(group[0]).names
    lower = [name.lower() for name in names]
    found = [name for name in TIME_NAMES if lower.count(name) == 1]
    return names[lower.index(found[0])] if found else None


def _exact(times):
    """Returns times as text."""
    if times.dtype.kind == "M":
        return np.datetime_as_string(times).astype(object)
    if times.dtype.kind == "f":
        known = np.isfinite(times)
        if (np.abs(times[known]) < 2**63).all() and (times[known] % 1 == 0).all():
            whole = np.where(known, times, 0).astype(np.int64)
            return np.where(known, whole.astype(str), "").astype(object)
        return np.where(known, times.astype(str), "").astype(object)
    return times.astype(str).astype(object)
