"""Columns of files and objects before any is selected, whatever their format."""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxanon.datasets.importing import csv_file, files
from jaxanon.recordings import dialect as dialects
from jaxanon.recordings import units


class Frame(NamedTuple):
    """Columns of one file or object.

    Attributes:
      where: name for messages.
      header: names as they are written.
      names: names without units.
      units: one unit per column; empty if unknown.
      fetch: function from the indices of numbers and of texts, and the index of the
        time or None, to ``csv_file.Read``.
      decimal: decimal mark of text; empty if unknown.
      time_format: format of times, if the file states it.
      in_parts: function like ``fetch`` that returns the number of rows and yields them
        in parts, so that only one part is in memory; None if it cannot.
    """

    where: str
    header: tuple[str, ...]
    names: tuple[str, ...]
    units: tuple[str, ...]
    fetch: Callable[[Sequence[int], Sequence[int], int | None], csv_file.Read]
    decimal: str = "."
    time_format: str | None = None
    in_parts: Callable[..., tuple[int, Iterator[csv_file.Read]] | None] | None = None

    def with_fetch(self, fetch, **changes) -> "Frame":
        """Returns the frame with another ``fetch``, which has all rows at once."""
        return self._replace(fetch=fetch, in_parts=None, **changes)

    def parts(self, numbers, texts, time) -> tuple[int, Iterator[csv_file.Read]]:
        """Returns the number of rows, and columns of consecutive rows."""
        if self.in_parts is not None:
            found = self.in_parts(numbers, texts, time)
            if found is not None:
                return found
        whole = self.fetch(numbers, texts, time)
        return len(next(iter(whole.columns.values()), ())), iter([whole])

    def find(self, name: str) -> int | None:
        """Returns the index of the column of this name; None unless there is one."""
        for names in (self.header, self.names):
            if names.count(name) == 1:
                return names.index(name)
            if name in names:
                return None
        return None


def of_columns(where: str, columns: Mapping[str, Any], stated=()) -> Frame:
    """Returns the frame of a mapping from names to functions that return arrays.

    Args:
      where: name for messages.
      columns: function without arguments by column name; it returns a NumPy or Arrow
        array.
      stated: one unit per column, or nothing.
    """
    header = tuple(map(str, columns))
    split = [units.split_name(name) for name in header]
    its_units = stated or [""] * len(header)
    arrays = list(columns.values())

    def fetch(numbers, texts, time):
        indices = (*numbers, *texts, *(() if time is None else (time,)))
        found = {n: arrays[n]() for n in indices}
        counts = {header[n]: len(found[n]) for n in indices}
        if len({*counts.values()}) > 1:
            raise ValueError(
                f"{where}: columns must have one length, got {counts} rows."
            )
        return csv_file.Read(found, 0, None, lambda row: row + 1)

    return Frame(
        where,
        header,
        tuple(name for name, _ in split),
        tuple(b or a for (_, a), b in zip(split, its_units, strict=True)),
        fetch,
        decimal="",
    )


def of_file(
    file: files.File,
    encoding: str | None = None,
    names: tuple[str, ...] | None = None,
    data: bytes | None = None,
) -> Frame:
    """Returns the frame of a file in the format of its suffix; others are CSV.

    Args:
      file: the file.
      encoding: text encoding of CSV.
      names: column names of a CSV file without a header.
      data: content to read in place of the file's.
    """
    if file.suffix in files.ARROW:
        return _parquet(file) if file.suffix in (".parquet", ".pq") else _feather(file)
    if file.suffix in files.HDF5:
        return _hdf5(file)
    data = file.read() if data is None else data
    where = file.where
    dialect = dialects.sniff(
        data[: dialects.HEAD_BYTES], where, encoding=encoding, names=names
    )

    def fetch(numbers, texts, time):
        return csv_file.read(data, dialect, numbers, texts, time, where)

    return Frame(
        where, dialect.header, dialect.names, dialect.units, fetch, dialect.decimal
    )


def columns_of(source, encoding: str | None = None) -> dict[str, str]:
    """Returns the columns in the first file of a path: headers, and names without unit.

    A file that cannot be read has none; the import reports it.

    Args:
      source: path of a file, folder or archive.
      encoding: text encoding of CSV.
    """
    try:
        file, *_ = files.expand(source)
        head = None
        if file.path is not None and file.suffix not in (*files.ARROW, *files.HDF5):
            with file.path.open("rb") as opened:
                head = opened.read(dialects.HEAD_BYTES)
        frame = of_file(file, encoding, data=head)
    except (OSError, ValueError, ImportError):
        return {}
    return dict(zip(frame.header, frame.names, strict=True))


def _damaged(where, kind, error):
    return ValueError(f"{where}: the file is not {kind}, or damaged ({error}).")


