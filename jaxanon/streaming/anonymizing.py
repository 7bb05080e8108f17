"""Anonymization of recordings: files, folders and tables in, safe ones out."""

import collections
import concurrent.futures
import contextlib
import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxanon.core.release import secret_key
from jaxanon.datasets import writing
from jaxanon.datasets.importing import cells
from jaxanon.datasets.importing.table import Columns
from jaxanon.edge.budget import Budget
from jaxanon.recordings import dialect, rates, units
from jaxanon.recordings import times as recording_times
from jaxanon.recordings.csv_rows import TIME_NAMES
from jaxanon.recordings.steady import Steady
from jaxanon.streaming import frames, sources, tables
from jaxanon.streaming.model import BatchedModel
from jaxanon.streaming.stream import COUNTS, Rows, SafeStream, Settings

TIMES = "exact", "relative", "grid"
MAX_GAP = 3.0  # Periods between rows that are interpolated, as on a device.
FAR = 20.0  # Factor of the training data's spread that suggests another unit.

EXACT_WARNING = (
    "Exact times and gaps can identify a person or device, because another log of the "
    "same hours matches them. --time relative starts each recording at 0. --time grid "
    "also hides the rhythm of the rows."
)


# Text of a row in a message on times; Python quotes an apostrophe by double quotes.
QUOTE = re.compile(r"""got (?:'.*'|".*")( in row|; give)""")

REPLACED = (
    "output_dir (--output-dir) must be another folder than that of {!r}; the raw files "
    "would be replaced."
)


class Options(NamedTuple):
    """Options of ``anonymize_recordings``; see there."""

    time: str = "exact"
    time_column: str | None = None
    time_format: str | None = None
    channels: tuple[str, ...] | None = None
    units: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    subject: str | None = None
    allow_private: bool = False
    gaps: str = "cells"
    hop: int | None = None
    rate_hz: float | None = None
    max_gap_s: float | None = None
    encoding: str | None = None


class Recording(NamedTuple):
    """Summary of one anonymized recording.

    Attributes:
      name: name of the input.
      output: path of the output; None for a table in memory.
      counts: numbers of rows (``rows``, ``released``, ``empty``, ``invalid``,
        ``duplicate``, ``late``) and of ``windows``.
      gaps: numbers of empty rows by reason.
      losses: numbers of rows that are not in the output, by cause.
      first_malformed: line of the first of them, if known.
      dropped: columns that are not in the output.
      time_format: format of the times; None without a time column.
      seen_rate_hz: rate of the rows.
      rate_hz: rate of the stream.
    """

    name: str
    output: Path | None
    counts: dict[str, int]
    gaps: dict[str, int]
    losses: dict[str, int]
    first_malformed: int | None
    dropped: tuple[str, ...]
    time_format: str | None
    seen_rate_hz: float
    rate_hz: float


class Released(NamedTuple):
    """Result of ``anonymize_recordings``.

    Attributes:
      output: the anonymized table; for files, the list of paths.
      recordings: a ``Recording`` for each.
      warnings: sentences about what the output may still reveal.
      compile_s: seconds of compilation.
    """

    output: Any
    recordings: tuple[Recording, ...]
    warnings: tuple[str, ...]
    compile_s: float


