"""Recordings as tables of the selected columns, one table at a time."""

import collections
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from jaxanon.datasets.importing import cells, csv_file, files, frames, joining, presets
from jaxanon.datasets.importing.files import File
from jaxanon.datasets.importing.frames import Frame
from jaxanon.datasets.importing.table import Columns, Labels, Table
from jaxanon.recordings import dialect as dialects
from jaxanon.recordings import times, units

INVALID = "cell that is not a number"  # Cause of losses.


class Source(NamedTuple):
    """One recording before it is read.

    Attributes:
      where: name for messages.
      stem: name of the person, unless a column holds it.
      frames: function without arguments by name of the sensor; a single file or object
        has one, named by an empty text.
      place: labels that the path states; may hold ``subject``.
    """

    where: str
    stem: str
    frames: dict[str, Callable[[], Frame]]
    place: dict[str, str]


def tables(
    sources: Iterable, columns: Columns, skip: Iterable[str | os.PathLike] = ()
) -> Iterator[Table]:
    """Yields one table of the selected columns for each recording.

    Only one recording is in memory at a time. All tables have the same channels and
    units. Numbers in other units of the same quantity are converted; ``mg`` becomes
    ``g``, for example.

    Args:
      sources: paths of files (CSV, Parquet, Feather, HDF5; also in ``.gz``), folders
        and zip archives, or tables in memory, as in ``frames.of_object``. A mapping of
        names to such tables holds one person each. Files of one folder are joined by
        time if channels are named ``<file>.<column>``, such as ``accelerometer.x``.
      columns: columns to read.
      skip: files of folders to leave out, such as a table of people.

    Raises:
      FileNotFoundError: if a path does not exist.
      ImportError: if a file needs a package that is missing.
      TypeError: if a source is not a table.
      ValueError: if a file is damaged, lacks a column, or holds mostly rows that cannot
        be read; or units differ. The message names the file, and never quotes its rows.

    Example:
      >>> table = {"time": np.arange(4) / 10, "x [mg]": np.array([1, 2, 3, 4.0])}
      >>> (found,) = tables([table], Columns(channels=("x",), time="time"))
      >>> found.samples[:, 0], found.units
      (array([0.001, 0.002, 0.003, 0.004]), ('g',))
    """
    preset = presets.find(columns.format)
    if not columns.channels and not preset.channel_sets:
        raise ValueError("channels must name at least one column, got none.")
    shared = None  # Channels and units of the first table.
    for source in _sources(sources, columns, preset, [Path(each) for each in skip]):
        joined = len(source.frames) > 1
        read = _read_joined if joined else _read_single
        table = read(source, columns, preset)
        table = _with_place(table, source, columns, preset)
        table, shared = _with_units(table, columns, preset, shared)
        columns = columns._replace(channels=table.channels)
        yield table


def _sources(sources, columns, preset, skip):
    """Yields the recordings in all sources."""
    found: list[File] = []
    for index, source in enumerate(sources):
        if isinstance(source, str | os.PathLike):
            found += files.expand(source, skip)
            continue
        yield from _grouped(found, columns, preset)
        found = []
        yield from _objects(source, index, columns)
    yield from _grouped(found, columns, preset)


def _objects(source, index, columns):
    """Yields tables in memory; a mapping of tables holds one person each."""
    named = {f"table {index + 1}": source}
    if isinstance(source, Mapping) and source and all(map(_is_table, source.values())):
        named = {str(name): value for name, value in source.items()}
    for name, value in named.items():
        frame = frames.of_object(value, name, columns.channels)
        yield Source(name, name, {"": lambda frame=frame: frame}, {})


def _is_table(value):
    kinds = ("iloc", "to_arrow", "features", "column_names")
    is_array = isinstance(value, np.ndarray) and (value.ndim == 2 or value.dtype.names)
    is_frame = any(hasattr(value, kind) for kind in kinds) and not hasattr(
        value, "name"
    )
    return isinstance(value, Mapping) or is_array or is_frame


def _grouped(found, columns, preset):
    """Yields files, or folders of one file per sensor, as recordings."""
    if preset.place:
        matching = [f for f in found if _place(f, preset) is not None]
        if found and not matching:
            raise ValueError(
                f"{found[0].where}: paths must be those of {preset.title}, got "
                f"{len(found)} other files."
            )
        found = matching
    folder = lambda file: str(PurePosixPath(file.where).parent)
    for _, group in itertools.groupby(found, folder):
        group = list(group)
        if preset.joined or are_sensors(group, columns):
            where = folder(group[0]) if len(group) > 1 else group[0].where
            opened = {f.stem: _opener(f, columns, preset) for f in group}
            yield Source(where, group[0].person, opened, {})
            continue
        for file in group:
            place = _place(file, preset) or {}
            stem = file.stem
            if preset.frame is not None and stem.lower().startswith("export"):
                stem = file.person  # Exports of Apple Health have one name.
            yield Source(file.where, stem, {"": _opener(file, columns, preset)}, place)


