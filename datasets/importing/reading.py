"""Recordings as tables of the selected columns, one table at a time."""

import collections
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from jaxanon.datasets.importing import cells, csv_file
from jaxanon.datasets.importing.table import Columns, Table
from jaxanon.recordings import dialect as dialects

INVALID = "cell that is not a number"  # Cause of losses.


def tables(sources: Iterable, columns: Columns) -> Iterator[Table]:
    """Yields one table of the selected columns for each recording.

    Only one recording is in memory at a time.

    Args:
      sources: paths of files.
      columns: columns to read.

    Raises:
      FileNotFoundError: if a file does not exist.
      ValueError: if a file is damaged, lacks a column, or holds mostly rows that cannot
        be read. The message names the file, and never quotes its rows.
    """
    for source in sources:
        path = Path(source)
        if not path.is_file():
            raise FileNotFoundError(f"{str(path)!r} does not exist or is not a file.")
        yield _csv(path.read_bytes(), str(path), path.stem, columns)


def _csv(data, where, stem, columns):
    dialect = dialects.sniff(
        data[: dialects.HEAD_BYTES], where, encoding=columns.encoding
    )
    find = lambda name: find_column(dialect, name, where)
    channels = [find(name) for name in columns.channels]
    labels = {name: find(name) for name in columns.labels}
    time = None if columns.time is None else find(columns.time)
    subject = None if columns.subject is None else find(columns.subject)
    texts = [*labels.values(), *(() if subject is None else (subject,))]
    found = csv_file.read(data, dialect, channels, texts, time, where)
    count = len(next(iter(found.columns.values())))
    if found.malformed > count / 2:
        raise ValueError(
            f"{where}, line {found.first_malformed}: a row must have "
            f"{len(dialect.header)} cells, like the header, got another number in "
            f"{found.malformed} rows."
        )
    losses: collections.Counter[str] = collections.Counter()
    first_lines = {}
    if found.malformed:
        if time is not None:
            losses[csv_file.MALFORMED] = found.malformed
        first_lines[csv_file.MALFORMED] = found.first_malformed
    return _table(
        columns,
        where,
        stem,
        numbers=[found.columns[n] for n in channels],
        its_units=[dialect.units[n] for n in channels],
        labels={name: found.columns[n] for name, n in labels.items()},
        subject=None if subject is None else found.columns[subject],
        time=None if time is None else found.columns[time],
        time_unit="" if time is None else dialect.units[time],
        decimal=dialect.decimal,
        losses=losses,
        first_lines=first_lines,
        line_of=found.line_of,
    )


def _table(
    columns,
    where,
    stem,
    *,
    numbers,
    its_units,
    labels,
    subject,
    time,
    time_unit="",
    decimal=".",
    losses,
    first_lines,
    line_of,
):
    """Converts selected columns; drops rows with invalid cells if there are times."""
    count = len(numbers[0])
    samples = np.empty((count, len(numbers)), np.float64, order="F")
    wrong = np.zeros(count, bool)
    for index, column in enumerate(numbers):
        samples[:, index], invalid = cells.numbers(column, decimal)
        if invalid is not None:
            _raise_if_most(invalid, columns.channels[index], where, line_of)
            wrong |= invalid
    times = None
    if time is not None:
        times, invalid = cells.times(time, decimal)
        wrong = wrong if invalid is None else wrong | invalid
    its_labels = {name: cells.labels(column) for name, column in labels.items()}
    person = None if subject is None else cells.labels(subject)
    if wrong.any():
        first_lines[INVALID] = line_of(int(np.argmax(wrong)))
        if times is not None:
            losses[INVALID] = int(wrong.sum())
            samples, times = samples[~wrong], times[~wrong]
            keep = lambda each: each._replace(codes=each.codes[~wrong])
            its_labels = {name: keep(each) for name, each in its_labels.items()}
            person = None if person is None else keep(person)
        else:
            samples[wrong] = np.nan
    return Table(
        source=where,
        samples=samples,
        channels=tuple(columns.channels),
        units=tuple(its_units),
        times=times,
        labels=its_labels,
        subject=person,
        stem=stem,
        losses=losses,
        first_lines=first_lines,
        time_format=time_unit or None,
    )


def _raise_if_most(invalid, name, where, line_of):
    if 2 * np.count_nonzero(invalid) > len(invalid):
        raise ValueError(
            f"{where}, line {line_of(int(np.argmax(invalid)))}: {name} must be a "
            f"number, or empty, got other text in {np.count_nonzero(invalid)} of "
            f"{len(invalid)} rows; choose another column."
        )


def find_column(dialect, name, where):
    """Returns the index of the one column of this name, with or without its unit."""
    for names in (dialect.header, dialect.names):
        if names.count(name) == 1:
            return names.index(name)
        if name in names:
            break
    shown = [each for each in dialect.header if each and not dialects.is_number(each)]
    raise ValueError(
        f"{where!r}: it must have exactly one column {name!r}, got the columns {shown}."
    )
