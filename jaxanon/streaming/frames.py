"""Tables in memory: DataFrames of pandas and polars, Arrow tables, dicts of arrays."""

import collections
import contextlib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxanon.recordings import units
from jaxanon.streaming.tables import ROWS, Batch, of_type


def _library(table) -> str:
    """Returns the library of a table; "dict" for a mapping, "" for anything else."""
    if isinstance(table, Mapping):
        return "dict"
    library = type(table).__module__.partition(".")[0]
    name = type(table).__name__
    known = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
    return library if known.get(library) == name else ""


def is_table(source) -> bool:
    """Returns whether a source is a table in memory, not a path.

    Example:
      >>> is_table({"x": [1.0]}), is_table("walk.csv")
      (True, False)
    """
    return bool(_library(source))


def open_table(table) -> "TableRecording":
    """Opens a table for reading."""
    return TableRecording(table)


class TableRecording:
    """A table in memory; attributes as in ``tables.CsvRecording``."""

    path = "the table"
    decimal = "."
    first_malformed = None

    def __init__(self, table):
        import pyarrow as pa

        self.library, self.table = _library(table), table
        if self.library == "pyarrow":
            names, arrays = table.column_names, table.columns
        elif self.library == "polars":
            names, arrays = table.columns, table.to_arrow().columns
        else:
            names = list(table) if self.library == "dict" else list(table.columns)
            arrays = [_arrow(table[name], name) for name in names]
            if self.library == "pandas" and table.index.dtype.kind == "M":
                # Times of a DataFrame often are its index.
                self.index = pa.array(table.index.to_numpy())
        sizes = {len(array) for array in arrays}
        if len(sizes) > 1:
            raise ValueError(
                f"columns of the table must have one length, got {sorted(sizes)}."
            )
        self.header = [str(name) for name in names]
        index = getattr(self, "index", None)
        if index is not None and not {"time", "timestamp"} & {*self.header}:
            self.header.append("time")
            arrays = [*arrays, index]
            self.from_index = True
        else:
            self.from_index = False
        self._arrays = [
            array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
            for array in arrays
        ]
        split = [units.split_name(name) for name in self.header]
        self.names = [name for name, _ in split]
        self.units = [unit for _, unit in split]
        self.losses: collections.Counter[str] = collections.Counter()

    def batches(self) -> Iterator[Batch]:
        """Yields the rows."""
        count = len(self._arrays[0]) if self._arrays else 0
        for first in range(0, count, ROWS):
            part = [array.slice(first, ROWS) for array in self._arrays]
            yield Batch(part, min(ROWS, count - first))

    def times_text(self, times: np.ndarray, index: int, unknown=None):
        """Returns times as an Arrow array of the type of a column."""
        return of_type(times, self._arrays[index].type, unknown)

    def empty(self, index: int):
        """Returns a column without rows."""
        return self._arrays[index].slice(0, 0)


def _arrow(values, name):
    """Returns a column as an Arrow array."""
    import pyarrow as pa

    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(
            f"column {name!r} of the table must have one axis, got {array.ndim}."
        )
    try:
        return pa.array(array, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        raise ValueError(
            f"column {name!r} of the table must hold numbers, dates or text, got mixed "
            "or other values; convert it."
        ) from None


class Collected:
    """Collects the columns of an anonymized table."""

    def __init__(self, recording: TableRecording):
        self._recording = recording
        self._parts: list[list] = []
        self._names: list[str] = []

    @contextlib.contextmanager
    def writer(self, columns: Sequence[int], gap: bool):
        """Yields a function that takes columns, as that of a file."""
        self._names = [self._recording.header[n] for n in columns] + ["gap"] * gap

        def write(values, gaps):
            self._parts.append([*values, *([] if gaps is None else [gaps])])

        yield write

    def table(self) -> Any:
        """Returns a table of the input's type."""
        import pyarrow as pa

        columns = {}
        for number, name in enumerate(self._names):
            parts = [part[number] for part in self._parts]
            if isinstance(parts[0], np.ndarray):
                columns[name] = np.concatenate(parts)
            else:
                columns[name] = pa.chunked_array(parts)
        library = self._recording.library
        if library == "pyarrow":
            return pa.table(columns)
        if library == "polars":
            return importlib.import_module("polars").from_arrow(pa.table(columns))
        arrays = {
            name: column if isinstance(column, np.ndarray) else column.to_numpy()
            for name, column in columns.items()
        }
        if library == "dict":
            return arrays
        pandas = importlib.import_module("pandas")
        frame = pandas.DataFrame(arrays)
        table = self._recording.table
        if self._recording.from_index:
            frame = frame.set_index("time").rename_axis(table.index.name)
        elif len(frame) == len(table) and isinstance(table.index, pandas.RangeIndex):
            frame.index = table.index  # Another index may name people or hold times.
        return frame
