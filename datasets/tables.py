"""Text files that hold a table of numbers."""

import io

import numpy as np


def read_numbers(
    name: str, content: bytes, columns: int, delimiter: str | None = None
) -> np.ndarray:
    """``float64[rows, columns]``; ValueError naming the file if it is damaged.

    Numbers have the ``delimiter`` between them, or blanks if that is None.

    Example:
      >>> read_numbers("a.txt", b"1 2 3\\n4 5 6\\n", columns=3).sum(axis=0)
      array([5., 7., 9.])
    """
    try:
        text = io.BytesIO(content)
        rows = None
        if content.strip():
            rows = np.loadtxt(text, delimiter=delimiter, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{name} is truncated or damaged ({error}).") from error
    if rows is None or rows.shape[1] != columns:
        shape = None if rows is None else rows.shape
        raise ValueError(f"{name} must hold {columns} numbers a row, got {shape}.")
    return rows
