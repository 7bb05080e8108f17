"""Text files that hold a table of numbers."""

import functools
import io

import numpy as np


def read_numbers(
    name: str, content: bytes, columns: int, delimiter: str | None = None
) -> np.ndarray:
    """``float64[rows, columns]``; ValueError naming the file if it is damaged.

    Args:
      name: of the file, for the error.
      content: its text.
      columns: that each row must have.
      delimiter: between numbers; None: blanks.

    Raises:
      ValueError: for another number of columns, no row, or what is no number.

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
        raise ValueError(f"{name} must hold {columns} numbers a row, got {shape}.")
    return rows
