"""The standard output as an outlet, in the rows of a CSV file."""

import os
import select
import sys

from jaxanon.edge import rows
from jaxanon.edge.blocks import Block
from jaxanon.edge.signature import Signature


class Pipe:
    """An outlet that is the standard output.

    A class because outlets are. When the reader goes, ``write`` raises BrokenPipeError,
    the sign to end the stream; ``close`` says nothing, nor does Python on its way out.

    Args:
      wanted: ``Signature`` of the stream.
      file: descriptor to write to; None is the standard output's.

    Raises:
      BrokenPipeError: if nobody reads.
    """

    def __init__(self, wanted: Signature, file: int | None = None):
        if file is None:
            sys.stdout.flush()
            file = sys.stdout.fileno()
        self._wanted, self._file = wanted, file
        self._put(rows.header(wanted))

    def write(self, block: Block) -> None:
        """Writes a block; waits while the pipe is full.

        Args:
          block: ``Block``.

        Raises:
          BrokenPipeError: if nobody reads any more.
          ValueError: as ``rows.checked``.
        """
        self._put("".join(line.text for line in rows.lines(self._wanted, block)))

    def close(self) -> None:
        """Leaves the standard output as it is; it is not this outlet's to close."""

    def lost(self) -> str:
        """Nothing, for it waits until all is taken."""
        return ""

    def _put(self, text):
        data = memoryview(text.encode())
        try:
            while data:
                try:
                    data = data[os.write(self._file, data) :]
                except BlockingIOError:  # Whoever gave it to us made it non-blocking.
                    select.select([], [self._file], [])
        except BrokenPipeError:
            # What Python still flushes at its end must not fail again.
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self._file)
            os.close(nothing)
            raise
