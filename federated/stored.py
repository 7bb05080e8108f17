"""Clients on disk, of which a round reads those that take part."""

import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxanon.federated.cohort import Population

FILES = "clients.array_record", "clients.json"
FORMAT = 1


class Stored(NamedTuple):
    """A population on disk; ``open_clients`` finds it."""

    folder: pathlib.Path
    num_clients: int
    most_rows: int  # of a client
    arrays: dict[str, tuple[np.dtype, tuple[int, ...]]]  # type and shape of a row
    source: Any  # array_record's

    @property
    def client_bytes(self) -> int:
        """Of a client as it is read: rows padded to ``most_rows``, and their mask."""
        row = sum(
            dtype.itemsize * _size(shape) for dtype, shape in self.arrays.values()
        )
        return self.most_rows * (row + 1)

    def read(self, ids) -> Population:
        """Clients by their numbers, as NumPy's arrays ``[len(ids), most_rows, ...]``.

        Args:
          ids: ``int[m]``, at least one; a number may stand there again.

        Raises:
          IndexError: for a number that no client has.
          ValueError: if the file is damaged.

        Example:
          >>> import tempfile
          >>> folder = tempfile.mkdtemp() + "/two"
          >>> write_clients(folder, [{"x": np.ones(2)}, {"x": np.zeros(1)}])
          >>> open_clients(folder).read([1, 0]).mask.tolist()
          [[True, False], [True, True]]
        """
        ids = np.asarray(ids)
        if ids.min() < 0 or ids.max() >= self.num_clients:
            raise IndexError(
                f"clients have numbers from 0 to {self.num_clients - 1}, got "
                f"{ids.min()} to {ids.max()}."
            )
        unique, where = np.unique(ids, return_inverse=True)
        try:
            rows = {
                name: np.zeros((len(unique), self.most_rows, *shape), dtype)
                for name, (dtype, shape) in self.arrays.items()
            }
            mask = np.zeros((len(unique), self.most_rows), bool)
            records = self.source.__getitems__(unique.tolist())
        except Exception as error:  # array_record raises what its file format raises.
            raise ValueError(_damaged(self.folder, error)) from error
        for place, record in enumerate(records):
            self._put(record, place, rows, mask)
        as_asked = np.array_equal(unique, ids)
        in_order = (lambda a: a) if as_asked else (lambda a: a[where])
        return Population({k: in_order(v) for k, v in rows.items()}, in_order(mask))

    def _put(self, record, place, rows, mask):
        count = int.from_bytes(record[:4], "little")
        at = 4
        for name, (dtype, shape) in self.arrays.items():
            items = count * _size(shape)
            end = at + items * dtype.itemsize
            if count > self.most_rows or end > len(record):
                raise ValueError(
                    _damaged(self.folder, "a client's record is too short")
                )
            values = np.frombuffer(record, dtype, items, at)
            rows[name][place, :count] = values.reshape(count, *shape)
            at = end
        mask[place, :count] = True


def _check_types(arrays, client):
    for name, array in arrays.items():
        if array.ndim < 1 or array.dtype.kind not in "biufc":
            raise ValueError(
                f"the array {name!r} of client {client} must have an axis of rows, and "
                f"numbers of NumPy's own types, got {array.dtype}{[*array.shape]}."
            )


def _whole(value, least=0):
    if type(value) is not int or value < least:
        raise ValueError(f"{value!r} is no number of rows")
    return value


def _size(shape):
    return int(np.prod(shape, dtype=np.int64))


def _damaged(folder, why):
    return f"the clients in {folder} are damaged ({why}); write them anew."


def write_clients(folder, clients: Iterable[Mapping[str, Any]]) -> None:
    """Writes clients to a folder, one after another: they need not fit into memory.

    Args:
      folder: made by this; ``clients.json`` is written last, so that what is there is
        whole.
      clients: of each a dict of arrays ``[n_c, ...]``, of equal names, types and shapes
        of a row; at least one row.

    Raises:
      FileExistsError: if the folder holds clients.
      ValueError: for arrays that are not of NumPy's numbers; for a client without a
        row, one whose arrays disagree about their number, or one unlike the first; if
        there is no client.

    Example:
      >>> import tempfile
      >>> folder = tempfile.mkdtemp() + "/thousand"
      >>> write_clients(folder, ({"x": np.full(2, c)} for c in range(1000)))
      >>> open_clients(folder).num_clients
      1000
    """
    from array_record.python.array_record_module import ArrayRecordWriter

    folder = pathlib.Path(folder)
    records, about = (folder / name for name in FILES)
    if about.exists():
        raise FileExistsError(f"{folder} holds clients already; choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    writer = ArrayRecordWriter(str(records), "group_size:1")
    arrays, most, number = None, 0, 0
    try:
        for number, client in enumerate(clients, 1):
            own = {name: np.asarray(client[name]) for name in sorted(client)}
            _check_types(own, number - 1)
            described = {name: (a.dtype, a.shape[1:]) for name, a in own.items()}
            arrays = described if arrays is None else arrays
            if described != arrays:
                raise ValueError(
                    f"client {number - 1} has arrays {described}, and the first has "
                    f"{arrays}; they must be alike."
                )
            counts = sorted({len(a) for a in own.values()})
            if len(counts) != 1 or not counts[0]:
                raise ValueError(
                    f"the arrays of client {number - 1} must have equally many rows, 1 "
                    f"at least, got {counts}."
                )
            most = max(most, counts[0])
            parts = [np.uint32(counts[0]).astype("<u4"), *own.values()]
            writer.write(b"".join(part.tobytes() for part in parts))
    finally:
        writer.close()
    if arrays is None:
        raise ValueError("clients must hold at least one client.")
    told = {
        "format": FORMAT,
        "num_clients": number,
        "most_rows": most,
        "arrays": {k: [dtype.str, list(shape)] for k, (dtype, shape) in arrays.items()},
    }
    partial = about.with_name(f".{about.name}.partial")
    partial.write_text(json.dumps(told, indent=1) + "\n")
    os.replace(partial, about)


def open_clients(folder) -> Stored:
    """Finds the clients that ``write_clients`` wrote.

    Raises:
      FileNotFoundError: if there are none.
      ValueError: if they are damaged, or of another format.

    Example:
      >>> import tempfile
      >>> folder = tempfile.mkdtemp() + "/one"
      >>> write_clients(folder, [{"x": np.zeros((3, 2), np.float32)}])
      >>> open_clients(folder).most_rows, open_clients(folder).client_bytes
      (3, 27)
    """
    from array_record.python.array_record_data_source import ArrayRecordDataSource

    folder = pathlib.Path(folder)
    records, about = (folder / name for name in FILES)
    if not about.is_file():
        raise FileNotFoundError(
            f"{folder} holds no clients ({about.name} is not there); write some by "
            "federated.write_clients."
        )
    try:
        told = json.loads(about.read_text())
        if told["format"] != FORMAT:
            raise ValueError(
                f"format {told['format']}, and this version reads {FORMAT}"
            )
        count, most = told["num_clients"], _whole(told["most_rows"], least=1)
        arrays = {
            str(name): (np.dtype(dtype), tuple(_whole(size) for size in shape))
            for name, (dtype, shape) in told["arrays"].items()
        }
        _check_types({n: np.empty(1, dtype) for n, (dtype, _) in arrays.items()}, "any")
        source = ArrayRecordDataSource(str(records))
        if len(source) != count:
            raise ValueError(f"{len(source)} of {count} are there")
    except Exception as error:  # array_record raises what its file format raises.
        raise ValueError(_damaged(folder, error)) from error
    return Stored(folder, count, most, arrays, source)
