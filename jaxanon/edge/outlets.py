"""Opens what the anonymized stream leaves by: a file, a pipe or an MQTT topic."""

import re

from jaxanon.edge.csv_file import CsvFile
from jaxanon.edge.mqtt import MqttTopic
from jaxanon.edge.pipe import Pipe
from jaxanon.edge.signature import Signature


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
      >>> from jaxanon.edge.blocks import Block
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