def _opener(file, columns, preset):
    read = preset.frame or frames.of_file
    return lambda: read(file, columns.encoding)


def _place(file, preset):
    """Returns what the path of a file states; None if it is another file."""
    if preset.place is None:
        return {}
    match = re.search(preset.place, file.where.replace(os.sep, "/"))
    return None if match is None else match.groupdict()


def are_sensors(group, columns):
    """Returns whether all channels are named after files of the group."""
    stems = {file.stem.casefold() for file in group}
    first = {name.rpartition(".")[0].casefold() for name in columns.channels}
    return len(group) > 1 and "" not in first and first <= stems


def _read_single(source, columns, preset):
    """Returns the table of one file or object."""
    ((sensor, opened),) = source.frames.items()
    frame = opened()
    if not columns.channels:
        columns = columns._replace(channels=_default_channels(frame, sensor, preset))
    find = lambda name: _find(frame, name, sensor)
    channels = [find(name) for name in columns.channels]
    labels = {
        name: find(name) for name in _labels(columns, preset, source.place, frame)
    }
    time = _time(frame, columns, preset)
    subject = columns.subject
    if subject is None and preset.subject in frame.names:
        subject = preset.subject
    subject = None if subject is None else find(subject)
    table = _table(
        frame,
        source.stem,
        columns.channels,
        channels,
        labels,
        time,
        subject,
        [_unit(frame, n, preset, sensor) for n in channels],
    )
    if time is None:
        return table if preset.rate_hz is None else _with_rate(table, preset.rate_hz)
    return table._replace(time_format=_time_format(frame, time, preset, table))


def _time_format(frame, time, preset, table):
    """Returns the format of times that file or preset states; None if neither does."""
    if table.times.dtype.kind == "M":
        return "iso"
    unit = units.find(frame.units[time])
    if unit is not None and unit.name in times.UNITS:
        return unit.name
    is_first = frame.names[time] == (preset.time or ("",))[0]
    return frame.time_format or (preset.time_format if is_first else None)


def _with_rate(table, rate_hz):
    seconds = np.arange(len(table.samples)) / rate_hz
    return table._replace(times=seconds, time_format="s")


def _default_channels(frame, sensor, preset):
    for names in preset.channel_sets:
        if all(_index(frame, name, sensor) is not None for name in names):
            return names
    wanted = " or ".join(str(list(names)) for names in preset.channel_sets)
    raise ValueError(
        f"{frame.where!r}: a file of {preset.title} must have the columns {wanted}, "
        f"got {_shown(frame)}; give channels."
    )


def _labels(columns, preset, place, frame):
    """Returns the names of the label columns to read from a frame."""
    if columns.labels:
        return [name for name in columns.labels if name not in place]
    return [name for name in preset.labels if name in frame.names]


def _time(frame, columns, preset):
    """Returns the index of the time column; None if rows have no times."""
    if columns.time is not None:
        return _find(frame, columns.time)
    for name in preset.time:
        if (index := frame.find(name)) is not None:
            return index
    if preset.time:
        raise ValueError(
            f"{frame.where!r}: a file of {preset.title} must have a time column "
            f"({', '.join(preset.time)}), got {_shown(frame)}; give time (--time)."
        )
    return None


def _unit(frame, index, preset, sensor=""):
    """Returns the unit of a column, from its header or the preset."""
    if frame.units[index]:
        return frame.units[index]
    names = frame.names[index], f"{sensor}.{frame.names[index]}"
    for pattern, unit in preset.units:
        if any(re.fullmatch(pattern, name, re.IGNORECASE) for name in names):
            return unit
    return ""


def _index(frame, name, sensor=""):
    """Returns the index of a column, also by ``<sensor>.<column>``; None if unknown."""
    index = frame.find(name)
    prefix = f"{sensor}."
    if index is None and name.casefold().startswith(prefix.casefold()):
        index = frame.find(name[len(prefix) :])
    return index