def anonymize_recordings(
    run,
    source,
    output_dir: str | os.PathLike | None = None,
    *,
    key=None,
    time: Literal["exact", "relative", "grid"] = "exact",
    time_column: str | None = None,
    time_format: str | None = None,
    channels: Sequence[str] | None = None,
    units: Sequence[str] = (),
    carry: Sequence[str] = (),
    subject: str | None = None,
    allow_private: bool = False,
    gaps: Literal["cells", "column"] = "cells",
    hop: int | None = None,
    rate_hz: float | None = None,
    max_gap_s: float | None = None,
    encoding: str | None = None,
    budget: Budget | None = None,
    overwrite: bool = False,
    progress: Callable[[int, int, str], None] | None = None,
) -> Released:
    """Anonymizes recordings, so that they can be shared.

    It is the streaming pipeline of the device runtime: rows are put on a regular grid,
    overlapping windows are anonymized and added up, and the safe signal is interpolated
    at the times of the rows. The output has the columns, order, units and dialect of
    the input. Columns that are neither times, nor channels of the model, nor named in
    ``carry`` are dropped. A row without a safe value has empty cells.

    Args:
      run: ``Run`` of an anonymizer, from ``train`` or ``open_run``.
      source: paths of files (CSV, Parquet, Feather, HDF5; CSV may be compressed by
        gzip), of zip archives, or of folders with such files; or one table: a DataFrame
        of pandas or polars, a table of pyarrow, or a dict of arrays. A folder or
        archive whose files are the sensors of channels such as ``accelerometer.x`` is
        joined by time.
      output_dir: folder for the outputs, which have the names of the inputs. Required
        for files, None for a table. An archive becomes an archive, HDF5 becomes HDF5
        with one array per column, and joined sensors become one CSV file named after
        their folder. All outputs appear together at the end; after an error, none of
        them appears.
      key: typed PRNG key; None draws a secret one. Noise of a known key can be
        subtracted.
      time: ``"exact"`` keeps the times to the digit, ``"relative"`` counts from the
        first row, ``"grid"`` writes a row for each point of a regular grid.
      time_column: column with the times; None looks for a usual name, such as ``time``
        or ``timestamp``. Without one, rows are ``1 / rate_hz`` apart.
      time_format: see ``recordings.times.parse``; None detects it.
      channels: columns of the model's channels, in its order; None uses their names.
      units: units of these columns, one or one per channel; the default is that of the
        header, else that of the model. Values are converted and converted back.
      carry: other columns to copy, such as an activity. Private attributes and columns
        of measurements are refused.
      subject: column with the person of each row, if a file holds several; no window
        spans two people. It is not in the output.
      allow_private: whether to accept private columns in ``carry``.
      gaps: ``"column"`` adds a column ``gap`` with the reason of each empty row.
      hop: samples between windows, at the model's rate; None is half a window.
      rate_hz: rate of the rows; None estimates it from the first rows.
      max_gap_s: longest gap between rows that is interpolated; None is three periods.
      encoding: encoding of CSV files; None detects UTF-8 and UTF-16.
      budget: ``Budget`` from ``core.release.open_budget``, charged for each window.
      overwrite: whether to replace existing files.
      progress: callback ``progress(done, total, what)``, in recordings.

    Returns:
      ``Released``.

    Raises:
      FileNotFoundError: if a file or folder does not exist.
      FileExistsError: if an output exists and ``overwrite`` is False.
      TypeError: if the run cannot anonymize, or the source has an unknown type.
      ValueError: if an option is invalid, a file cannot be read, or columns, units or
        times do not fit. No message quotes rows.

    Example:
      >>> import jaxanon as ja, jax
      >>> from jaxanon.core.run import Run
      >>> spec = ja.load("smartwatch").spec
      >>> method = ja.methods.orf(spec)
      >>> run = Run(method, method.init(jax.random.key(0)), spec, None, [], {})
      >>> rows = np.random.default_rng(0).normal(size=(300, len(spec.channels)))
      >>> table = {"time": np.arange(300) / spec.rate_hz, "mood": ["good"] * 300}
      >>> table |= dict(zip(spec.channels, rows.T))
      >>> released = anonymize_recordings(run, table)
      >>> list(released.output) == ["time", *spec.channels]
      True
    """
    options = Options(
        time=time,
        time_column=time_column,
        time_format=time_format,
        channels=None if channels is None else tuple(channels),
        units=(units,) if isinstance(units, str) else tuple(units),
        carry=(carry,) if isinstance(carry, str) else tuple(carry),
        subject=subject,
        allow_private=allow_private,
        gaps=gaps,
        hop=hop,
        rate_hz=rate_hz,
        max_gap_s=max_gap_s,
        encoding=encoding,
    )
    _check(options, run.spec)
    progress = progress or (lambda done, total, what: None)
    done, total, name, named = 0, 1, "", []

    def compiling(seconds):
        text = "compiling" if seconds is None else f"compiled in {seconds:.1f} s"
        progress(done, total, f"{name}: {text}" if name else text)

    model = BatchedModel(run, secret_key() if key is None else key, budget, compiling)
    if frames.is_table(source):
        if output_dir is not None:
            raise ValueError(
                "output_dir must be None for a table in memory; write the result."
            )
        recording = frames.open_table(source)
        collected = frames.Collected(recording)
        summary = _Anonymizing(run, recording, options, model).write_to(
            collected, "the table", None
        )
        found = (summary,)
        output = collected.table()
    else:
        paths = _paths(source)
        if output_dir is None:
            raise ValueError("output_dir must name a folder for files, got None.")
        columns = Columns(
            channels=options.channels or run.spec.channels,
            labels=options.carry,
            time=options.time_column,
            encoding=options.encoding,
        )
        pairs = _outputs(paths, Path(output_dir), overwrite, columns.channels)
        found, output, total = [], [target for _, target in pairs], len(pairs)
        with writing.replacing_all(output_dir) as part:
            for done, (path, target) in enumerate(pairs):
                staged = part / target.relative_to(output_dir)
                with sources.items(path, staged, columns) as items:
                    for item in items:
                        name = Path(item.name).name
                        progress(done, total, name)
                        work = _Anonymizing(run, item.open(), options, model)
                        summary = work.write_to(None, item.name, item.target)
                        found.append(summary._replace(output=target))
                        named.append(target.relative_to(output_dir) / item.member)
    warnings = [EXACT_WARNING] if time == "exact" else []
    warnings += _naming(named, run.spec)
    return Released(output, tuple(found), tuple(warnings), model.compile_s)


