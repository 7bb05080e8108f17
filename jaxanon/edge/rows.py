"""Blocks as CSV lines, for files and pipes, and as JSON, for messages."""

import csv
import io
import json
from typing import NamedTuple

import numpy as np

from jaxanon.edge.types import Block, Signature

FORMAT = 1
MOST_REASON = 200  # Maximum characters of a gap's reason.


class Line(NamedTuple):
    """A CSV row with its newline, and its time in seconds."""

    time: float
    text: str


def header(wanted: Signature) -> str:
    """Returns the first two lines of a CSV file.

    The first one states the rate, so that another stream cannot continue the file.

    Example:
      >>> print(header(Signature(8, ("x",), ("g",), 50.0)), end="")
      # jaxanon stream, format 1, rate_hz 50.0
      time,gap,x [g]
    """
    first = f"# jaxanon stream, format {FORMAT}, rate_hz {wanted.rate_hz!r}\n"
    return first + column_names(wanted)


def column_names(wanted: Signature) -> str:
    """Returns the line that names the columns."""
    pairs = zip(wanted.channels, wanted.units, strict=True)
    return _fields(["time", "gap", *(f"{name} [{unit}]" for name, unit in pairs)])


def lines(wanted: Signature, block: Block) -> list[Line]:
    """Returns the rows of a block.

    Each sample has a row, and so has each NaN sample of a gap. A gap without samples is
    one row and lasts until the time of the next row.

    Args:
      wanted: ``Signature`` of the stream.
      block: ``Block``.

    Returns:
      List of ``Line``.

    Raises:
      ValueError: see ``checked``.

    Example:
      >>> gap = Block(2.0, 50.0, np.zeros((0, 1), np.float32), "too late", 3.0)
      >>> lines(Signature(8, ("x",), ("g",), 50.0), gap)
      [Line(time=2.0, text='2.000000,too late,\\n')]
    """
    checked(wanted, block)
    count = len(block.samples)
    if block.gap:
        times = [block.start + index / block.rate_hz for index in range(max(count, 1))]
        return [gap_line(wanted, time, block.gap) for time in times]
    numbers = list(map(str, block.samples.astype(np.float32).ravel()))
    width = len(wanted.channels)
    new_lines = []
    for index in range(count):
        time = block.start + index / block.rate_hz
        row = ",".join(numbers[index * width : (index + 1) * width])
        new_lines.append(Line(time, f"{time:.6f},,{row}\n"))
    return new_lines


def gap_line(wanted: Signature, time: float, reason: str) -> Line:
    """Returns the row of a gap that starts at ``time`` (s)."""
    empty = [""] * len(wanted.channels)
    return Line(time, _fields([f"{time:.6f}", _short(reason), *empty]))


def message(wanted: Signature, session: str, sequence: int, block: Block) -> str:
    """Returns a block as a self-contained JSON text.

    Args:
      wanted: ``Signature`` of the stream.
      session: name of one run of the stream. Sequence numbers restart in each session.
      sequence: number of the message. A missing number means a lost message, and a
        repeated number a duplicate.
      block: ``Block``, already checked.

    Returns:
      JSON text with the arguments, ``gap`` ("" for samples) and ``samples``
      ([time][channels], empty in a gap).

    Example:
      >>> block = Block(0.0, 50.0, np.zeros((0, 1), np.float32), "too late", 1.5)
      >>> json.loads(message(Signature(8, ("x",), ("g",), 50.0), "a7", 4, block))["end"]
      1.5
    """
    samples = [] if block.gap else block.samples.astype(np.float32)
    rows = ",".join(f"[{','.join(map(str, row))}]" for row in samples)
    about = {
        "format": FORMAT,
        "session": session,
        "sequence": sequence,
        "start": block.start,
        "end": block.end,
        "rate_hz": block.rate_hz,
        "channels": wanted.channels,
        "units": wanted.units,
        "gap": _short(block.gap),
    }
    return f'{json.dumps(about)[:-1]}, "samples": [{rows}]}}'


def checked(wanted: Signature, block: Block) -> None:
    """Raises ValueError if a block does not match the stream's signature."""
    shape = np.shape(block.samples)
    if len(shape) != 2 or shape[1] != len(wanted.channels):
        raise ValueError(
            f"block.samples must be float32[n, {len(wanted.channels)}], one column for "
            f"each of {wanted.channels}, got shape {shape}."
        )
    if block.rate_hz != wanted.rate_hz:
        raise ValueError(
            f"block.rate_hz must be the outlet's {wanted.rate_hz!r}, got "
            f"{block.rate_hz!r}; open it with the stream's signature."
        )
    if not block.gap and not np.isfinite(block.samples).all():
        raise ValueError(
            f"block.samples must be finite, got others at {block.start} s; missing "
            "values must be a gap with its reason in block.gap."
        )


def _fields(values):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


def _short(reason):
    """Returns the reason as one line of bounded length."""
    return " ".join(reason.split())[:MOST_REASON]
