"""Recordings of one's own in CSV files, cut into a file of windows."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from jaxanon.datasets import csv_tables, writing
from jaxanon.datasets.own_arrays import ABOUT, ENDING
from jaxanon.datasets.recordings import Recording
from jaxanon.datasets.windows import cut_each

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
    people: Mapping[str, Mapping[str, str]] | None = None,
    length: int = 128,
    stride: int | None = None,
    overwrite: bool = False,
) -> Path:
    """Cuts CSV files into windows and writes them as an ``.npz`` that ``load`` reads.

    A file has a line of names and a row for each sample, with commas, semicolons or
    tabs between. A window lies in one file and in rows of one person and one class of
    every label, none of which lacks a number or a label; rows that do are left out,
    and told in a warning.

    Args:
      paths: of the files, in order of time for each person.
      output: a name that ends in ``.npz``; missing folders are made.
      channels: columns with what was measured.
      labels: columns with what was being done, any text; each is an attribute, beside
        those that ``people`` has.
      rate_hz: rows a second; None takes it from ``time``.
      time: column with seconds. Between rows that are more than three periods apart,
        or go back in time, a recording ends and another begins. None: rows follow each
        other without gaps.
      units: of the channels; one is that of all, none says nothing.
      subject: column that says whose row it is; None: a file is of one person, whose
        name is the file's, without its ending.
      people: of each person further attributes and their classes.
      length: samples of a window.
      stride: samples from the start of a window to that of the next; None is half of
        ``length``.
      overwrite: whether a file that is there may be replaced.

    Returns:
      ``output``. It appears when it is complete.

    Raises:
      FileNotFoundError: if a file is not there.
      FileExistsError: if ``output`` is there and ``overwrite`` is false.
      TypeError: for one name in place of a list of them.
      ValueError: for a column that a file lacks, a cell that is no number, a person of
        whom ``people`` says nothing, or if no stretch is as long as a window.

    Example:
      >>> import pathlib, tempfile
      >>> folder = pathlib.Path(tempfile.mkdtemp())
      >>> rows = "".join(f"{i},{i % 7},walk\\n" for i in range(40))
      >>> _ = (folder / "ann.csv").write_text("acc.x,acc.y,activity\\n" + rows)
      >>> path = import_csv(
      ...     [folder / "ann.csv"], folder / "own.npz", channels=["acc.x", "acc.y"],
      ...     labels=["activity"], rate_hz=10.0, length=16)
      >>> from jaxanon.datasets import load
      >>> data = load(path, public="activity", private=["subject"])
      >>> data.train.windows.shape, data.spec.classes
      ((1, 16, 2), {'activity': ('walk',), 'subject': ('ann',)})
    """
    stride = max(1, length // 2) if stride is None else stride
    output, paths = Path(output), [Path(path) for path in paths]
    _check(output, paths, channels, labels, rate_hz, time, units, subject, length)
    writing.refuse_unwritable(output, overwrite)
    tables = [csv_tables.read(path, channels, labels, subject, time) for path in paths]
    rate_hz = _rate(tables, rate_hz)
    names = (*labels, *_attributes(people), "subject")
    runs = [run for table in tables for run in _runs(table, labels, rate_hz, people)]
    long = [run for run in runs if len(run.rows) >= length]
    if not long:
        most = max((len(run.rows) for run in runs), default=0)
        raise ValueError(
            f"no stretch of rows of one person and one class of {list(labels)} is as "
            f"long as a window of {length}; the longest has {most} rows. Give a "
            "smaller length (--length), or labels that change less often."
        )
    classes = {name: sorted({run.labels[name] for run in long}) for name in names}
    numbered = [run._replace(labels=_numbers(run.labels, classes)) for run in long]
    windows, found = cut_each(numbered, length, stride)
    arrays = {
        "windows": windows,
        "channels": np.array(channels),
        "units": np.array([*units] * (len(channels) if len(units) == 1 else 1)),
        "rate_hz": np.array(float(rate_hz)),
    }
    if not units:
        del arrays["units"]
    for name in names:
        arrays[name], arrays[name + ENDING] = found[name], np.array(classes[name])
    with writing.replacing(output) as file:
        np.savez(file, **arrays)  # pyrefly: ignore[bad-argument-type]
    return output


def _numbers(labels, classes) -> dict[str, int | str]:
    """Class names as places among the classes."""
    return {name: own.index(labels[name]) for name, own in classes.items()}


def read_people(path) -> dict[str, dict[str, str]]:
    """A CSV with the column ``subject`` and others, as ``import_csv`` takes ``people``.

    Raises:
      FileNotFoundError: if it is not there.
      ValueError: without that column or others, for a person that comes twice, or for
        a class that is not named.

    Example:
      >>> import pathlib, tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
      >>> _ = path.write_text("subject,gender\\nann,female\\nbob,male\\n")
      >>> read_people(path)
      {'ann': {'gender': 'female'}, 'bob': {'gender': 'male'}}
    """
    path, found = Path(path), {}
    for line, row in csv_tables.lines(path, ("subject",)):
        who = row.pop("subject")
        empty = [name for name, value in row.items() if not value]
        if who in found or not who or not row or empty:
            raise ValueError(
                f"{path}, line {line}: a line must name a person that no other does, "
                f"and a class of each attribute, got {who!r} and {row}."
            )
        found[who] = row
    if not found:
        raise ValueError(f"{path} names nobody.")
    return found


def _check(output, paths, channels, labels, rate_hz, time, units, subject, length):
    """Refuses what does not fit together, before a file is read."""
    for name, value in {"channels": channels, "labels": labels, "units": units}.items():
        if isinstance(value, str):
            raise TypeError(f"{name} must be a list of names, got {value!r}.")
    if output.suffix != ".npz":
        raise ValueError(f"output must end in .npz, got {str(output)!r}.")
    if not paths:
        raise ValueError("paths is empty: name at least one CSV file.")
    if len({path.stem for path in paths}) < len(paths) and subject is None:
        raise ValueError(
            "two files have the same name, and a file's name is that of its person; "
            "rename one, or have a column that says whose a row is (subject)."
        )
    columns = (*channels, *labels)
    if not channels or len(set(columns)) < len(columns):
        raise ValueError(f"channels and labels must differ, got {list(columns)}.")
    if taken := {*ABOUT, "subject"} & {*labels}:
        raise ValueError(
            f"a label cannot be called {taken.pop()!r}, which means something else in "
            "the file of windows; call that column otherwise."
        )
    if len(units) not in (0, 1, len(channels)):
        raise ValueError(
            f"units must be one for all channels or one for each of {list(channels)}, "
            f"got {list(units)}."
        )
    if rate_hz is None and time is None:
        raise ValueError(
            "give rate_hz, rows a second (--rate-hz), or the column with the seconds "
            "of each (time, --time)."
        )
    if rate_hz is not None and not (math.isfinite(rate_hz) and rate_hz > 0):
        raise ValueError(f"rate_hz must be > 0 and finite, got {rate_hz!r}.")
    if length < 1:
        raise ValueError(f"length must be at least 1 sample, got {length!r}.")


def _rate(tables, rate_hz):
    """Rows a second, by the step between them that is most usual, if times are told."""
    if tables[0].times is None:
        return rate_hz
    steps = np.concatenate([np.diff(table.times) for table in tables])
    steps = steps[steps > 0]
    if not len(steps):
        raise ValueError("the column of times never goes up; see that it has seconds.")
    seen = float(f"{1 / np.median(steps):.6g}")  # 50, and not 50.000000000001.
    if rate_hz is not None and abs(seen / rate_hz - 1) > 0.2:
        raise ValueError(
            f"rate_hz is {rate_hz:g}, and by their times rows come at {seen:.4g} Hz; "
            "leave one of them out, or see that times are in seconds."
        )
    return seen if rate_hz is None else rate_hz


def _runs(table, labels, rate_hz, people):
    """Stretches of rows that one window may lie in."""
    whole = np.isfinite(table.rows).all(axis=1)
    if table.times is not None:
        whole &= np.isfinite(table.times)
    told = list(zip(table.labels, table.subjects, strict=True))
    whole &= np.array([all(named) and bool(who) for named, who in told], bool)
    same = np.array([a == b for a, b in itertools.pairwise(told)], bool)
    same &= whole[1:] & whole[:-1]
    if table.times is not None:
        steps = np.diff(table.times)
        same &= (steps > 0) & (steps <= GAP / rate_hz)
    bounds = [0, *(1 + np.flatnonzero(~same)), len(told)]
    runs = []
    for start, end in itertools.pairwise(bounds):
        if start < end and whole[start]:
            own = dict(zip(labels, table.labels[start], strict=True))
            own["subject"] = table.subjects[start]
            own = _with_person(own, people, table.path)
            runs.append(Recording(table.rows[start:end], 0, own))
    return runs


def _attributes(people):
    """What ``people`` says of everybody."""
    return tuple(
        dict.fromkeys(name for told in (people or {}).values() for name in told)
    )


def _with_person(labels, people, path):
    """Labels with what is known of their person."""
    told = {} if people is None else people.get(labels["subject"])
    names = _attributes(people)
    if told is None or {*told} != {*names} or {*names} & {*labels}:
        raise ValueError(
            f"{path}: people must say {list(names)} of {labels['subject']!r}, and "
            f"nothing that is a column, got {told}; it names {sorted(people)}."
        )
    return labels | told
