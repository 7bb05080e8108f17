"""Recordings in files, cut into windows of one rate in an ``.npz`` file."""

import collections
import concurrent.futures
import contextlib
import inspect
import io
import math
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxanon.datasets import writing
from jaxanon.datasets.custom_arrays import ENDING
from jaxanon.datasets.importing import binning, summary
from jaxanon.datasets.importing.cutting import Cutter
from jaxanon.datasets.importing.options import Options, check
from jaxanon.datasets.importing.people import attributes, read_people
from jaxanon.datasets.importing.stretches import (
    CHUNK,
    SAME,
    pieces,
    recordings,
    split,
)
from jaxanon.datasets.importing.table import Table
from jaxanon.recordings import rates

WINDOWS = "windows.npy"  # Member of a file of windows.
MAX_RATIO = 20  # Rates that differ by more are of times in different units.


class Rated(NamedTuple):
    """A recording that is long enough for a window, and its rate."""

    source: str
    rate_hz: float


def to_windows(
    tables: Callable[[], Iterable[Table]],
    options: Options,
    people: Mapping[str, Mapping[str, str]] | None = None,
    add: Callable[[np.ndarray], object] | None = None,
) -> tuple[dict[str, np.ndarray], dict]:
    """Cuts tables into windows at one rate.

    Args:
      tables: returns the tables; called a second time if a later table has a lower rate
        than the first.
      options: lengths, rate and other settings.
      people: further attributes and their classes by person.
      add: consumer of ``float32[n, length, channels]``, called with 0 windows if
        earlier ones are void. None returns ``windows`` among the arrays.

    Returns:
      The arrays of a custom file (see ``jaxanon.datasets.custom``) and the summary.

    Raises:
      ValueError: if rates do not fit, a person or class has no window and
        ``options.allow_lost`` is False, or a person is missing in ``people``.
    """
    held: list[np.ndarray] = []

    def hold(windows):
        if not len(windows):
            held.clear()
        held.append(windows)

    sink = hold if add is None else add
    to_hz = options.rate_hz
    converter = _Converter(options, people, to_hz, sink)
    for table in tables():
        converter.read(table)
    lowest = _common_rate(converter, options)
    if lowest is not None:
        sink(np.zeros((0, options.length, 0), np.float32))
        converter = _Converter(options, people, lowest, sink)
        for table in tables():
            converter.read(table)
    arrays, about = converter.finish()
    if add is None:
        arrays["windows"] = np.concatenate([each for each in held if len(each)])
    return arrays, about


def _common_rate(converter, options):
    """Returns the lowest rate if it is not the one in use; checks all rates."""
    found = [each for each in converter.rated if each.rate_hz > 0]
    if not found:
        return None
    low = min(found, key=lambda each: each.rate_hz)
    high = max(found, key=lambda each: each.rate_hz)
    differ = high.rate_hz > low.rate_hz * (1 + SAME)
    if options.rate_hz is not None:
        _check_rate(found, options)
        return None
    if differ and (not options.resample or high.rate_hz > low.rate_hz * MAX_RATIO):
        raise ValueError(_different(found, options))
    if low.rate_hz * (1 + SAME) < converter.to_hz:
        return low.rate_hz
    return None


def _check_rate(found, options):
    """Raises ValueError if recordings do not fit the rate that was given."""
    wanted = options.rate_hz
    for each in found:
        ratio = wanted / each.rate_hz
        if 1 / (1 + SAME) <= ratio <= 1 + SAME:
            continue
        if not options.resample:
            raise ValueError(
                f"rate_hz must agree with the times, which give {each.rate_hz:.4g} Hz "
                f"in {each.source}, got {wanted:g}; omit it, or allow resampling "
                "(resample=True, --resample yes)."
            )
        if ratio > MAX_RATIO:
            raise ValueError(
                f"rate_hz must fit the times, which give {each.rate_hz:.4g} Hz in "
                f"{each.source}, got {wanted:g}; are the times in another unit "
                "(time_format, --time-format)?"
            )


