"""Files beside an exported model: its digest, its texts, and samples to try it."""

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
    """The file, its digest's, and those of further endings.

    Example:
      >>> [one.name for one in names(pathlib.Path("a/b.onnx"), ".md")]
      ['b.onnx', 'b.onnx.sha256', 'b.onnx.md']
    """
    return [path.with_name(path.name + ending) for ending in ("", ".sha256", *endings)]


def check_ending(path: pathlib.Path, format: str) -> None:
    """Raises ValueError for a format that there is not, or the name of another's file.

    Example:
      >>> check_ending(pathlib.Path("a/b.onnx"), "onnx")
    """
    choose("format", format, FORMATS)
    onnx = path.suffix.lower() == ".onnx"
    if onnx != (format == "onnx"):
        raise ValueError(
            "the name of a file must end in .onnx if its format is onnx, and else may "
            f"not, or it is taken for what it is not; got {path.name!r} for {format}."
        )


def refuse_unwritable(path: pathlib.Path, *endings: str, overwrite: bool) -> None:
    """Refuses those files, if one of them could not be written later."""
    for file in names(path, *endings):
        writing.check_writable(file, overwrite)


def write(path: pathlib.Path, raw: bytes, **beside: str | None) -> str:
    """Writes a file, its digest, and texts beside it, by their endings.

    The digest is there first, so that nobody ever finds a file that passes for another.

    Args:
      path: of the file.
      raw: its bytes.
      **beside: of each ending the text; what is None is not written.

    Returns:
      The SHA-256 digest, in hexadecimal.
    """
    digest = hashlib.sha256(raw).hexdigest()
    texts = {"sha256": f"{digest}  {path.name}\n"} | beside
    for ending, text in texts.items():
        if text is not None:
            writing.write(path.with_name(f"{path.name}.{ending}"), text)
    writing.write(path, raw)
    return digest


ROW = 6  # Neighbouring windows, about as long as what a page averages over.


def write_samples(data, path: str | os.PathLike, *, seconds: float = 300.0) -> int:
    """Writes test windows end to end, as rows that ``jaxanon-edge`` reads.

    Six neighbouring windows at a time, spread evenly over the test part, so that all
    classes occur; where one ends and the next begins the signal jumps, as no wearer's
    would.

    Args:
      data: of ``jaxanon.load``.
      path: of the CSV file, which is replaced; its header names channels and units.
      seconds: to write at most, one window at least.

    Returns:
      How many rows were written.

    Raises:
      ValueError: if ``seconds`` are not >= 0 and finite, or there is no test window.

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
    places = (first[:, None] + np.arange(ROW)).reshape(-1)[:count]
    chosen = windows[np.minimum(places, len(windows) - 1)]
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
