"""Rows of CSV, from a file or a pipe, as arrays of times and samples as they come."""

import io
import os
import re
import sys
from collections.abc import Iterator

import numpy as np

LONGEST = 1 << 16  # Bytes of a line; what is longer is malformed.
AT_ONCE = 1 << 16  # Bytes that are read, at most.


class Rows:
    """Rows ``time,<channel>,...`` of CSV. A class because a file is read once.

    The first line that is no comment (``#``) names the columns: ``time``, in s, then
    channels, each with its unit in brackets where it is declared, as in ``acc x [g]``.
    Lines come as soon as they are there, and memory is bounded. Lines that are no
    numbers, as many as there are columns, are skipped and counted in ``malformed``; so
    are lines of more than 64 KiB.

    Args:
      file: of bytes.

    Raises:
      ValueError: without such a header.

    Example:
      >>> rows = Rows(io.BytesIO(b"time,x [g]\\n0,1\\noh\\n1,2\\n"))
      >>> rows.channels, rows.units
      (('x',), ('g',))
      >>> list(rows)
      [(array([0., 1.]), array([[1.],
             [2.]]))]
      >>> rows.malformed
      1
    """

    def __init__(self, file: io.BufferedIOBase):
        self.close = file.close
        # read1 gives what is there; a pipe's read would wait for all that was asked.
        self._read = file.read1
        self._rest = b""
        self._skipping = False  # Are we inside a line that is too long?
        self.malformed = 0
        self._ended = False
        header, self._first = self._header()
        names = [name.strip() for name in header.split(",")]
        if names[0].lower() not in ("time", "time [s]") or len(names) < 2:
            # What the line says is not told: it may be raw samples.
            raise ValueError(
                "the first line must name the columns, as in 'time,acc x [g],acc y "
                "[g]', and it does not; put such a line before the rows."
            )
        split = [re.fullmatch(r"(.*?)\s*(?:\[([^\]]*)\])?", name) for name in names[1:]]
        self.channels = tuple(match[1] for match in split if match)
        self.units = tuple(match[2] for match in split if match)

    def _header(self):
        """The first line that says anything, and what was read behind it."""
        while not self._ended:
            lines = self._lines()
            for index, line in enumerate(lines):
                if line.strip() and not line.startswith(b"#"):
                    text = line.decode("utf-8-sig", errors="replace").strip()
                    return text, lines[index + 1 :]
        return "", []

    def _lines(self):
        """The whole lines that one read ends; it waits for something to be there."""
        read = self._read(AT_ONCE)
        self._ended = not read
        if self._skipping:
            # The rest of a line that was too long, and is counted.
            _, newline, read = read.partition(b"\n")
            self._skipping = not newline
        *lines, self._rest = (self._rest + read).split(b"\n")
        if self._ended:
            lines, self._rest = [*lines, self._rest], b""
        if len(self._rest) > LONGEST:
            self.malformed += 1
            self._rest, self._skipping = b"", True
        return lines

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """``float64[n]`` times in s and ``float64[n, channels]``, n > 0."""
        lines, self._first = self._first, []
        while True:
            rows = self._numbers(lines, 1 + len(self.channels))
            if len(rows):
                yield rows[:, 0], rows[:, 1:]
            if self._ended:
                return
            lines = self._lines()

    def _numbers(self, lines, width):
        lines = [line for line in lines if line.strip() and not line.startswith(b"#")]
        try:
            # All at once, where every line is as it should be.
            if all(line.count(b",") == width - 1 for line in lines):
                flat = [float(text) for text in b",".join(lines).split(b",")]
                return np.array(flat).reshape(-1, width)
        except ValueError:
            pass
        rows = []
        for line in lines:
            try:
                row = [float(text) for text in line.split(b",")]
            except ValueError:
                row = []
            if len(row) == width:
                rows.append(row)
            else:
                self.malformed += 1
        return np.array(rows).reshape(-1, width)


def open_rows(source: str | os.PathLike) -> Rows:
    """Opens a file of rows, or ``-``, the standard input; ``close`` it.

    Raises:
      FileNotFoundError: without the file.
      ValueError: without a header.

    Example:
      >>> open_rows("nowhere.csv")
      Traceback (most recent call last):
      ...
      FileNotFoundError: there is no file nowhere.csv; name one, or - to read a pipe.
    """
    if str(source) == "-":
        return Rows(open(sys.stdin.fileno(), "rb", closefd=False))
    if not os.path.isfile(source):
        raise FileNotFoundError(
            f"there is no file {source}; name one, or - to read a pipe."
        )
    file = open(source, "rb")
    try:
        return Rows(file)
    except ValueError as error:
        file.close()
        raise ValueError(f"{source}: {error}") from None