def _different(found, options):
    by_rate = sorted({(each.rate_hz, each.source) for each in found})
    texts = [f"{source} at {rate:.4g} Hz" for rate, source in by_rate]
    if len(texts) > 6:
        texts = [*texts[:3], f"{len(texts) - 6} more", *texts[-3:]]
    units = by_rate[-1][0] > by_rate[0][0] * MAX_RATIO
    return f"paths must be files of one sampling rate, got {', '.join(texts)}; " + (
        "are the times of some in another unit (time_format, --time-format)? If not, "
        "give the common rate (rate_hz, --rate-hz)."
        if units and options.resample
        else "import them separately, or allow resampling (resample=True, "
        "--resample yes)."
    )


class _Converter:
    """State of one pass over the tables."""

    def __init__(self, options, people, to_hz, add):
        self.options, self._people, self.to_hz = options, people, to_hz
        self.tally = summary.Tally()
        self.rated: list[Rated] = []
        self._add, self._void = add, False
        self._classes: dict[str, dict[str, int]] = {}
        self._seen: dict[str, collections.Counter[str]] = {}
        self._labels: dict[str, list[np.ndarray]] = {}
        self._channels: tuple[str, ...] = ()
        self._units: tuple[str, ...] = ()
        self._stems: dict[str, str] = {}

    def read(self, table: Table) -> None:
        """Adds the windows of a table."""
        options, tally = self.options, self.tally
        if not self._channels:
            self._channels, self._units = table.channels, table.units
        _check_same(table, self._channels, self._units)
        if table.subject is None:
            other = self._stems.setdefault(table.stem, table.source)
            if other != table.source:
                raise ValueError(
                    "paths must have distinct file names, which name the persons, got "
                    f"{other} and {table.source}; rename a file, or give a column with "
                    "the person of each row (subject)."
                )
        table = binning.bin_table(table, options.bins)
        tally.rows += len(table.samples) + sum(table.losses.values())
        for cause, rows in table.losses.items():
            line = table.first_lines.get(cause)
            tally.lose(cause, rows, table.source, line)
        tally.sparse |= table.sparse
        for name, label in table.labels.items():
            self._see(name, label.names, label.codes)
        if table.subject is None:
            self._seen.setdefault("subject", collections.Counter())[table.stem] += len(
                table.samples
            )
        else:
            self._see("subject", table.subject.names, table.subject.codes)
        rate_hz = options.row_rate_hz if table.times is None else options.rate_hz
        if rate_hz is None and table.times is None:
            raise ValueError(
                f"{table.source}: rate_hz (--rate-hz, rows per second) must be given "
                "for rows without times, got None."
            )
        for each in recordings(table, rate_hz, options.time_format, tally):
            self._convert(table, each)

    def _see(self, name, names, codes):
        """Counts the rows of each class."""
        counts = np.zeros(len(names), np.int64)
        for begin in range(0, len(codes), CHUNK):
            some = codes[begin : begin + CHUNK]
            some = some if some.min() >= 0 else some[some >= 0]
            counts += np.bincount(some, minlength=len(names))
        seen = self._seen.setdefault(name, collections.Counter())
        for each, count in zip(names, counts.tolist(), strict=True):
            if count:
                seen[each] += count

    def _convert(self, table, recording):
        options, tally = self.options, self.tally
        hz = recording.rate.rate_hz
        own = rates.nominal(hz) if hz > 0 and math.isfinite(hz) else 0.0
        file = {
            "file": Path(table.source).name,
            "person": recording.person,
            "rows": len(recording.seconds),
            "rate_hz": own,
            "times": recording.time_format,
        }
        tally.files.append(file)
        # Recordings of a lower rate than the one that was given have more points.
        more = max(1.0, (options.rate_hz or 0.0) / own) if own else 1.0
        if len(recording.seconds) * more < options.length or not own:
            short = own or len(recording.seconds) < 2
            cause = "short stretch" if short else "time that does not increase"
            tally.lose(cause, len(recording.seconds), table.source)
            return
        self.rated.append(Rated(table.source, own))
        if self.to_hz is None:
            self.to_hz = own
        if options.rate_hz is None and own * (1 + SAME) < self.to_hz:
            self._void = True  # All windows are cut again, at a lower rate.
        if options.rate_hz is None and not options.resample:
            self._void |= own > self.to_hz * (1 + SAME)
        # ``_common_rate`` rejects such a rate, which no grid can have.
        self._void |= self.to_hz > own * MAX_RATIO
        if self._void:
            return
        cutter = Cutter(options.length, options.stride, table.samples.shape[1], tally)
        max_gap_s = options.max_gap_s
        for rows, piece in pieces(recording, self.to_hz, max_gap_s, tally):
            tally.points += len(piece.rows)
            windows, codes = cutter.cut(rows, piece)
            if len(windows):
                self._add(windows)
                self._label(table, recording.person, codes)

    def _label(self, table, person, codes):
        """Stores the labels of windows as indices into ``_classes``."""
        each = split(codes, table.labels)
        for name, local in each.items():
            known = self._classes.setdefault(name, {})
            used = np.unique(local)
            index = np.zeros(len(table.labels[name].names), np.int32)
            for code in used.tolist():
                index[code] = known.setdefault(
                    table.labels[name].names[code], len(known)
                )
            self._labels.setdefault(name, []).append(index[local])
        known = self._classes.setdefault("subject", {})
        number = known.setdefault(person, len(known))
        label = np.full(len(codes), number, np.int32)
        self._labels.setdefault("subject", []).append(label)

    def finish(self):
        """Returns the arrays except ``windows``, and the summary."""
        options, tally = self.options, self.tally
        self._check_people()
        absent = {
            name: sorted(set(seen) - set(self._classes.get(name, ())))
            for name, seen in self._seen.items()
        }
        if not self._labels:
            raise ValueError(self._nothing())
        if any(absent.values()) and not options.allow_lost:
            raise ValueError(self._lost(absent))
        arrays = {}
        for name in [*(n for n in self._labels if n != "subject"), "subject"]:
            known = self._classes[name]
            order = sorted(known)
            index = np.zeros(len(known), np.int32)
            for number, each in enumerate(order):
                index[known[each]] = number
            arrays[name] = index[np.concatenate(self._labels[name])]
            arrays[name + ENDING] = np.array(order)
        if self._people:
            self._add_people(arrays)
        about = summary.describe(
            tally,
            arrays,
            [name for name in self._labels if name != "subject"],
            {
                "length": options.length,
                "stride": options.stride,
                "rate_hz": float(self.to_hz),
                "max_gap_s": options.max_gap_s,
                "channels": [*self._channels],
                "units": [*self._units],
            },
            absent,
        )
        arrays["channels"] = np.array(self._channels)
        if any(self._units):
            arrays["units"] = np.array(self._units)
        arrays["rate_hz"] = np.array(float(self.to_hz))
        return arrays, about

    def _check_people(self):
        if not self._people:
            return
        for person in self._seen.get("subject", ()):
            if person not in self._people:
                known = summary.listed(sorted(self._people))
                sources = [f["file"] for f in self.tally.files if f["person"] == person]
                raise ValueError(
                    "people must have an entry for each person, got none for "
                    f"{person!r} of {''.join(sources[:1])}; it has {known}."
                )

    def _add_people(self, arrays):
        subjects = arrays["subject" + ENDING].tolist()
        for name in attributes(self._people, (), "people"):
            values = [self._people[person][name] for person in subjects]
            values = binning.bin_names(name, values, self.options.bins)
            order = sorted(set(values))
            index = np.array([order.index(value) for value in values], np.int32)
            arrays[name] = index[arrays["subject"]]
            arrays[name + ENDING] = np.array(order)

    def _files(self):
        return summary.listed(dict.fromkeys(f["file"] for f in self.tally.files), 3)

    def _causes(self):
        return ", ".join(f"{x['rows']} {c}" for c, x in self.tally.losses.items())

    def _nothing(self):
        labels = [name for name in self._seen if name != "subject"]
        rows = self.tally.rows
        rate = f" at {self.to_hz:g} Hz" if self.to_hz else ""
        causes = self._causes()
        return (
            f"{self._files()}: a stretch of one person and one class of {labels} must "
            f"be at least as long as a window of {self.options.length} samples{rate}, "
            f"got none in {rows} rows ({causes or 'empty files'}); choose a smaller "
            "length (--length), a longer max_gap_s (--max-gap-s), or labels that "
            "change less often."
        )

    def _lost(self, absent):
        texts = [
            f"{name} {summary.listed(names)} "
            f"({sum(self._seen[name][each] for each in names)} rows)"
            for name, names in absent.items()
            if names
        ]
        causes = self._causes()
        return (
            f"{self._files()}: each person and class must have a window of "
            f"{self.options.length} samples at {self.to_hz:g} Hz, got none of "
            f"{' and '.join(texts)}; rows in no window: {causes}. Choose a smaller "
            "length (--length), or drop them with allow_lost=True (--allow-lost)."
        )