def _parquet(file):
    import pyarrow as pa
    import pyarrow.parquet as pq

    def opened(encoded=None):
        mapped = file.path is not None
        return pq.ParquetFile(content, memory_map=mapped, read_dictionary=encoded)

    content = files.buffer(file)
    try:
        source = opened()
        fields = list(source.schema_arrow)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(file.where, "Parquet", error) from None

    def groups(names, encoded):
        """Yields the rows of each row group, with dictionaries as the file has them."""
        groups = opened(encoded)
        for group in range(groups.num_row_groups):
            yield groups.read_row_group(group, columns=names)

    frame = _arrow(file, "Parquet", fields, lambda names: source.read(columns=names))
    types = dict(zip(frame.header, source.schema_arrow.types, strict=False))
    if len(frame.header) < len(fields) or len(types) < len(fields):
        return frame  # Nested columns, or one name twice.
    is_text = lambda n: pa.types.is_string(types[frame.header[n]])

    def in_parts(numbers, texts, time):
        indices = (*numbers, *(() if time is None else (time,)))
        plain = (pa.types.is_floating, pa.types.is_integer, pa.types.is_timestamp)
        if not all(any(f(types[frame.header[n]]) for f in plain) for n in indices):
            return None  # The format of text shows only in all rows.
        every = dict.fromkeys((*indices, *texts))
        encoded = [frame.header[n] for n in texts if is_text(n)]
        return source.metadata.num_rows, _read_parts(
            file, "Parquet", groups([frame.header[n] for n in every], encoded), frame
        )

    return frame._replace(in_parts=in_parts)


def _read_parts(file, kind, found, frame):
    """Yields each part of an Arrow file as columns by index."""
    import pyarrow as pa

    try:
        for table in found:
            table.validate(full=file.path is None or len(table) < 10**6)
            indices = [frame.header.index(name) for name in table.column_names]
            for batch in table.to_batches():  # Without copies.
                columns = dict(zip(indices, batch.columns, strict=True))
                yield csv_file.Read(columns, 0, None, lambda row: row + 1)
    except (pa.ArrowException, OSError, KeyError) as error:
        raise _damaged(file.where, kind, error) from None


def _feather(file):
    import pyarrow as pa
    import pyarrow.feather

    def read(names):
        return pyarrow.feather.read_table(
            files.buffer(file), columns=names, memory_map=file.path is not None
        )

    try:
        source = pa.memory_map(str(file.path)) if file.path else files.buffer(file)
        with pa.ipc.open_file(source) as opened:
            fields = list(opened.schema)
    except (pa.ArrowException, OSError):
        try:  # The older Feather format, and Arrow streams.
            fields = list(_stream(file).schema)
            read = lambda names: _stream(file).select(names)
        except (pa.ArrowException, OSError) as error:
            raise _damaged(file.where, "Feather or Arrow", error) from None
    return _arrow(file, "Feather or Arrow", fields, read)


def _stream(file):
    import pyarrow as pa
    import pyarrow.feather

    try:
        with pa.ipc.open_stream(files.buffer(file)) as opened:
            return opened.read_all()
    except pa.ArrowInvalid:
        return pyarrow.feather.read_table(files.buffer(file))


def _arrow(file, kind, fields, read):
    """Returns the frame of an Arrow reader; nested columns are left out."""
    import pyarrow as pa

    plain = [f for f in fields if not pa.types.is_nested(f.type)]
    names = [f.name for f in plain]
    stated = [
        (f.metadata or {}).get(b"unit", b"").decode(errors="replace") for f in plain
    ]
    frame = of_columns(file.where, dict.fromkeys(names), stated if names else ())

    def fetch(numbers, texts, time):
        indices = (*numbers, *texts, *(() if time is None else (time,)))
        try:
            table = read([names[n] for n in dict.fromkeys(indices)])
            table.validate(full=file.path is None or len(table) < 10**6)
            columns = {n: table[names[n]] for n in indices}
        except (pa.ArrowException, OSError, KeyError) as error:
            raise _damaged(file.where, kind, error) from None
        return csv_file.Read(columns, 0, None, lambda row: row + 1)

    return frame.with_fetch(fetch)


def _hdf5(file):
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            f"{file.where}: HDF5 files need h5py; install it with pip install "
            "'jaxanon[hdf5]'."
        ) from error

    try:
        # h5py reports damage as any of several errors.
        with h5py.File(files.buffer(file), "r") as opened:
            columns = _hdf5_columns(opened, h5py)
    except Exception as error:
        raise _damaged(file.where, "HDF5", error) from None
    frame = of_columns(
        file.where, dict.fromkeys(columns), [u for *_, u in columns.values()]
    )

    def fetch(numbers, texts, time):
        indices = (*numbers, *texts, *(() if time is None else (time,)))
        places = list(columns.values())
        try:
            with h5py.File(files.buffer(file), "r") as opened:
                found = {n: _hdf5_read(opened, *places[n][:2]) for n in indices}
        except Exception as error:
            raise _damaged(file.where, "HDF5", error) from None
        read = of_columns(
            file.where, {name: lambda n=n: found[n] for n, name in enumerate(columns)}
        )
        return read.fetch(numbers, texts, time)

    return frame.with_fetch(fetch)