def _naming(paths, spec):
    """Returns a warning if outputs have the names of private classes or people.

    Args:
      paths: paths inside the output folder, continued inside archives.
      spec: the windows' ``Spec``.
    """
    for attribute in dict.fromkeys((*spec.private, "subject")):
        classes = {str(name).lower() for name in spec.classes.get(attribute, ())}
        stem = lambda part: part.lower().removesuffix(sources.suffix_of(Path(part)))
        count = sum(not classes.isdisjoint(map(stem, path.parts)) for path in paths)
        if count:
            return [
                f"The names of {count} of {len(paths)} outputs are classes of "
                f"{attribute!r}; rename files and folders before you share them."
            ]
    return []


def _check(options, spec):
    """Raises ValueError for options that no recording fits."""
    for name, choices in {"time": TIMES, "gaps": ("cells", "column")}.items():
        if getattr(options, name) not in choices:
            raise ValueError(
                f"{name} must be one of {list(choices)}, got "
                f"{getattr(options, name)!r}."
            )
    count = len(spec.channels)
    if options.channels is not None and len(options.channels) != count:
        raise ValueError(
            f"channels must name {count} columns, one for each of "
            f"{list(spec.channels)}, got {list(options.channels)}."
        )
    if len(options.units) not in (0, 1, count):
        raise ValueError(
            f"units must be one unit or {count}, one per channel, got "
            f"{list(options.units)}."
        )
    hop = options.hop
    if hop is not None and not (
        isinstance(hop, int) and not isinstance(hop, bool) and 1 <= hop <= spec.time
    ):
        raise ValueError(
            f"hop must be an integer in [1, {spec.time}], the length of a window, got "
            f"{hop!r}."
        )
    for name in ("rate_hz", "max_gap_s"):
        value = getattr(options, name)
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be > 0 and finite, got {value!r}.")


def _paths(source) -> list:
    """Returns the paths of a source that is not a table."""
    if isinstance(source, (str, os.PathLike)):
        return [source]
    paths = [*source] if isinstance(source, Iterable) else [source]
    if not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise TypeError(
            "source must be paths, a DataFrame of pandas or polars, a table of pyarrow "
            f"or a dict of arrays, got {type(source).__name__}."
        )
    return paths