def _check_same(table, channels, units):
    if tuple(table.units) != tuple(units):
        raise ValueError(
            f"{table.source}: channels {list(channels)} must have the units "
            f"{list(units)} of the first file, got {list(table.units)}; give the units "
            "to convert to (units, --units)."
        )


class _Writer:
    """Members of an ``.npz`` file; a thread writes windows while others are cut.

    Args:
      file: the new file.
      thread: executor with one thread.
    """

    def __init__(self, file, thread):
        self._file, self._thread = file, thread
        self._shape: tuple[int, ...] = ()
        self._archive: Any = None
        self._member: Any = None
        self._written: concurrent.futures.Future | None = None

    def add(self, windows: np.ndarray) -> None:
        """Appends windows; 0 windows delete all."""
        self._wait()
        if not len(windows):
            self.close()
            return
        if self._archive is None:
            self._file.seek(0)
            self._file.truncate()
            self._archive = zipfile.ZipFile(self._file, "w", allowZip64=True)
            self._member = self._archive.open(WINDOWS, "w", force_zip64=True)
            self._shape = (0, *windows.shape[1:])
            self._member.write(_header(self._shape))
        self._shape = (self._shape[0] + len(windows), *windows.shape[1:])
        block = windows.data.cast("B")
        self._written = self._thread.submit(self._member.write, block)

    def _wait(self):
        written, self._written = self._written, None
        if written is not None:
            written.result()  # Raises if the disk is full.

    def close(self) -> None:
        """Closes the archive, complete or not."""
        if self._archive is not None:
            with contextlib.suppress(OSError):
                self._wait()
            self._member.close()
            self._archive.close()
            self._archive = None

    def write(self, arrays: dict[str, np.ndarray], about: dict) -> None:
        """Completes the windows, and writes the other members."""
        self._wait()
        self._member.close()
        self._set_shape()
        for name, array in arrays.items():
            with self._archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        self._archive.writestr(summary.MEMBER, summary.to_json(about))
        self.close()

    def _set_shape(self):
        """Replaces the header of the windows, whose number is known now."""
        old, new = _header((0, *self._shape[1:])), _header(self._shape)
        info = self._archive.getinfo(WINDOWS)
        changed = zlib.crc32(old) ^ zlib.crc32(new)
        info.CRC ^= _crc_after(changed, info.file_size - len(new))
        self._file.seek(info.header_offset)
        self._file.write(info.FileHeader(zip64=True))
        self._file.write(new)


