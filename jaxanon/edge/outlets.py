"""Outputs of an anonymized stream: file, pipe or MQTT topic."""

import os
import re
import select
import sys

from jaxanon.edge import rows
from jaxanon.edge.csv_file import CsvFile
from jaxanon.edge.mqtt import MqttTopic
from jaxanon.edge.types import Block, Signature


class Pipe:
    """An outlet to the standard output, a CSV table that any tool reads.

    When the receiver closes the pipe, ``write`` raises BrokenPipeError, which ends the
    stream. Afterwards ``close`` and Python's exit are silent.

    Args:
      wanted: ``Signature`` of the stream.
      file: file descriptor. None means standard output.

    Raises:
      BrokenPipeError: if the pipe is closed.
    """

    def __init__(self, wanted: Signature, file: int | None = None):
        if file is None:
            sys.stdout.flush()
            file = sys.stdout.fileno()
        self._wanted, self._file = wanted, file
        self._put(rows.column_names(wanted))

    def write(self, block: Block) -> None:
        """Writes a block; blocks while the pipe is full.

        Args:
          block: ``Block``.

        Raises:
          BrokenPipeError: if the pipe is closed.
          ValueError: see ``rows.checked``.
        """
        self._put("".join(line.text for line in rows.lines(self._wanted, block)))

    def close(self) -> None:
        """Does nothing, because the standard output stays open."""

    def lost(self) -> str:
        """Returns "", because ``write`` waits until all data is written."""
        return ""

    def _put(self, text):
        data = memoryview(text.encode())
        try:
            while data:
                try:
                    data = data[os.write(self._file, data) :]
                except BlockingIOError:  # The inherited descriptor is non-blocking.
                    select.select([], [self._file], [])
        except BrokenPipeError:
            # Python's flush at exit must not fail again.
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._file)
            os.close(null)
            raise


def open_outlet(target, signature: Signature, *, append: bool = False):
    """Opens an outlet for a stream.

    Args:
      target: path of a CSV file, ``-`` for standard output, or
        ``mqtt://HOST[:PORT]/TOPIC`` (``mqtts://`` for TLS).
      signature: signature of the stream.
      append: whether to continue an existing file.

    Returns:
      ``CsvFile``, ``Pipe`` or ``MqttTopic``, with ``write(block)``, ``close()``, and
      ``lost()``, which returns a sentence about lost data or "".

    Raises:
      ValueError: if ``target`` is invalid, or the file has another signature.
      OSError: if it cannot be opened, including FileExistsError without ``append``.

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
        raise ValueError(f"append requires a file, got target {target}.")
    if str(target) == "-":
        return Pipe(signature)
    if scheme and scheme[1] in ("mqtt", "mqtts"):
        return MqttTopic(str(target), signature)
    if scheme:
        raise ValueError(
            f"target must be a path, '-', mqtt:// or mqtts://, got {target!r}."
        )
    return CsvFile(target, signature, append=append)
