"""Reader of text files with a table of numbers."""

import functools
import io

import numpy as np


def read_numbers(
    name: str, content: bytes, columns: int, delimiter: str | None = None
) -> np.ndarray:
    """Parses ``float64[rows, columns]`` from the text of a file.

    Args:
      name: name of the file in error messages.
      content: text of the file.
      columns: number of columns of each row.
      delimiter: delimiter between numbers; None is whitespace.

    Raises:
      ValueError: if the number of columns differs, or the text has no row or holds a
        value that is not a number.

    Example:
      >>> read_numbers("a.txt", b"1 2 3\\n4 5 6\\n", columns=3).sum(axis=0)
      array([5., 7., 9.])
      >>> read_numbers("a.csv", b"1,2\\n", columns=2, delimiter=",")
      array([[1., 2.]])
    """
    try:
        read = functools.partial(np.loadtxt, delimiter=delimiter, ndmin=2)
        rows = read(io.BytesIO(content)) if content.strip() else None
    except ValueError as error:
        raise ValueError(f"{name} is truncated or damaged ({error}).") from error
    if rows is None or rows.shape[1] != columns:
        shape = None if rows is None else rows.shape
        raise ValueError(f"{name} must hold {columns} numbers per row, got {shape}.")
    return rows
