"""A CSV file that contains only whole rows, even after crashes and disk errors."""

import errno
import math
import os
import pathlib
import stat
import time

import numpy as np

from jaxanon.edge import rows
from jaxanon.edge.types import Block, Signature

MENDABLE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EAGAIN, errno.ENOBUFS}
TAIL = 1 << 16  # Final bytes of a file that must include a whole row.
INTERRUPTED = "the stream was interrupted here and resumed later"

NO_FILE = (
    "target {} must be a regular file; use '-' for standard output, which a shell can "
    "redirect."
)


class CsvFile:
    """An outlet to a file.

    If the disk rejects data, the file is cut back to its last whole row, and a gap
    replaces the lost rows once there is space. Rows reach the operating system
    immediately, so a killed process loses none. They are forced to disk (``fsync``)
    every ``sync_s`` seconds, which bounds the loss at a power failure.

    Args:
      path: path of the file, created with default permissions.
      wanted: ``Signature`` of the stream.
      append: whether to continue an existing file.
      sync_s: interval of ``fsync`` in seconds. With 0, every block is synced.

    Raises:
      FileExistsError: if the file exists and ``append`` is False.
      BlockingIOError: if another process writes the file.
      ValueError: if it is not a regular file, or has other columns.
      OSError: if it cannot be created or read.
    """

    def __init__(self, path, wanted: Signature, append=False, sync_s: float = 1.0):
        self.path, self._wanted, self._sync_s = pathlib.Path(path), wanted, sync_s
        self._closed = False
        self._missing, self._why = 0, ""  # Rows that were not written.
        self._unsynced = 0  # Rows since the last fsync.
        # (start, reason) of a gap that is not yet in the file
        self._lost: tuple[float, str] | None = None
        self._file = _open(self.path, append)
        try:
            self._whole = self._begin()
            os.fsync(self._file)
        except BaseException:
            os.close(self._file)
            if not append:  # The file was created here.
                self.path.unlink(missing_ok=True)
            raise
        self._synced = self._whole, math.nan
        self._sync_at = time.monotonic() + sync_s

    def write(self, block: Block) -> None:
        """Writes a block, or records a gap while the disk rejects data.

        Args:
          block: ``Block``.

        Raises:
          ValueError: see ``rows.checked``.
          OSError: if the error is permanent.
        """
        block_lines = rows.lines(self._wanted, block)
        gap = [] if self._lost is None else [rows.gap_line(self._wanted, *self._lost)]
        new = gap + block_lines
        if not new:
            return
        written, error = self._put("".join(line.text for line in new).encode())
        kept = len(new) if error is None else _whole_rows(new, written)
        if math.isnan(self._synced[1]):
            self._synced = self._synced[0], new[0].time
        if kept:
            self._lost = None
        kept_lines = max(0, kept - len(gap))
        self._unsynced += kept_lines
        if error is None:
            self._sync()
            return
        if self._lost is None:
            self._lost = new[kept].time, f"not written: {error.strerror}"
        self._miss(len(block_lines) - kept_lines, error)
        if error.errno not in MENDABLE:
            raise error

    def lost(self) -> str:
        """Returns a sentence about rows that are not in the file, or ""."""
        if not self._missing:
            return ""
        return (
            f"{self._missing} rows are missing in {self.path} ({self._why}); check the "
            "free space and health of its disk."
        )

    def _miss(self, number, error):
        self._missing, self._why = self._missing + number, error.strerror

    def close(self) -> None:
        """Syncs the file to disk; retries a gap at its end once."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._lost is not None and self._lost[1] != INTERRUPTED:
                self._put(rows.gap_line(self._wanted, *self._lost).text.encode())
            os.fsync(self._file)
        except OSError as error:
            self._miss(self._unsynced, error)
            if error.errno not in MENDABLE:
                raise
        finally:
            os.close(self._file)

    def _put(self, data):
        """Appends whole rows; returns the number of written bytes and the error."""
        done, error = 0, None
        try:
            os.ftruncate(self._file, self._whole)  # Removes a partial row.
            while done < len(data):
                done += os.pwrite(self._file, data[done:], self._whole + done)
        except OSError as caught:
            error = caught
            done = data.rfind(b"\n", 0, done) + 1
        self._whole += done
        if error is not None:
            try:
                os.ftruncate(self._file, self._whole)
            except OSError:
                pass  # The next write truncates first.
        return done, error

    def _sync(self):
        """Syncs if it is time; replaces rows that may be lost by a gap."""
        if time.monotonic() < self._sync_at:
            return
        try:
            os.fsync(self._file)
        except OSError as error:
            # Rows since the last sync may be lost, and a retry would not report it.
            self._whole, start = self._synced
            self._lost = start, f"not written: {error.strerror}"
            self._miss(self._unsynced, error)
            if error.errno not in MENDABLE:
                raise
        self._unsynced = 0
        self._synced = self._whole, math.nan
        self._sync_at = time.monotonic() + self._sync_s

    def _begin(self):
        """Writes the header, or finds the end of whole rows; returns the offset."""
        head = rows.header(self._wanted).encode()
        size = os.fstat(self._file).st_size
        start = os.pread(self._file, len(head), 0)
        if start != head and head.startswith(start):  # Empty, or a partial header.
            os.ftruncate(self._file, 0)
            self._whole = 0
            _, error = self._put(head)
            if error is not None:
                os.ftruncate(self._file, 0)
                raise error
            return len(head)
        if start != head:
            raise ValueError(
                f"{self.path} must begin with {head.decode()!r} for this stream, got "
                f"{start[:200].decode(errors='replace')!r}; use another file."
            )
        whole, last = self._last_row(len(head), size)
        if last is not None:
            self._lost = last + 1 / self._wanted.rate_hz, INTERRUPTED
        os.ftruncate(self._file, whole)
        return whole

    def _last_row(self, head, size):
        """Returns the end of the last whole row and its time; None without a row."""
        start = max(head, size - TAIL)
        tail = os.pread(self._file, size - start, start)
        if start > head:  # Skips to the first row that begins in the tail.
            skipped = tail.find(b"\n") + 1
            start, tail = start + skipped, tail[skipped:]
        while tail:
            whole = tail.rfind(b"\n", 0, len(tail)) + 1
            tail = tail[:whole]
            row = tail[tail.rfind(b"\n", 0, -1) + 1 :]
            row_time = _time(row, len(self._wanted.channels))
            if row_time is not None:
                return start + whole, row_time
            tail = tail[: len(tail) - len(row)]
        if start > head:
            raise ValueError(
                f"{self.path} has no whole row in its last {TAIL} bytes; use another "
                "file."
            )
        return head, None


def _open(path, append):
    """Returns a file descriptor with an exclusive lock."""
    import fcntl  # Not on Windows, where everything else works.

    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {path.parent} does not exist; create it for {path.name}."
        )
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_NONBLOCK
    try:
        file = os.open(path, flags | (0 if append else os.O_EXCL), 0o666)
    except FileExistsError:
        if not path.is_file():
            raise ValueError(NO_FILE.format(path)) from None
        raise FileExistsError(
            errno.EEXIST,
            "it exists; continue it with --append (append=True), or use another file",
            str(path),
        ) from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError(NO_FILE.format(path))
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BlockingIOError:
        os.close(file)
        raise BlockingIOError(
            errno.EWOULDBLOCK, "another process writes this file; use another", path
        ) from None
    except BaseException:
        os.close(file)
        raise
    return file


def _whole_rows(new, written):
    """Returns the number of lines within the written bytes."""
    ends = np.cumsum([len(line.text.encode()) for line in new])
    return int(np.searchsorted(ends, written, side="right"))


def _time(row, channels):
    """Returns the time of a row, or None if the row is incomplete."""
    fields = row.rstrip(b"\n").split(b",")
    if not row.endswith(b"\n") or b"\0" in row or len(fields) < channels + 2:
        return None
    try:
        return float(fields[0])
    except ValueError:
        return None