def _hdf5_columns(opened, h5py):
    """Returns ``{name: (path, field or column, unit)}`` of the arrays in a file."""
    found = {}

    def visit(path, item):
        if not isinstance(item, h5py.Dataset) or item.ndim not in (1, 2):
            return
        unit = item.attrs.get("units", item.attrs.get("unit", ""))
        unit = unit.decode(errors="replace") if isinstance(unit, bytes) else str(unit)
        if item.dtype.names:  # A table of named fields.
            for field in item.dtype.names:
                name = field if field not in found else f"{path}/{field}"
                found[name] = path, field, unit
        elif item.ndim == 1:
            found[path] = path, None, unit
        else:
            titles = item.attrs.get("columns", range(item.shape[1]))
            for n, title in enumerate(titles):
                title = (
                    title.decode(errors="replace")
                    if isinstance(title, bytes)
                    else title
                )
                found[f"{path}.{title}"] = path, n, unit

    opened.visititems(visit)
    return found


def hdf5_arrays(file: files.File) -> dict[str, tuple[np.ndarray, str]]:
    """Returns the columns of an HDF5 file with their units; "" if unknown.

    Raises:
      ImportError: without h5py.
      ValueError: if the file is damaged.
    """
    _hdf5(file)  # Names a missing package and damage.
    h5py: Any = importlib.import_module("h5py")
    try:
        with h5py.File(files.buffer(file), "r") as opened:
            columns = _hdf5_columns(opened, h5py)
            return {
                name: (np.asarray(_hdf5_read(opened, path, part)), unit)
                for name, (path, part, unit) in columns.items()
            }
    except Exception as error:  # h5py reports damage as any of several errors.
        raise _damaged(file.where, "HDF5", error) from None


def _hdf5_read(opened, path, part):
    item = opened[path]
    if part is None:
        array = item[()]
    elif isinstance(part, str):
        array = item.fields(part)[()]
    else:
        array = item[:, part]
    return array


def of_object(value, where: str, names: Sequence[str] = ()) -> Frame:
    """Returns the frame of a table in memory.

    Args:
      value: DataFrame of pandas or polars, Arrow table, Hugging Face data set, mapping
        of names to arrays, structured NumPy array, or ``float[rows, channels]``.
      where: name for messages.
      names: channel names of an array without names.

    Raises:
      TypeError: if the value is none of these.
      ValueError: if an array without names has another number of columns than names.
    """
    if isinstance(value, Mapping):
        return of_columns(where, _mapping(value, where))
    if isinstance(value, np.ndarray):
        return of_columns(where, _array(value, where, names))
    if hasattr(value, "features") and hasattr(value, "with_format"):  # Hugging Face.
        value = value.with_format("arrow")[:]
    elif hasattr(value, "to_arrow"):  # polars
        value = value.to_arrow()
    elif hasattr(value, "iloc") and hasattr(value, "columns"):  # pandas
        return of_columns(where, _pandas(value))
    if hasattr(value, "schema") and hasattr(value, "column_names"):  # Arrow
        columns = {name: lambda name=name: value[name] for name in value.column_names}
        return of_columns(where, columns)
    raise TypeError(
        f"{where} must be a DataFrame, an Arrow table, a Hugging Face data set, a dict "
        f"of arrays or an array, got {type(value).__name__}."
    )


def _mapping(value, where):
    columns: dict[str, Callable[[], Any]] = {}
    for name, column in value.items():
        array = column if hasattr(column, "type") else np.asarray(column)
        if getattr(array, "ndim", 1) == 2:
            for n in range(array.shape[1]):
                columns[f"{name}.{n}"] = lambda array=array, n=n: array[:, n]
        elif getattr(array, "ndim", 1) == 1:
            columns[name] = lambda array=array: array
        else:
            raise ValueError(
                f"{where}: column {name!r} must be [rows] or [rows, channels], got "
                f"shape {array.shape}."
            )
    return columns


def _array(value, where, names):
    if value.dtype.names:
        return {name: lambda name=name: value[name] for name in value.dtype.names}
    if value.ndim == 1:
        value = value[:, None]
    if value.ndim != 2 or value.shape[1] != len(names):
        raise ValueError(
            f"{where} must be [rows, channels] with one name in channels for each of "
            f"its columns, got shape {value.shape} for {list(names)}."
        )
    return {name: lambda n=n: value[:, n] for n, name in enumerate(names)}


def _pandas(frame):
    columns: dict[str, Callable[[], Any]] = {}
    for n, name in enumerate(frame.columns):
        title = ".".join(map(str, name)) if isinstance(name, tuple) else str(name)
        columns[title] = lambda n=n: _series(frame.iloc[:, n])
    index = frame.index
    if index.name is not None or index.dtype.kind == "M":
        columns.setdefault(str(index.name or "index"), lambda: _series(index))
    return columns


def _series(series):
    """Returns a column of pandas as an array; times with a zone are in UTC."""
    if getattr(series.dtype, "tz", None) is not None:
        series = getattr(series, "dt", series).tz_convert(None)
    if str(series.dtype) == "category":
        series = series.astype(object)
    return series.to_numpy()