def _find(frame, name, sensor=""):
    index = _index(frame, name, sensor)
    if index is None:
        raise ValueError(
            f"{frame.where!r}: it must have exactly one column {name!r}, got the "
            f"columns {_shown(frame)}."
        )
    return index


def _shown(frame):
    """Returns the names of columns for messages; numbers may be samples."""
    names = [name for name in frame.header if name and not dialects.is_number(name)]
    return names if len(names) <= 30 else [*names[:30], f"and {len(names) - 30} more"]


def _table(frame, stem, names, channels, labels, time, subject, its_units):
    """Fetches and converts columns; drops invalid rows if there are times."""
    where = frame.where
    texts = [*labels.values(), *(() if subject is None else (subject,))]
    count, parts = frame.parts(channels, texts, time)
    losses: collections.Counter[str] = collections.Counter()
    first_lines: dict[str, int | None] = {}
    samples = np.zeros((0, len(channels)))
    stamps, codes, bad = [], {n: [] for n in texts}, {}
    begin, line_of = 0, lambda row: row + 1
    for found in parts:
        if found.malformed:
            _raise_if_malformed(found, count, frame)
            first_lines[csv_file.MALFORMED] = found.first_malformed
            if time is not None:
                losses[csv_file.MALFORMED] = found.malformed
        line_of = found.line_of
        some = [*channels, *texts, *(() if time is None else (time,))]
        rows = slice(begin, begin + len(found.columns[some[0]]))
        if not begin:
            is_single = all(cells.is_single(found.columns[n]) for n in channels)
            dtype = np.float32 if is_single else np.float64
            samples = np.empty((count, len(channels)), dtype, order="F")
        for index, n in enumerate(channels):
            values, invalid = cells.numbers(found.columns[n], frame.decimal)
            samples[rows, index] = values
            del some[0], values
            if n not in some:  # Free its memory.
                del found.columns[n]
            if invalid is not None:
                bad.setdefault(index, np.zeros(count, bool))[rows] = invalid
        if time is not None:
            values, invalid = cells.times(found.columns[time], frame.decimal)
            stamps.append(values)
            if invalid is not None:
                bad.setdefault(-1, np.zeros(count, bool))[rows] = invalid
        for n in codes:
            codes[n].append(cells.labels(found.columns[n]))
        begin = rows.stop
    if begin != count:
        raise ValueError(
            f"{where}: it must hold the {count} rows that it states, got {begin}; "
            "write it again."
        )
    for index, invalid in bad.items():
        if index >= 0:
            _raise_if_most(invalid, names[index], where, line_of)
    its_times = None
    if time is not None:
        its_times = stamps[0] if len(stamps) == 1 else np.concatenate(stamps or [[]])
        del stamps
    its_labels = {name: cells.joined(codes[n]) for name, n in labels.items()}
    person = None if subject is None else cells.joined(codes[subject])
    if bad:
        wrong = np.any([*bad.values()], axis=0)
        first_lines[INVALID] = line_of(int(np.argmax(wrong)))
        if its_times is not None:
            losses[INVALID] = int(wrong.sum())
            samples, its_times = samples[~wrong], its_times[~wrong]
            keep = lambda each: each._replace(codes=each.codes[~wrong])
            its_labels = {name: keep(each) for name, each in its_labels.items()}
            person = None if person is None else keep(person)
    return Table(
        source=where,
        samples=samples,
        channels=tuple(names),
        units=tuple(its_units),
        times=its_times,
        labels=its_labels,
        subject=person,
        stem=stem,
        losses=losses,
        first_lines=first_lines,
    )


def _raise_if_malformed(found, count, frame):
    if found.malformed > count / 2:
        raise ValueError(
            f"{frame.where}, line {found.first_malformed}: a row must have "
            f"{len(frame.header)} cells, like the header, got other rows in "
            f"{found.malformed} cases; repair the file, or check its delimiter."
        )


def _raise_if_most(invalid, name, where, line_of):
    if 2 * np.count_nonzero(invalid) > len(invalid):
        raise ValueError(
            f"{where}, line {line_of(int(np.argmax(invalid)))}: {name} must be a "
            f"number, or empty, got other text in {np.count_nonzero(invalid)} of "
            f"{len(invalid)} rows; choose another column."
        )


