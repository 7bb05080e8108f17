"""Recordings of one's own in CSV files, cut into a file of windows."""

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jaxanon.datasets import csv_tables, writing
from jaxanon.datasets.own_arrays import ABOUT, ENDING, distinct
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.sources import naming
from jaxanon.datasets.windows import cut_each
from jaxanon.recordings import csv_rows

JITTER = 0.05  # By which the rates of files may differ, that clocks set.
GAP = 3  # Periods from one row to the next after which a recording is two.


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
    """Cuts CSV files into windows and writes them as an ``.npz`` that ``load`` reads.

    A file has a line of names and a row for each sample, in the dialect of
    ``jaxanon.recordings.csv_rows``, which ``jaxanon-edge`` reads, too. A window lies in
    one file and in rows of one person and one class of every label, none of which lacks
    a number or a label; rows that do are left out, and told in a warning. Cells that
    are empty, ``NA``, ``NaN``, ``null`` or ``None`` lack a number; an empty one lacks a
    label. A channel is named with or without its unit in brackets.

    Args:
      paths: of the files, in order of time for each person.
      output: a name that ends in ``.npz``; missing folders are made.
      channels: columns with what was measured.
      labels: columns with what was being done, any text; each is an attribute, beside
        those that ``people`` has.
      rate_hz: rows a second; None takes it from ``time``.
      time: column with seconds and their fractions. Where rows of a person are more
        than three periods apart, or do not go on in time, a recording ends and another
        begins; rows of several people may alternate. None: rows follow each other
        without gaps.
      units: of the channels; one is that of all, none says nothing.
      subject: column that says whose row it is; None: a file is of one person, whose
        name is the file's, without its ending.
      people: of each person further attributes and their classes; or the path of a
        CSV with a column ``subject`` and one for each of these attributes.
      length: samples of a window.
      stride: samples from the start of a window to that of the next; None is half of
        ``length``.
      overwrite: whether a file that is there may be replaced.

    Returns:
      ``output``, with ``windows`` (``float32[N, length, channels]``), ``int32[N]`` and
      names of classes of each attribute and ``subject``, ``channels``, ``units`` if
      there are any, and ``rate_hz``. It appears when it is complete.

    Raises:
      FileNotFoundError: if a file is not there.
      FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError: if
        ``output`` is there and ``overwrite`` is false, or cannot be written.
      TypeError: for a name, or path, in place of a list of them; for a length or stride
        that is no whole number.
      ValueError: for files whose times tell rates that differ by more than 5 %, or
        are in different units; for a column that a file lacks, a cell that is no
        number, a name that the file of windows has another use for, a person of whom
        ``people`` says nothing, or if no stretch is as long as a window.

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
    writing.refuse_unwritable(output, overwrite)
    where = "people"
    if isinstance(people, (str, os.PathLike)):
        where, people = str(people), _read_people(Path(people))
    further = _attributes(people, (*channels, *labels), where)
    tables = [csv_tables.read(path, channels, labels, subject, time) for path in paths]
    _check_rates([table for table in tables if len(table.rows) >= length])
    files = repr(str(paths[0])) + (f" and {len(paths) - 1} more" if paths[1:] else "")
    with naming(files):
        rate_hz = _rate(tables, rate_hz)
    names = (*labels, "subject", *further)
    segments = [
        segment
        for table in tables
        for segment in _segments(table, names, rate_hz, people, further)
    ]
    long = [segment for segment in segments if len(segment.rows) >= length]
    if not long:
        most = max((len(segment.rows) for segment in segments), default=0)
        raise ValueError(
            f"{files}: no stretch of rows of one person and one class of "
            f"{list(labels)} is as long as a window of {length}; the longest has "
            f"{most} rows, of {rate_hz:g} a second. Give a smaller length (--length), "
            "or labels that change less often."
        )
    classes = {name: sorted({one.labels[name] for one in long}) for name in names}
    numbered = [one._replace(labels=_numbers(one.labels, classes)) for one in long]
    windows, found = cut_each(numbered, length, stride)
    arrays = {
        "windows": windows,
        "channels": np.array(channels),
        "rate_hz": np.array(float(rate_hz)),
    }
    if units:
        each = units if len(units) > 1 else [*units] * len(channels)
        arrays["units"] = np.array(each)
    for name in names:
        arrays[name], arrays[name + ENDING] = found[name], np.array(classes[name])
    with writing.replacing(output) as file:
        np.savez(file, **arrays)  # pyrefly: ignore[bad-argument-type]
    return output


def _check_lists(**named):
    for name, value in named.items():
        if isinstance(value, (str, os.PathLike)):
            raise TypeError(f"{name} must be a list, got {value!r}; put it in one.")


def _check_paths(output, paths, subject):
    if output.suffix != ".npz":
        raise ValueError(f"output must end in .npz, got {str(output)!r}.")
    if not paths:
        raise ValueError("there are no paths: name at least one CSV file.")
    if len({path.resolve() for path in paths}) < len(paths):
        raise ValueError(f"a file is named twice: {[str(path) for path in paths]}.")
    if subject is None and len({path.stem for path in paths}) < len(paths):
        raise ValueError(
            "two files have the same name, and a file's name is that of its person; "
            "rename one, or have a column that says whose a row is (subject)."
        )


def _check_names(channels, labels, units):
    if not channels:
        raise ValueError("channels is empty: name at least one column.")
    distinct("channels and labels", (*channels, *labels))
    _check_attributes(labels, "labels")
    if len(units) not in (0, 1, len(channels)):
        raise ValueError(
            f"units must be one for all channels or one for each of {list(channels)}, "
            f"got {list(units)}."
        )


def _check_attributes(names, where):
    """Refuses names of which a file of windows has another use."""
    for name in names:
        if name in (*ABOUT, "subject", "") or name.endswith(ENDING):
            raise ValueError(
                f"{where}: an attribute cannot be called {name!r}, which means "
                "something else in a file of windows; call that column otherwise."
            )


def _check_numbers(rate_hz, time, length, stride):
    for name, value in {"length": length, "stride": stride}.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be a whole number of samples, got {value!r}.")
        if value < 1:
            raise ValueError(f"{name} must be at least 1 sample, got {value}.")
    if rate_hz is None and time is None:
        raise ValueError(
            "give rate_hz, rows a second (--rate-hz), or the column with the seconds "
            "of each (time, --time)."
        )
    if rate_hz is not None and not (math.isfinite(rate_hz) and rate_hz > 0):
        raise ValueError(f"rate_hz must be > 0 and finite, got {rate_hz!r}.")


def _read_people(path):
    """The attributes of each person, of a CSV."""
    found = {}
    for line, row in csv_rows.records(path, ("subject",)):
        who = row.pop("subject")
        if who in found or not who or not row or not all(row.values()):
            raise ValueError(
                f"{path}, line {line}: a line must name a person that no other does, "
                f"and a class of each attribute, got {who!r} and {row}."
            )
        found[who] = row
    if not found:
        raise ValueError(f"{path} names nobody.")
    return found


def _attributes(people, columns, where):
    """What ``people`` says of everybody."""
    names = tuple(next(iter(people.values()), ())) if people else ()
    _check_attributes(names, where)
    for who, told in (people or {}).items():
        if {*told} != {*names} or {*names} & {*columns} or not all(told.values()):
            raise ValueError(
                f"{where} must say {list(names)} of everybody, and nothing that is a "
                f"column, got {told} of {who!r}."
            )
    return names


def _rate(tables, rate_hz):
    """Rows a second, by the step between them that is most usual, if times are told."""
    if tables[0].times is None:
        return rate_hz
    steps = np.concatenate([np.diff(table.times) for table in tables])
    steps = steps[np.isfinite(steps)]
    if not np.mean(steps > 0) > 0.5:  # Of none, too.
        raise ValueError(
            "times do not go up from most rows to the next: they must be seconds with "
            "their fractions. Else give rate_hz (--rate-hz), and no time."
        )
    seen = float(f"{1 / np.median(steps[steps > 0]):.6g}")  # 50, not 50.000000000001.
    if rate_hz is not None and abs(seen / rate_hz - 1) > 0.2:
        raise ValueError(
            f"rate_hz is {rate_hz:g}, and by their times rows come at {seen:.4g} Hz; "
            "leave one of them out, or see that times are in seconds."
        )
    return seen if rate_hz is None else rate_hz


def _check_rates(tables):
    """Refuses files of which one window would last longer than another.

    The step that is most usual is off by as much as times are rounded, and the mean
    step by what is lost: a file's rate is in the range of both.
    """
    found = {}
    for table in tables:
        steps = () if table.times is None else np.diff(table.times)
        steps = np.array([step for step in steps if step > 0])  # No NaN is.
        if len(steps):
            usual = np.median(steps)
            both = usual, np.mean(steps[steps < 2.001 * usual])
            found[table.path] = 1 / max(both), 1 / min(both)
    if not found:
        return
    low, high = (np.array(each) for each in zip(*found.values(), strict=True))
    if max(low) <= min(high) * (1 + JITTER):
        return
    ordered = sorted((ends, path) for path, ends in found.items())
    told = [f"{path} at {_in_hertz(*ends)}" for ends, path in ordered]
    if len(told) > 6:
        told = [*told[:3], f"{len(told) - 6} more", *told[-3:]]
    units = max(low) / min(high) > 200
    raise ValueError(
        f"paths must be files of one sampling rate, got {', '.join(told)}; "
        + (
            "are times in milliseconds in some? Bring them to seconds."
            if units
            else "resample them to one rate, or import them apart."
        )
    )


def _in_hertz(low, high):
    """One rate, or where rounded or lost times leave it open, its range."""
    ends = f"{low:.4g}", f"{high:.4g}"
    return f"{' to '.join(dict.fromkeys(ends))} Hz"


def _segments(table, names, rate_hz, people, further):
    """Stretches of rows that one window may lie in."""
    same = np.array([a == b for a, b in itertools.pairwise(table.labels)], bool)
    same &= table.whole[1:] & table.whole[:-1]
    if table.times is not None:
        steps = np.diff(table.times)
        # Three periods themselves, however their seconds were rounded, are no gap.
        same &= (steps > 0) & (steps * rate_hz < 1.001 * GAP)
    bounds = [0, *(1 + np.flatnonzero(~same)), len(table.labels)]
    found = []
    for start, end in itertools.pairwise(bounds):
        if start == end or not table.whole[start]:
            continue
        *_, who = told = table.labels[start]
        if further and who not in people:
            raise ValueError(
                f"{table.path}: people says nothing of {who!r}; it names "
                f"{sorted(people)}."
            )
        more = [people[who][name] for name in further] if further else []
        labels = dict(zip(names, (*told, *more), strict=True))
        found.append(Recording(table.rows[start:end], 0, labels))
    return found


def _numbers(labels, classes) -> dict[str, int | str]:
    """Class names as places among the classes."""
    return {name: own.index(labels[name]) for name, own in classes.items()}
