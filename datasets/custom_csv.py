"""Import of recordings in CSV files to an ``.npz`` file of windows."""

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jaxanon.datasets import csv_tables, writing
from jaxanon.datasets.custom_arrays import ENDING, RESERVED, distinct
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.sources import naming
from jaxanon.datasets.windows import cut_each
from jaxanon.recordings import csv_rows

JITTER = 0.05  # Maximum relative difference of the files' sampling rates.
GAP = 3  # A longer step between rows, in periods, ends a recording.


def import_csv(
    paths: Sequence,
    output,
    *,
    channels: Sequence[str],
    labels: Sequence[str] = (),
    rate_hz: float | None = None,
    time: str | None = None,
    units: Sequence[str] = (),
    subject: str | None = None,
    people: str | os.PathLike | Mapping[str, Mapping[str, str]] | None = None,
    length: int = 128,
    stride: int | None = None,
    overwrite: bool = False,
) -> Path:
    """Cuts CSV files into windows and writes an ``.npz`` file that ``load`` reads.

    A file has a header line and one row per sample, in the dialect of
    ``jaxanon.recordings.csv_rows``. A window lies in one file, in consecutive rows of
    one person and one class of each label. Rows with a missing number or label are
    dropped with a warning. An empty cell, ``NA``, ``NaN``, ``null`` or ``None`` is a
    missing number; an empty cell is a missing label. A channel may be named with or
    without its unit in brackets.

    Args:
      paths: paths of the CSV files, in order of time for each person.
      output: output path, ending in ``.npz``; missing folders are created.
      channels: columns with measurements.
      labels: columns with labels, any text; each becomes an attribute, in addition to
        those of ``people``.
      rate_hz: rows per second; None derives it from ``time``.
      time: column with times in seconds. A step of more than three periods, or a step
        back, ends a recording. Rows of several people may alternate. None assumes rows
        without gaps.
      units: units of the channels: one per channel, one for all, or none.
      subject: column with the person of each row; None takes the file name without its
        suffix.
      people: dict of further attributes and their classes by person, or the path of a
        CSV file with a column ``subject`` and one column per attribute.
      length: samples per window.
      stride: samples between starts of windows; None is half of ``length``.
      overwrite: whether to replace an existing file.

    Returns:
      ``output``, written atomically. It holds ``windows`` (``float32[N, length,
      channels]``), labels (``int32[N]``) and class names of each attribute and
      ``subject``, ``channels``, ``units`` if given, and ``rate_hz``.

    Raises:
      FileNotFoundError: if an input file does not exist.
      FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError: if
        ``output`` exists and ``overwrite`` is False, or cannot be written.
      TypeError: if a list is a single name or path, or a length or stride is not whole.
      ValueError: if rates of files differ by more than 5 % or times have different
        units; if a column is missing, a cell is not a number, a name is reserved, or a
        person is missing in ``people``; or if no stretch is as long as a window.

    Example:
      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> acts = ["sit"] * 20 + ["walk"] * 20
      >>> rows = "".join(f"{i},{i % 7},{act}\\n" for i, act in enumerate(acts))
      >>> _ = (folder / "ann.csv").write_text("acc.x,acc.y,activity\\n" + rows)
      >>> path = import_csv(
      ...     [folder / "ann.csv"], folder / "own.npz", channels=["acc.x", "acc.y"],
      ...     labels=["activity"], rate_hz=10.0, length=8)
      >>> with np.load(path) as file:
      ...     file["windows"].shape, file["activity"].tolist()
      ((8, 8, 2), [0, 0, 0, 0, 1, 1, 1, 1])
    """
    if stride is None:
        stride = max(1, length // 2)
    _check_lists(paths=paths, channels=channels, labels=labels, units=units)
    output, paths = Path(output), [Path(path) for path in paths]
    _check_paths(output, paths, subject)
    _check_names(channels, labels, units)
    _check_numbers(rate_hz, time, length, stride)
    writing.check_writable(output, overwrite)
    where = "people"
    if isinstance(people, (str, os.PathLike)):
        where, people = str(people), _read_people(Path(people))
    person_attributes = _attributes(people, (*channels, *labels), where)
    tables = [csv_tables.read(path, channels, labels, subject, time) for path in paths]
    _check_rates([table for table in tables if len(table.rows) >= length])
    files = repr(str(paths[0])) + (f" and {len(paths) - 1} more" if paths[1:] else "")
    with naming(files):
        rate_hz = _rate(tables, rate_hz)
    names = (*labels, "subject", *person_attributes)
    segments = [
        segment
        for table in tables
        for segment in _segments(table, names, rate_hz, people, person_attributes)
    ]
    long = [segment for segment in segments if len(segment.rows) >= length]
    if not long:
        longest = max((len(segment.rows) for segment in segments), default=0)
        raise ValueError(
            f"{files}: a stretch of one person and one class of {list(labels)} must be "
            f"at least as long as a window of {length} rows, got {longest} rows at "
            f"{rate_hz:g} Hz as the longest; choose a smaller length (--length), or "
            "labels that change less often."
        )
    classes = {name: sorted({each.labels[name] for each in long}) for name in names}
    indexed = [each._replace(labels=_indices(each.labels, classes)) for each in long]
    windows, window_labels = cut_each(indexed, length, stride)
    arrays = {
        "windows": windows,
        "channels": np.array(channels),
        "rate_hz": np.array(float(rate_hz)),
    }
    if units:
        each = units if len(units) > 1 else [*units] * len(channels)
        arrays["units"] = np.array(each)
    for name in names:
        arrays[name] = window_labels[name]
        arrays[name + ENDING] = np.array(classes[name])
    with writing.replacing(output) as file:
        np.savez(file, **arrays)  # pyrefly: ignore[bad-argument-type]
    return output


def _check_lists(**named):
    for name, value in named.items():
        if isinstance(value, (str, os.PathLike)):
            raise TypeError(f"{name} must be a list, got {value!r}; use [{value!r}].")


def _check_paths(output, paths, subject):
    if output.suffix != ".npz":
        raise ValueError(f"output must end in .npz, got {str(output)!r}.")
    if not paths:
        raise ValueError("paths must have at least one CSV file, got none.")
    if len({path.resolve() for path in paths}) < len(paths):
        raise ValueError(f"paths must be distinct, got {[str(p) for p in paths]}.")
    if subject is None and len({path.stem for path in paths}) < len(paths):
        raise ValueError(
            "paths must have distinct file names, which name the persons, got "
            f"{[path.name for path in paths]}; rename a file, or give a column with "
            "the person of each row (subject)."
        )


def _check_names(channels, labels, units):
    if not channels:
        raise ValueError("channels must name at least one column, got none.")
    distinct("channels and labels", (*channels, *labels))
    _check_attributes(labels, "labels")
    if len(units) not in (0, 1, len(channels)):
        raise ValueError(
            f"units must be one for all channels or one for each of {list(channels)}, "
            f"got {list(units)}."
        )


def _check_attributes(names, where):
    """Raises ValueError for names that are reserved in a file of windows."""
    for name in names:
        if name in (*RESERVED, "subject", "") or name.endswith(ENDING):
            raise ValueError(
                f"{where} must not use reserved names for attributes, got {name!r}; "
                "rename that column."
            )


def _check_numbers(rate_hz, time, length, stride):
    for name, value in {"length": length, "stride": stride}.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be a whole number of samples, got {value!r}.")
        if value < 1:
            raise ValueError(f"{name} must be at least 1 sample, got {value}.")
    if rate_hz is None and time is None:
        raise ValueError(
            "rate_hz (--rate-hz, rows per second) or time (--time, column with "
            "seconds) must be given, got neither."
        )
    if rate_hz is not None and not (math.isfinite(rate_hz) and rate_hz > 0):
        raise ValueError(f"rate_hz must be > 0 and finite, got {rate_hz!r}.")


def _read_people(path):
    """Reads the attributes of each person from a CSV file."""
    people = {}
    for line, row in csv_rows.records(path, ("subject",)):
        person = row.pop("subject")
        if person in people or not person or not row or not all(row.values()):
            raise ValueError(
                f"{path}, line {line}: a line must have a new person and a class of "
                f"each attribute, got {person!r} and {row}."
            )
        people[person] = row
    if not people:
        raise ValueError(f"{path} must have at least one person, got none.")
    return people


def _attributes(people, columns, where):
    """Returns the names of the attributes in ``people``."""
    names = tuple(next(iter(people.values()), ())) if people else ()
    _check_attributes(names, where)
    for person, row in (people or {}).items():
        if {*row} != {*names} or {*names} & {*columns} or not all(row.values()):
            raise ValueError(
                f"{where} must give each person a class of {list(names)}, and no other "
                f"attribute or column, got {row} for {person!r}."
            )
    return names


def _rate(tables, rate_hz):
    """Returns rows per second, from the median step if there are times."""
    if tables[0].times is None:
        return rate_hz
    steps = np.concatenate([np.diff(table.times) for table in tables])
    steps = steps[np.isfinite(steps)]
    if not np.mean(steps > 0) > 0.5:  # NaN for no steps.
        raise ValueError(
            "times must be seconds with fractions that increase from row to row, got "
            "steps that mostly do not; omit time and give rate_hz (--rate-hz) instead."
        )
    measured = float(f"{1 / np.median(steps[steps > 0]):.6g}")  # Round to 6 digits.
    if rate_hz is not None and abs(measured / rate_hz - 1) > 0.2:
        raise ValueError(
            f"rate_hz must agree with the times, which give {measured:.4g} Hz, got "
            f"{rate_hz:g}; omit one of them, or convert times to seconds."
        )
    return measured if rate_hz is None else rate_hz


def _check_rates(tables):
    """Raises ValueError for files of different rates.

    The median step is wrong by the rounding of times, the mean step by lost rows. The
    rate of a file is between both.
    """
    rates = {}
    for table in tables:
        steps = () if table.times is None else np.diff(table.times)
        steps = np.array([step for step in steps if step > 0])  # Also drops NaN.
        if len(steps):
            median = np.median(steps)
            both = median, np.mean(steps[steps < 2.001 * median])
            rates[table.path] = 1 / max(both), 1 / min(both)
    if not rates:
        return
    low, high = (np.array(each) for each in zip(*rates.values(), strict=True))
    if max(low) <= min(high) * (1 + JITTER):
        return
    ordered = sorted((ends, path) for path, ends in rates.items())
    texts = [f"{path} at {_format_rate(*ends)}" for ends, path in ordered]
    if len(texts) > 6:
        texts = [*texts[:3], f"{len(texts) - 6} more", *texts[-3:]]
    units_differ = max(low) / min(high) > 200
    raise ValueError(
        f"paths must be files of one sampling rate, got {', '.join(texts)}; "
        + (
            "convert times to seconds if some are in milliseconds."
            if units_differ
            else "resample them to one rate, or import them separately."
        )
    )


def _format_rate(low, high):
    """Returns a rate in Hz, or its range if times are rounded or missing."""
    ends = f"{low:.4g}", f"{high:.4g}"
    return f"{' to '.join(dict.fromkeys(ends))} Hz"


def _segments(table, names, rate_hz, people, person_attributes):
    """Splits a table into stretches that windows may lie in."""
    same = np.array([a == b for a, b in itertools.pairwise(table.labels)], bool)
    same &= table.complete[1:] & table.complete[:-1]
    if table.times is not None:
        steps = np.diff(table.times)
        # Tolerate rounded times: a step of exactly three periods is not a gap.
        same &= (steps > 0) & (steps * rate_hz < 1.001 * GAP)
    bounds = [0, *(1 + np.flatnonzero(~same)), len(table.labels)]
    segments = []
    for start, end in itertools.pairwise(bounds):
        if start == end or not table.complete[start]:
            continue
        *_, person = row_labels = table.labels[start]
        if person_attributes and person not in people:
            raise ValueError(
                f"people must have an entry for each person, got none for {person!r} "
                f"of {table.path}; it has {sorted(people)}."
            )
        more = [people[person][name] for name in person_attributes]
        labels = dict(zip(names, (*row_labels, *more), strict=True))
        segments.append(Recording(table.rows[start:end], 0, labels))
    return segments


def _indices(labels, classes) -> dict[str, int | str]:
    """Replaces class names by indices into ``classes``."""
    return {name: names.index(labels[name]) for name, names in classes.items()}
