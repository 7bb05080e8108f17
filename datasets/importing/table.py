"""Rows of a recording in memory, whatever the format of its file."""

import collections
import types
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Labels(NamedTuple):
    """A column of text, dictionary-encoded."""

    codes: np.ndarray  # int32[rows], -1 where the label is missing
    names: tuple[str, ...]  # distinct names; codes index them


class Columns(NamedTuple):
    """Selected columns of a recording, and how to read them.

    Attributes:
      channels: columns with measurements, with or without a unit in brackets.
      labels: columns with text.
      time: column with times; None if rows have no times.
      subject: column with the person of each row; None uses the file name.
      units: units of the channels: one per channel, one for all, or none. Values in
        another unit of the same quantity are converted.
      encoding: text encoding of CSV files; None detects UTF-8 and UTF-16.
      format: name of a file format in ``presets``; its columns replace those that are
        not given.
    """

    channels: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    time: str | None = None
    subject: str | None = None
    units: tuple[str, ...] = ()
    format: str | None = None
    encoding: str | None = None


class Table(NamedTuple):
    """Selected columns of one recording.

    Attributes:
      source: file name for messages.
      samples: float[rows, channels], NaN where a number is missing.
      channels: one name per channel, without units.
      units: one unit per channel; empty if unknown.
      times: text, numbers or datetime64 of each row, as in the file; None without a
        time column. ``recordings.times`` parses them.
      labels: labels by column.
      subject: person of each row; None if ``stem`` is the person.
      stem: name of the file or folder without its suffix.
      losses: number of rows that reading dropped, by cause.
      first_lines: first line of each cause in ``losses``.
      time_format: format of ``times`` if the file states it ("s", "ms", "us", "ns",
        "iso" or a strptime format), else None.
      sparse: rate in Hz of each channel that reading interpolated to the rows of a
        faster sensor.
    """

    source: str
    samples: np.ndarray
    channels: tuple[str, ...]
    units: tuple[str, ...]
    times: np.ndarray | None
    labels: dict[str, Labels]
    subject: Labels | None
    stem: str
    losses: collections.Counter[str]
    first_lines: dict[str, int | None]
    time_format: str | None = None
    sparse: Mapping[str, float] = types.MappingProxyType({})