def _header(shape):
    """Returns the header of a ``.npy`` file; its length is the same for any number."""
    file = io.BytesIO()
    description = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, description)
    return file.getvalue()


def _crc_after(crc: int, zeros: int) -> int:
    """Returns a CRC-32 without its constants after further bytes that are zero.

    It is the product with ``x ** (8 * zeros)`` modulo the polynomial of CRC-32.
    """

    def product(a, b):
        found = 0
        for bit in range(31, -1, -1):
            found ^= b if a >> bit & 1 else 0
            b = b >> 1 ^ (0xEDB88320 if b & 1 else 0)
        return found

    power = 1 << 23  # x ** 8; the highest bit is x ** 0.
    while zeros:
        crc = product(crc, power) if zeros & 1 else crc
        power, zeros = product(power, power), zeros >> 1
    return crc


def write_windows(
    tables: Callable[[], Iterable[Table]],
    output: Path,
    options: Options,
    people: Mapping[str, Mapping[str, str]] | None = None,
) -> dict:
    """Cuts tables into windows in an ``.npz`` file; returns the summary.

    Memory is bounded by one table. The file is replaced atomically.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(writing.replacing(output))
        thread = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        writer = _Writer(file, thread)
        stack.callback(writer.close)
        arrays, about = to_windows(tables, options, people, writer.add)
        writer.write(arrays, about)
    return about


def import_recordings(
    paths: Sequence,
    output,
    *,
    channels: Sequence[str] = (),
    labels: Sequence[str] = (),
    rate_hz: float | None = None,
    time: str | None = None,
    time_format: str | None = None,
    max_gap_s: float | None = None,
    resample: bool = True,
    units: Sequence[str] = (),
    subject: str | None = None,
    preset: str | None = None,
    encoding: str | None = None,
    people: str | os.PathLike | Mapping[str, Mapping[str, str]] | None = None,
    bins: Mapping[str, Sequence[float]] | None = None,
    length: int = 128,
    stride: int | None = None,
    allow_lost: bool = False,
    overwrite: bool = False,
) -> Path:
    """Cuts recordings in files into windows and writes an ``.npz`` file for ``load``.

    A recording has one row per sample. A window lies in one file, in one person and one
    class of each label. Rows with a missing number, label or time are dropped. Rows go
    through the same grid as on a device (``jaxanon.recordings.grid``): repeated and
    late rows are dropped, short gaps are interpolated, longer gaps end a stretch.
    The rate of each recording follows from its times; recordings of other rates are
    resampled to the common rate. A warning states the rows that are in no window.

    Args:
      paths: files (CSV, Parquet, Feather, HDF5), folders or zip archives of them, or
        tables in memory, in order of time for each person; see
        ``importing.reading.tables``.
      output: output path, ending in ``.npz``; missing folders are created.
      channels: columns with measurements, with or without a unit in brackets; may be
        empty with ``preset``.
      labels: columns with labels, any text; each becomes an attribute, in addition to
        those of ``people``.
      rate_hz: rate of the windows. None uses the lowest rate of the recordings.
        Required without ``time``; it is then the rate of the rows.
      time: column with times. None assumes rows without gaps.
      time_format: format of the times (see ``jaxanon.recordings.times.parse``). None
        detects it for each file.
      max_gap_s: longest gap that is interpolated, in s. None is 0.25 s or three
        periods, whichever is longer.
      resample: whether to resample recordings whose rates differ by more than 5 %;
        False raises.
      units: units of the channels: one per channel, one for all, or none.
      subject: column with the person of each row; None takes the file name without its
        suffix.
      preset: name of an app, logger or data set whose files these are; it gives columns
        and units that are not given here.
      encoding: text encoding of CSV files, also of ``people``; None detects UTF-8 and
        UTF-16.
      people: dict of further attributes and their classes by person, or the path of a
        CSV file with a column ``subject`` and one column per attribute.
      bins: bounds by attribute that divide its numbers into classes.
      length: samples per window.
      stride: samples between starts of windows; None is half of ``length``.
      allow_lost: whether persons and classes may be lost entirely.
      overwrite: whether to replace an existing file.

    Returns:
      ``output``, written atomically. It holds ``windows`` (``float32[N, length,
      channels]``), labels (``int32[N]``) and class names of each attribute and
      ``subject``, ``channels``, ``units`` if known, ``rate_hz``, and the summary
      ``import.json``.

    Raises:
      FileNotFoundError: if an input file does not exist.
      FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError: if
        ``output`` exists and ``overwrite`` is False, or cannot be written.
      TypeError: if a list is a single name or path, or a length or stride is not whole.
      ValueError: if times are ambiguous; if rates differ by more than a factor of 20;
        if a column is missing, a cell is not a number, a name is reserved, or a
        person is missing in ``people``; or if a person or class has no window.

    Example:
      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> acts = ["sit"] * 20 + ["walk"] * 20
      >>> rows = "".join(f"{i / 10},{i % 7},{act}\\n" for i, act in enumerate(acts))
      >>> _ = (folder / "ann.csv").write_text("time,acc.x,activity\\n" + rows)
      >>> path = import_recordings(
      ...     [folder / "ann.csv"], folder / "own.npz", channels=["acc.x"],
      ...     labels=["activity"], time="time", length=8)
      >>> with np.load(path) as file:
      ...     file["windows"].shape, file["rate_hz"].item(), file["activity"].tolist()
      ((8, 8, 1), 10.0, [0, 0, 0, 0, 1, 1, 1, 1])
    """
    about = run(
        paths,
        output,
        channels=channels,
        labels=labels,
        rate_hz=rate_hz,
        time=time,
        time_format=time_format,
        max_gap_s=max_gap_s,
        resample=resample,
        units=units,
        subject=subject,
        preset=preset,
        encoding=encoding,
        people=people,
        bins=bins,
        length=length,
        stride=stride,
        allow_lost=allow_lost,
        overwrite=overwrite,
    )
    if line := summary.loss_line(about):
        warnings.warn(line, UserWarning, stacklevel=2)
    return Path(output)


def run(paths, output, *, people, overwrite, **settings) -> dict:
    """Implements ``import_recordings``; returns the summary and warns of nothing."""
    output = Path(output)
    tables, options, people = _prepare(paths, output, people, settings, overwrite)
    return write_windows(tables, output, options, people)


def windows_of(sources, **settings) -> dict[str, np.ndarray]:
    """Returns the arrays of a custom file from recordings, for ``load``.

    Args:
      sources: paths, or tables in memory.
      settings: arguments of ``import_recordings``, with the same defaults.

    Raises:
      TypeError: if a setting is unknown.
      ValueError: as ``import_recordings``.
    """
    parameters = inspect.signature(import_recordings).parameters.values()
    known = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    del known["overwrite"]
    if unknown := sorted(set(settings) - set(known)):
        raise TypeError(
            f"settings of recordings must be of {sorted(known)}, got {unknown}."
        )
    settings = known | settings
    people = settings.pop("people")
    tables, options, people = _prepare(sources, None, people, settings)
    arrays, about = to_windows(tables, options, people)
    if line := summary.loss_line(about):
        warnings.warn(line, UserWarning, stacklevel=4)
    return arrays


def _prepare(paths, output, people, settings, overwrite=False):
    """Returns a function that reads the tables, the options, and people as a dict."""
    from jaxanon.datasets.importing import reading

    columns, options = check(paths, output, **settings)
    if output is not None:
        writing.check_writable(output, overwrite)
    where = "people"
    if isinstance(people, (str, os.PathLike)):
        where, people = str(people), read_people(Path(people), columns.encoding)
    names = attributes(people, (*columns.channels, *columns.labels), where)
    binning.check_bins(options.bins, (*columns.labels, *names))
    skip = [] if where == "people" else [where]
    return lambda: reading.tables(paths, columns, skip), options, people