def _outputs(paths, output_dir: Path, overwrite: bool, channels) -> list:
    """Returns the input and output path of each file, or folder of sensors."""
    folder = output_dir.resolve()
    pairs = []
    for each in map(Path, paths):
        if each.is_dir():
            if each.resolve() == folder:
                raise ValueError(REPLACED.format(str(each)))
            found = sorted(
                path
                for path in each.rglob("*")
                if path.is_file()
                and sources.suffix_of(path)
                and not any(x.startswith(".") for x in path.relative_to(each).parts)
                and folder not in path.resolve().parents
            )
            if not found:
                raise FileNotFoundError(
                    f"{str(each)!r} must hold files that end in one of "
                    f"{', '.join(sources.SUFFIXES)}, got none."
                )
            parents = dict.fromkeys(path.parent for path in found)
            joined = [x for x in parents if sources.are_sensors(x, channels)]
            for folder_of_sensors in joined:
                place = folder_of_sensors.relative_to(each)
                title = f"{folder_of_sensors.resolve().name}.csv"
                target = output_dir / place.parent / title
                pairs.append((folder_of_sensors, target))
            others = [path for path in found if path.parent not in joined]
            pairs += [
                (x, _safe_path(x, output_dir / x.relative_to(each), channels))
                for x in others
            ]
        elif each.is_file():
            pairs.append((each, _safe_path(each, output_dir / each.name, channels)))
        else:
            raise FileNotFoundError(
                f"{str(each)!r} does not exist; name a file or a folder."
            )
    if not pairs:
        raise ValueError("source must name at least one file, got none.")
    taken: dict[Path, Path] = {}
    for path, target in pairs:
        if path.resolve() == target.resolve():
            raise ValueError(REPLACED.format(str(path)))
        if target in taken:
            raise ValueError(
                f"files must have distinct names, got {str(taken[target])!r} and "
                f"{str(path)!r}; anonymize their common folder instead."
            )
        taken[target] = path
        writing.check_writable(target, overwrite)
    return pairs


def _safe_path(path, target, channels):
    """Returns the output of a file; an archive of sensors becomes one CSV file."""
    return target.with_suffix(".csv") if sources.are_sensors(path, channels) else target


class _Layout(NamedTuple):
    """Roles of a recording's columns."""

    channels: list[int]  # in the model's order
    time: int | None
    subject: int | None
    carried: list[int]
    kept: list[int]  # columns of the output, in the order of the file
    dropped: tuple[str, ...]


def _find(recording, name: str) -> int:
    """Returns the index of the one column with this name."""
    lower = [each.lower() for each in recording.names]
    for names, wanted in (
        (recording.header, name),
        (recording.names, name),
        (lower, name.lower()),
    ):
        if names.count(wanted) == 1:
            return names.index(wanted)
    # A file without a header has raw numbers in its place.
    shown = [each for each in recording.header if not dialect.is_number(each)]
    raise ValueError(
        f"{_named(recording)}: it must have exactly one column {name!r}, got the "
        f"columns {shown}; name others with channels (--channels), time_column "
        "(--time-column) or carry (--carry)."
    )


def _named(recording):
    return repr(str(recording.path))


def _layout(recording, options, spec) -> _Layout:
    """Finds the columns; refuses private ones."""
    names = options.channels or spec.channels
    channels = [_find(recording, name) for name in names]
    if len(set(channels)) < len(channels):
        raise ValueError(f"channels must be distinct columns, got {list(names)}.")
    subject = None if options.subject is None else _find(recording, options.subject)
    carried = [_find(recording, name) for name in options.carry]
    if options.gaps == "column" and "gap" in [recording.header[n] for n in carried]:
        raise ValueError(
            "carry must not name 'gap' with gaps='column' (--gaps column), which adds "
            "a column of that name; rename it."
        )
    time = _time_column(recording, options, channels)
    for index in carried:
        _refuse_private(recording, index, (*channels, time), options, spec, subject)
    kept = sorted({*channels, *carried, *(() if time is None else (time,))})
    dropped = [x for n, x in enumerate(recording.header) if n not in kept and x]
    return _Layout(channels, time, subject, carried, kept, tuple(dropped))


