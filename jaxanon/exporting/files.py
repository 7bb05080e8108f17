"""Files of an exported model: digest, card, metadata and sample data."""

import csv
import hashlib
import io
import math
import os
import pathlib

import numpy as np

from jaxanon.datasets import writing
from jaxanon.datasets.choices import choose

FORMATS = ("onnx", "stablehlo")


def names(path: pathlib.Path, *endings: str) -> list[pathlib.Path]:
    """Returns the paths of the file, its digest and files with further endings.

    Example:
      >>> [one.name for one in names(pathlib.Path("a/b.onnx"), ".md")]
      ['b.onnx', 'b.onnx.sha256', 'b.onnx.md']
    """
    return [path.with_name(path.name + ending) for ending in ("", ".sha256", *endings)]


def check_ending(path: pathlib.Path, format: str) -> None:
    """Raises ValueError if the format is unknown or does not match the file name.

    Example:
      >>> check_ending(pathlib.Path("a/b.onnx"), "onnx")
    """
    choose("format", format, FORMATS)
    onnx = path.suffix.lower() == ".onnx"
    if onnx != (format == "onnx"):
        raise ValueError(
            "the file name must end in .onnx if and only if the format is onnx, got "
            f"{path.name!r} for {format}."
        )


def refuse_unwritable(path: pathlib.Path, *endings: str, overwrite: bool) -> None:
    """Raises an error if one of the files could not be written later."""
    for file in names(path, *endings):
        writing.check_writable(file, overwrite)


def write(path: pathlib.Path, raw: bytes, **texts: str | None) -> str:
    """Writes a file, its digest, and accompanying texts.

    The digest is written first, so a reader never finds a file with a stale digest.

    Args:
      path: path of the file.
      raw: contents of the file.
      **texts: text by file ending. None is skipped.

    Returns:
      The SHA-256 digest, in hexadecimal.
    """
    digest = hashlib.sha256(raw).hexdigest()
    all_texts = {"sha256": f"{digest}  {path.name}\n"} | texts
    for ending, text in all_texts.items():
        if text is not None:
            writing.write(path.with_name(f"{path.name}.{ending}"), text)
    writing.write(path, raw)
    return digest


ROW = 6  # Consecutive windows per piece, about the averaging span of the dashboard.


def write_samples(data, path: str | os.PathLike, *, seconds: float = 300.0) -> int:
    """Writes test windows as a continuous CSV recording for ``jaxanon-edge``.

    Pieces of six consecutive windows are spread evenly over the test data, so that all
    classes occur. The signal jumps between pieces.

    Args:
      data: data from ``jaxanon.load``.
      path: path of the CSV file, which is replaced. Its header names channels and
        units.
      seconds: maximum duration. At least one window is written.

    Returns:
      The number of rows.

    Raises:
      ValueError: if ``seconds`` is negative or infinite, or there are no test windows.

    Example:
      >>> import pathlib, tempfile, jaxanon as ja
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder, "samples.csv")
      ...     rows = write_samples(ja.load("smartwatch"), path, seconds=6)
      ...     first = path.read_text().split(",")[:2]
      >>> rows, first
      (256, ['time', 'acc.x [g]'])
    """
    if not 0 <= seconds < math.inf:
        raise ValueError(f"seconds must be finite and >= 0, got {seconds!r}.")
    spec, windows = data.spec, np.asarray(data.test.windows)
    if not len(windows):
        raise ValueError("data must have a test window; choose another split.")
    count = max(1, min(len(windows), int(seconds * spec.rate_hz / spec.time)))
    first = np.linspace(0, max(0, len(windows) - ROW), -(-count // ROW)).astype(int)
    indices = (first[:, None] + np.arange(ROW)).reshape(-1)[:count]
    chosen = windows[np.minimum(indices, len(windows) - 1)]
    rows = chosen.reshape(-1, windows.shape[2])
    names = (
        f"{name} [{unit}]" if unit else name
        for name, unit in zip(spec.channels, spec.units, strict=True)
    )
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["time", *names])
    for number, row in enumerate(rows):
        table.writerow([f"{number / spec.rate_hz:.6f}", *(f"{x:.7g}" for x in row)])
    writing.write(path, text.getvalue())
    return len(rows)