def _read_joined(source, columns, preset):
    """Returns the table of a recording with one file per sensor."""
    opened: dict[str, Frame] = {}

    def frame(sensor):
        if sensor not in opened:
            opened[sensor] = source.frames[sensor]()
        return opened[sensor]

    sensors = {sensor.casefold(): sensor for sensor in source.frames}

    def locate(name):
        """Returns the sensor and the column of a channel or label."""
        stem, _, _ = name.rpartition(".")
        for part in (stem, name):  # A file of one column has its name.
            if (sensor := sensors.get(part.casefold())) is not None:
                inside = name[len(part) + 1 :] or name
                index = frame(sensor).find(inside)
                if index is not None:
                    return sensor, index
        places = []
        for sensor in source.frames:
            if (index := frame(sensor).find(name)) is not None:
                places.append((sensor, index))
        return places[0] if len(places) == 1 else None

    names = columns.channels
    if not names:
        sets = [each for each in preset.channel_sets if all(map(locate, each))]
        names = sets[0] if sets else preset.channel_sets[0]
    labels = columns.labels or preset.labels
    found = {name: locate(name) for name in (*names, *labels)}
    lost = [name for name, place in found.items() if place is None]
    if lost:
        raise ValueError(
            f"{source.where!r}: exactly one file must have the column {lost[0]!r}, got "
            f"the files {sorted(source.frames)}; name a column <file>.<column>."
        )
    places = {name: place for name, place in found.items() if place is not None}
    read, used = [], dict.fromkeys(sensor for sensor, _ in places.values())
    for sensor in used:
        its = [name for name in names if places[name][0] == sensor]
        its_labels = {n: places[n][1] for n in labels if places[n][0] == sensor}
        own = frame(sensor)
        time = _time(own, columns, preset)
        if time is None:
            raise ValueError(
                f"{own.where!r}: files of sensors must have a time column to join "
                "them, got none; give time (--time)."
            )
        indices = [places[name][1] for name in its]
        its_units = [_unit(own, n, preset, sensor) for n in indices]
        table = _table(own, "", its, indices, its_labels, time, None, its_units)
        stated = _time_format(own, time, preset, table)
        read.append(table._replace(time_format=stated))
    if len(read) == 1:
        return read[0]._replace(stem=source.stem)
    joined = joining.join(read, source.where, source.stem, list(used))
    order = [joined.channels.index(name) for name in names]
    return joined._replace(
        samples=joined.samples[:, order],
        channels=tuple(names),
        units=tuple(joined.units[n] for n in order),
    )


def _with_place(table, source, columns, preset):
    """Adds labels and person that the path states, and names of codes."""
    labels = dict(table.labels)
    wanted = columns.labels or preset.labels
    rows = len(table.samples)
    for name in wanted:
        if name in source.place and name not in labels:
            labels[name] = Labels(np.zeros(rows, np.int32), (source.place[name],))
    for name, names in preset.classes.items():
        if name in labels:
            labels[name] = _renamed(labels[name], names)
    return table._replace(labels=labels, stem=source.place.get("subject", table.stem))


def _renamed(labels, names):
    """Replaces codes by names; an empty name is a missing label."""
    new = [names.get(name, name) for name in labels.names]
    index = {name: n for n, name in enumerate(dict.fromkeys(n for n in new if n))}
    recode = np.array([*(index.get(name, -1) for name in new), -1], np.int32)
    return Labels(recode[labels.codes], tuple(index))


def _with_units(table, columns, preset, shared):
    """Converts samples to the stated units, or to those of the first table."""
    stated = list(columns.units)
    if len(stated) not in (0, 1, len(table.channels)):
        raise ValueError(
            f"units must be one for all channels or one for each of "
            f"{list(table.channels)}, got {stated}."
        )
    if stated:
        stated = stated if len(stated) > 1 else stated * len(table.channels)
        targets = [units.standard(unit) for unit in stated]
        sources = [a or b for a, b in zip(table.units, stated, strict=True)]
    else:
        sources = list(table.units)
        targets = (
            [units.standard(unit) for unit in sources] if shared is None else shared
        )
        _raise_if_mixed(table, sources, targets)
    for n, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if source == target or not target:
            continue
        try:
            scale, offset = units.conversion(source, target)
        except ValueError as error:
            raise ValueError(f"{table.source}: {table.channels[n]}: {error}") from None
        if scale != 1:
            table.samples[:, n] *= scale
        if offset:
            table.samples[:, n] += offset
    return table._replace(units=tuple(targets)), targets


def _raise_if_mixed(table, sources, targets: Sequence[Any]):
    for name, source, target in zip(table.channels, sources, targets, strict=True):
        if bool(source) != bool(target):
            raise ValueError(
                f"{table.source}: {name} must have a unit in all files or in none, got "
                f"{source or 'none'!r} after {target or 'none'!r}; give units "
                "(--units)."
            )