def _time_column(recording, options, channels):
    if options.time_column is not None:
        return _find(recording, options.time_column)
    lower = [name.lower() for name in recording.names]
    for name in TIME_NAMES:
        if lower.count(name) == 1 and lower.index(name) not in channels:
            return lower.index(name)
    if options.rate_hz is None:
        raise ValueError(
            f"{_named(recording)}: it must have a column with times, such as 'time' or "
            "'timestamp'; name it with time_column (--time-column), or give rate_hz "
            "(--rate-hz) for rows without times."
        )
    return None


def _refuse_private(recording, index, signals, options, spec, subject):
    name = recording.names[index]
    if index in signals:
        raise ValueError(
            f"carry must name columns other than times and channels, got {name!r}; "
            "omit it."
        )
    if options.allow_private:
        return
    secret = {each.lower() for each in (*spec.private, "subject")}
    if name.lower() in secret or index == subject:
        raise ValueError(
            f"carry must not name a private attribute, got {name!r}; omit it, or pass "
            "allow_private=True (--allow-private) to publish it."
        )


def _refuse_values(name, column, spec):
    """Raises ValueError if rows of a column are private classes or measurements."""
    labels = cells.labels(column)
    found = set(labels.names)
    public = set(spec.classes.get(spec.public, ()))
    for attribute in dict.fromkeys((*spec.private, "subject")):
        classes = set(spec.classes.get(attribute, ()))
        secret = found & (classes - public)
        if secret and (found <= classes or 2 * len(secret) >= len(found)):
            raise ValueError(
                f"carry must not name a private attribute, got {name!r}, whose values "
                f"are classes of {attribute!r}; omit it, or pass allow_private=True "
                "(--allow-private) to publish it."
            )
    numbers, _ = cells.numbers(np.array(labels.names, str), decimal="")
    fractions = np.count_nonzero(np.isfinite(numbers) & (numbers % 1 != 0))
    if fractions > max(2, len(labels.names) // 2):
        raise ValueError(
            f"carry must name labels, got {name!r}, a column of measurements that are "
            "not anonymized; omit it, or pass allow_private=True (--allow-private) to "
            "publish it."
        )


@contextlib.contextmanager
def _ahead(items: Iterator):
    """Yields an iterator whose next item a thread computes meanwhile."""

    def found():
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        yield found()


@contextlib.contextmanager
def _behind(write: Callable):
    """Yields ``write`` in a thread; a call waits for the previous one."""
    waiting = []

    def submit(*values):
        while waiting:
            waiting.pop().result()
        waiting.append(thread.submit(write, *values))

    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        yield submit
        while waiting:
            waiting.pop().result()


class _Anonymizing:
    """Anonymization of one recording."""

    def __init__(self, run, recording, options: Options, model: BatchedModel):
        self._spec, self._recording = run.spec, recording
        self._options, self._model = options, model
        self._layout = _layout(recording, options, run.spec)
        self._scale, self._offset = self._conversions()
        self._origin: int | None = None  # of the times, in whole seconds
        self._format = options.time_format
        if self._format is None and self._layout.time is not None:
            unit = units.find(recording.units[self._layout.time])
            if unit is not None and unit.name in recording_times.UNITS:
                self._format = unit.name
        self._settings: Settings | None = None
        self._steady: Steady | None = None
        self._stream: SafeStream | None = None
        self._person: str | None = None
        self._rows_before = 0
        self._first_time: float | None = None
        self._counts: collections.Counter[str] = collections.Counter()
        self._gaps: collections.Counter[str] = collections.Counter()
        self._seen = math.nan
        self._wrote = False
        self._held: list[list] = []  # kept columns of rows that wait
        self._held_times: list[np.ndarray] = []
        self._grid_end = -math.inf  # Last time on the grid that was written.

    def write_to(self, collected, name, target) -> Recording:
        """Anonymizes all rows; writes them to a file or collects them."""
        kept, with_gaps = self._layout.kept, self._options.gaps == "column"
        if collected is None:
            context = self._recording.writer(target, kept, with_gaps)
        else:
            context = collected.writer(kept, with_gaps)
        batches = map(self._read, self._recording.batches())
        with context as write, _behind(write) as self._write, _ahead(batches) as found:
            for batch, times, samples in found:
                self._push(batch, times, samples)
            self._close()
        layout, counts = self._layout, {n: self._counts[n] for n in COUNTS}
        return Recording(
            name=name,
            output=target,
            counts=counts,
            gaps=dict(self._gaps),
            losses=dict(self._recording.losses),
            first_malformed=self._recording.first_malformed,
            dropped=layout.dropped,
            time_format=self._format if layout.time is not None else None,
            seen_rate_hz=self._seen,
            rate_hz=math.nan if self._settings is None else self._settings.rate_hz,
        )

    def _conversions(self):
        """Returns scale and offset from the file's units to the model's."""
        spec, recording = self._spec, self._recording
        given = self._options.units
        given = given * len(spec.channels) if len(given) == 1 else given
        pairs = []
        for number, index in enumerate(self._layout.channels):
            mine = given[number] if given else recording.units[index]
            wanted = spec.units[number]
            if not mine or not wanted:
                pairs.append((1.0, 0.0))
                continue
            try:
                pairs.append(units.conversion(mine, wanted))
            except ValueError as error:
                raise ValueError(
                    f"{_named(recording)}: column {recording.header[index]!r} must be "
                    f"in a unit that converts to {wanted!r} ({error})"
                ) from None
        return (np.array(each) for each in zip(*pairs, strict=True))

    def _read(self, batch):
        """Returns a batch, and its times and samples as numbers."""
        layout, recording = self._layout, self._recording
        samples = np.empty((batch.rows, len(layout.channels)))
        for number, index in enumerate(layout.channels):
            column, decimal = batch.columns[index], recording.decimal
            samples[:, number], invalid = cells.numbers(column, decimal)
            if invalid is not None:
                recording.losses["cell that is not a number"] += int(invalid.sum())
        for index in {*layout.carried, layout.subject} - {None}:
            tables.refuse_damaged(batch.columns[index], recording, index)
        samples *= self._scale
        samples += self._offset
        times = self._times(batch)
        if layout.time is not None:
            column = batch.columns[layout.time]
            batch.columns[layout.time] = tables.without_text(column, times)
        return batch, times, samples

    def _push(self, batch, times, samples):
        layout, recording, spec = self._layout, self._recording, self._spec
        if self._first_time is None:
            known = times[np.isfinite(times)]
            self._first_time = float(known[0]) if len(known) else None
            self._check_spread(samples)
        if not self._options.allow_private:
            for index in layout.carried:
                _refuse_values(recording.names[index], batch.columns[index], spec)
        for begin, end, person in self._people(batch):
            if person != self._person or self._steady is None:
                self._end_stream()
                self._person = person
                self._steady = Steady(
                    len(spec.channels), spec.rate_hz, self._options.rate_hz
                )
                self._held, self._held_times, self._grid_end = [], [], -math.inf
            if self._options.time != "grid" or layout.carried:
                rows = slice(begin, end)
                self._held.append([batch.columns[n][rows] for n in layout.kept])
                self._held_times.append(times[rows])
            self._stream_rows(*self._steady.push(times[begin:end], samples[begin:end]))

    def _times(self, batch) -> np.ndarray:
        """Returns seconds since the recording's origin."""
        index = self._layout.time
        if index is None:
            rows = self._rows_before + np.arange(batch.rows)
            self._rows_before += batch.rows
            return rows / self._options.rate_hz
        values, _ = cells.times(batch.columns[index], self._recording.decimal)
        known = self._options.rate_hz or self._spec.rate_hz
        rate = None if known == 1.0 else known
        where = f"{_named(self._recording)}: {self._recording.header[index]!r}"
        try:
            found = recording_times.parse(values, self._format, rate, where)
        except ValueError as error:
            # A column that was named by mistake may hold raw samples.
            text = QUOTE.sub(r"got other text\1", str(error))
            raise ValueError(text) from None
        self._format = found.format
        origin = found.origin if self._origin is None else self._origin
        if np.isfinite(found.seconds).any():  # Else later rows fix it.
            self._origin = origin
        if found.origin == origin:
            return found.seconds
        return found.seconds + float(found.origin - origin)

    def _stream_rows(self, times, samples):
        """Passes rows at steady times to the stream, and writes what is final."""
        if not len(times):
            return
        if self._stream is None:
            self._settings = self._settings or self._new_settings()
            on_grid = self._options.time == "grid"
            self._stream = SafeStream(self._settings, self._model, on_grid)
        self._emit(self._stream.push(times, samples))

    def _new_settings(self):
        """Chooses the stream's rate from the first rows."""
        assert self._steady is not None
        spec, options = self._spec, self._options
        rate = options.rate_hz or rates.of_stream(self._steady.seen_hz, spec.rate_hz)
        model_hz = rate if spec.rate_hz == 1.0 else spec.rate_hz  # 1 is unknown.
        gap = MAX_GAP if options.max_gap_s is None else options.max_gap_s * rate
        hop = options.hop or max(1, spec.time // 2)
        return Settings(
            spec.time, len(spec.channels), model_hz, rate, hop, max(1.0, gap)
        )

    def _check_spread(self, samples):
        """Raises ValueError if values are on another scale than in training."""
        if len(samples) < 100:
            return
        some = samples[:: max(1, len(samples) // 4096)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # A channel without values.
            size = np.nanmedian(np.abs(some), axis=0)
        usual = np.abs(self._spec.mean) + np.array(self._spec.std)
        mean = float(np.mean(size) / np.mean(usual))
        if mean > FAR and not self._options.units:
            raise ValueError(
                f"{_named(self._recording)}: values must have the units of the "
                f"training data, {list(self._spec.units)}, got values {mean:.3g} times "
                "as large; state their units (--units)."
            )

    def _people(self, batch):
        """Yields ``(begin, end, person)`` of consecutive rows of one person."""
        if self._layout.subject is None:
            yield 0, batch.rows, None
            return
        codes, names = cells.labels(batch.columns[self._layout.subject])
        edges = np.flatnonzero(np.diff(codes)) + 1
        for begin, end in zip([0, *edges], [*edges, len(codes)], strict=True):
            if end > begin:
                code = codes[begin]
                yield int(begin), int(end), names[code] if code >= 0 else ""

    def _end_stream(self):
        if self._steady is not None:
            self._stream_rows(*self._steady.close())
        stream, self._steady, self._stream = self._stream, None, None
        if stream is None:
            return
        self._emit(stream.close())
        self._counts.update(stream.counts)
        self._gaps.update(stream.reasons)
        if math.isfinite(stream.seen_rate_hz):
            self._seen = stream.seen_rate_hz

    def _close(self):
        self._end_stream()
        if not self._wrote:  # There was no row, or none with a time and values.
            self._put(self._empty(), self._text([]) if self._with_gaps else None)

    def _put(self, columns, gaps):
        self._wrote = True
        self._write(columns, gaps)

    @property
    def _with_gaps(self):
        return self._options.gaps == "column"

    def _emit(self, found):
        """Writes rows, or blocks of the grid."""
        if isinstance(found, Rows):
            self._emit_rows(found)
        else:
            for block in found:
                self._emit_block(block)

    def _emit_rows(self, found: Rows):
        count = len(found.samples)
        columns, times = self._take(count)
        if self._options.time == "relative" and self._layout.time is not None:
            where = self._layout.kept.index(self._layout.time)
            columns[where] = self._time_text(
                times - (self._first_time or 0.0), relative=True
            )
        self._place(columns, found.samples)
        self._put(columns, self._text(found.gaps) if self._with_gaps else None)

    def _emit_block(self, block):
        """Writes the rows of a block on the grid; a long gap is one row."""
        count = len(block.samples)
        rows = max(count, 1) if block.gap else count
        if not rows:
            return
        times = block.start + np.arange(rows) / block.rate_hz
        samples = block.samples
        if block.gap:
            samples = np.full((rows, len(self._layout.channels)), np.nan, np.float32)
            self._gaps[block.gap] += rows
        self._counts["empty" if block.gap else "released"] += rows
        columns = self._columns_at(times)
        if self._layout.time is not None:
            where = self._layout.kept.index(self._layout.time)
            columns[where] = self._time_text(times, relative=False)
        self._place(columns, samples)
        gaps = np.full(rows, block.gap, object)
        self._put(columns, self._text(gaps) if self._with_gaps else None)

    def _columns_at(self, times):
        """Returns the kept columns of the last rows before the given times."""
        import pyarrow as pa

        columns: list[Any] = [None] * len(self._layout.kept)
        if not self._layout.carried:
            return columns
        known = np.nan_to_num(np.concatenate(self._held_times), nan=-math.inf)
        highest = np.maximum.accumulate(known)
        if times[0] <= self._grid_end:  # The clock was set back: its second pass.
            back = np.flatnonzero((known < highest) & (np.abs(known - times[0]) < 1e-6))
            if len(back):
                self._take(int(back[0]))
                known = known[back[0] :]
                highest = np.maximum.accumulate(known)
        self._grid_end = float(times[-1])
        indices = np.maximum(np.searchsorted(highest, times + 1e-9, "right") - 1, 0)
        indices = np.searchsorted(highest, highest[indices])  # Not a later, late row.
        for number, index in enumerate(self._layout.kept):
            if index in self._layout.carried:
                whole = pa.chunked_array([each[number] for each in self._held])
                columns[number] = _combined(whole.take(pa.array(indices)))
        self._forget(int(indices[-1]))
        return columns

    def _forget(self, count):
        """Drops whole batches of held rows before row ``count``."""
        while len(self._held_times) > 1 and count >= 2 * len(self._held_times[0]):
            count -= len(self._held_times[0])
            self._held.pop(0)
            self._held_times.pop(0)

    def _take(self, count):
        """Returns and forgets the kept columns and times of the next rows."""
        import pyarrow as pa

        taken: list[list] = [[] for _ in self._layout.kept]
        times = [np.zeros(0)]
        if count == 0 and self._held:
            taken = [[column.slice(0, 0)] for column in self._held[0]]
        while count:
            columns, first = self._held[0], self._held_times[0]
            part = min(count, len(first))
            for parts, column in zip(taken, columns, strict=True):
                parts.append(column.slice(0, part))
            times.append(first[:part])
            if part == len(first):
                self._held.pop(0)
                self._held_times.pop(0)
            else:
                self._held[0] = [column.slice(part) for column in columns]
                self._held_times[0] = first[part:]
            count -= part
        columns: list[Any] = [
            parts[0] if len(parts) == 1 else pa.concat_arrays(parts) if parts else None
            for parts in taken
        ]
        return columns, np.concatenate(times)

    def _place(self, columns, samples):
        """Puts the safe samples into the columns, in the units of the file."""
        for number, index in enumerate(self._layout.channels):
            values = samples[:, number]
            scale, offset = self._scale[number], self._offset[number]
            if (scale, offset) != (1.0, 0.0):
                values = ((values.astype(np.float64) - offset) / scale).astype(
                    np.float32
                )
            columns[self._layout.kept.index(index)] = values

    def _empty(self):
        columns: list[Any] = [self._recording.empty(n) for n in self._layout.kept]
        self._place(columns, np.zeros((0, len(self._layout.channels)), np.float32))
        return columns

    def _text(self, gaps):
        import pyarrow as pa

        return pa.array(list(gaps), "string")

    def _time_text(self, seconds, relative):
        """Returns times in the file's format; dates become seconds if relative."""
        index = self._layout.time
        scale = recording_times.UNITS.get(self._format or "s")
        origin = 0 if relative else (self._origin or 0)
        if scale is not None or relative:
            scale = scale or 1
            digits, unknown = (
                max(0, 6 - round(math.log10(scale))),
                ~np.isfinite(seconds),
            )
            ticks = np.round(np.where(unknown, 0, seconds) * scale, digits)
            if digits == 0:  # Whole, because large numbers have no digit to spare.
                values = ticks.astype(np.int64) + origin * scale
            else:
                values = np.round(ticks + float(origin * scale), digits)
            return self._recording.times_text(values, index, unknown)
        ticks = np.round(seconds * 1e6).astype(np.int64) + origin * 10**6
        return self._recording.times_text(ticks.astype("datetime64[us]"), index)


def _combined(column):
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else column.combine_chunks()
