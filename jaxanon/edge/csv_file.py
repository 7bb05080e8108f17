"""A CSV file that holds whole rows only, whatever happens to disk and process."""

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
TAIL = 1 << 16  # Bytes at a file's end in which its last whole row must lie.
INTERRUPTED = "the stream stopped here and was started again later"

NO_FILE = (
    "target {} is not a regular file; '-' writes to the standard output, which a shell "
    "can lead anywhere."
)


class CsvFile:
    """An outlet that is a file.

    A class because it remembers how far the file is whole. What the disk does not take
    is cut back to the last whole row, and once there is room again a gap stands in its
    place. Rows are handed to the operating system at once, so that a process that is
    killed loses none; they are forced onto the disk (``fsync``) every ``sync_s``, which
    bounds what a power cut can take.

    Args:
      path: of the file; it is made with the directory's default permissions.
      wanted: ``Signature`` of the stream.
      append: go on at the end of a file that is there already.
      sync_s: seconds between two times that rows are forced onto the disk; 0 forces
        every block.

    Raises:
      FileExistsError: if there is such a file and ``append`` is not set.
      BlockingIOError: if another process writes it.
      ValueError: if it is not a regular file, or not of these columns.
      OSError: if it cannot be made or read.
    """

    def __init__(self, path, wanted: Signature, append=False, sync_s: float = 1.0):
        self.path, self._wanted, self._sync_s = pathlib.Path(path), wanted, sync_s
        self._closed = False
        self._missing, self._why = 0, ""  # Rows that the disk did not take.
        self._unsynced = 0  # Rows that it may still lose.
        self._lost: tuple[float, str] | None = (
            None  # (start, reason) of what is not in the file.
        )
        self._file = _opened(self.path, append)
        try:
            self._whole = self._begin()
            os.fsync(self._file)
        except BaseException:
            os.close(self._file)
            if not append:  # So it was made here.
                self.path.unlink(missing_ok=True)
            raise
        self._synced = self._whole, math.nan
        self._sync_at = time.monotonic() + sync_s

    def write(self, block: Block) -> None:
        """Writes a block, or remembers it as a gap while the disk takes nothing.

        Args:
          block: ``Block``.

        Raises:
          ValueError: as ``rows.checked``.
          OSError: for what waiting does not mend.
        """
        own = rows.lines(self._wanted, block)
        gap = [] if self._lost is None else [rows.gap_line(self._wanted, *self._lost)]
        new = gap + own
        if not new:
            return
        written, error = self._put("".join(line.text for line in new).encode())
        kept = len(new) if error is None else _whole_rows(new, written)
        if math.isnan(self._synced[1]):
            self._synced = self._synced[0], new[0].time
        if kept:
            self._lost = None
        kept_own = max(0, kept - len(gap))
        self._unsynced += kept_own
        if error is None:
            self._sync()
            return
        if self._lost is None:
            self._lost = new[kept].time, f"not written: {error.strerror}"
        self._miss(len(own) - kept_own, error)
        if error.errno not in MENDABLE:
            raise error

    def lost(self) -> str:
        """What is not in the file, in a sentence; nothing if all is."""
        if not self._missing:
            return ""
        return (
            f"{self._missing} rows are not in {self.path} ({self._why}); see that its "
            "disk has room and is sound."
        )

    def _miss(self, number, error):
        self._missing, self._why = self._missing + number, error.strerror

    def close(self) -> None:
        """Forces what is there onto the disk; a gap at the end is tried once more."""
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
        """Bytes of whole rows that were written at the end, and what went wrong."""
        done, error = 0, None
        try:
            os.ftruncate(self._file, self._whole)  # What an earlier cut left.
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
                pass  # The next write cuts before it writes.
        return done, error

    def _sync(self):
        """Forces rows onto the disk if it is time; what may be lost becomes a gap."""
        if time.monotonic() < self._sync_at:
            return
        try:
            os.fsync(self._file)
        except OSError as error:
            # Rows since the last time may be gone, and asking again would not tell.
            self._whole, start = self._synced
            self._lost = start, f"not written: {error.strerror}"
            self._miss(self._unsynced, error)
            if error.errno not in MENDABLE:
                raise
        self._unsynced = 0
        self._synced = self._whole, math.nan
        self._sync_at = time.monotonic() + self._sync_s

    def _begin(self):
        """Writes the header, or finds where whole rows end; in bytes."""
        head = rows.header(self._wanted).encode()
        size = os.fstat(self._file).st_size
        there = os.pread(self._file, len(head), 0)
        if there != head and head.startswith(there):  # Empty, or cut off in its head.
            os.ftruncate(self._file, 0)
            self._whole = 0
            _, error = self._put(head)
            if error is not None:
                os.ftruncate(self._file, 0)
                raise error
            return len(head)
        if there != head:
            raise ValueError(
                f"{self.path} is not of this stream: it begins with "
                f"{there[:200].decode(errors='replace')!r}, and should with "
                f"{head.decode()!r}; name another file."
            )
        whole, last = self._last_row(len(head), size)
        if last is not None:
            self._lost = last + 1 / self._wanted.rate_hz, INTERRUPTED
        os.ftruncate(self._file, whole)
        return whole

    def _last_row(self, head, size):
        """Where the last whole row ends, and its time; None without a row."""
        start = max(head, size - TAIL)
        tail = os.pread(self._file, size - start, start)
        if start > head:  # Cut to the first row that begins in here.
            skipped = tail.find(b"\n") + 1
            start, tail = start + skipped, tail[skipped:]
        while tail:
            whole = tail.rfind(b"\n", 0, len(tail)) + 1
            tail = tail[:whole]
            row = tail[tail.rfind(b"\n", 0, -1) + 1 :]
            found = _time(row, len(self._wanted.channels))
            if found is not None:
                return start + whole, found
            tail = tail[: len(tail) - len(row)]
        if start > head:
            raise ValueError(
                f"{self.path} has no whole row in its last {TAIL} bytes; name another "
                "file."
            )
        return head, None


def _opened(path, append):
    """A file descriptor that this process alone writes to."""
    import fcntl  # Not on Windows, where the rest of the runtime goes on.

    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{path.parent} is no folder; make it, for {path.name}."
        )
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_NONBLOCK
    try:
        file = os.open(path, flags | (0 if append else os.O_EXCL), 0o666)
    except FileExistsError:
        if not path.is_file():
            raise ValueError(NO_FILE.format(path)) from None
        raise FileExistsError(
            errno.EEXIST,
            "it is there already; --append (append=True) goes on at its end, or name "
            "another file",
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
            errno.EWOULDBLOCK, "another process writes this file; name another", path
        ) from None
    except BaseException:
        os.close(file)
        raise
    return file


def _whole_rows(new, written):
    """How many of the lines lie within the bytes that were written."""
    ends = np.cumsum([len(line.text.encode()) for line in new])
    return int(np.searchsorted(ends, written, side="right"))


def _time(row, channels):
    """The time of a row, None if it is not a whole one."""
    fields = row.rstrip(b"\n").split(b",")
    if not row.endswith(b"\n") or b"\0" in row or len(fields) < channels + 2:
        return None
    try:
        return float(fields[0])
    except ValueError:
        return None
