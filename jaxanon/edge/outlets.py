"""What the anonymized stream leaves by: a file, a pipe or an MQTT topic."""

import os
import re
import select
import sys

from jaxanon.edge import rows
from jaxanon.edge.csv_file import CsvFile
from jaxanon.edge.mqtt import MqttTopic
from jaxanon.edge.types import Block, Signature


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


def open_outlet(target, signature: Signature, *, append: bool = False):
    """Opens an outlet for a stream.

    Args:
      target: path of a CSV file; ``-`` for the standard output; or
        ``mqtt://HOST[:PORT]/TOPIC``, ``mqtts://`` with TLS.
      signature: of the stream.
      append: go on at the end of a file that is there already.

    Returns:
      ``CsvFile``, ``Pipe`` or ``MqttTopic``: ``write(block)``, ``close()``, and
      ``lost()``, a sentence on what did not leave, if any.

    Raises:
      ValueError: if ``target`` is no such thing, or a stream of another signature.
      OSError: if it cannot be opened; FileExistsError for a file that is there already
        without ``append``.

    Example:
      >>> import numpy as np, pathlib
      >>> from jaxanon.edge.types import Block
      >>> outlet = open_outlet("wrist.csv", Signature(8, ("x",), ("g",), 2.0))
      >>> outlet.write(Block(0.0, 2.0, np.array([[1.0], [0.5]], np.float32), "", 1.0))
      >>> outlet.close()
      >>> print(pathlib.Path("wrist.csv").read_text(), end="")
      # jaxanon stream, format 1, rate_hz 2.0
      time,gap,x [g]
      0.000000,,1.0
      0.500000,,0.5
    """
    scheme = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*)://", str(target))
    if append and (scheme or str(target) == "-"):
        raise ValueError(f"append is for files, and target {target} is none.")
    if str(target) == "-":
        return Pipe(signature)
    if scheme and scheme[1] in ("mqtt", "mqtts"):
        return MqttTopic(str(target), signature)
    if scheme:
        raise ValueError(
            f"target must be a path, '-', mqtt:// or mqtts://, got {target!r}."
        )
    return CsvFile(target, signature, append=append)
