"""Rounds over clients on disk: a cohort is read while the device trains."""

import collections
import contextlib
import functools
import json
import os
import pathlib
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine import memory
from jaxanon.federated.engine.cohort import Population
from jaxanon.federated.engine.layout import num_bytes

AHEAD = 2  # Chunks that are read and wait, beside the one that the device works on.

THREADS = AHEAD  # That read, each a chunk.

SHARE = 0.5  # Of the free memory, for a chunk that is worked on.

_PROBE = 32  # Clients of the program whose memory says how many will fit.


class Part(NamedTuple):
    """A part of a cohort that is worked on at once."""

    ids: np.ndarray  # int32[chunk]
    counted: np.ndarray  # bool[chunk]; False where it is filled up


class StoredClients(NamedTuple):
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


def stream(
    algorithm,
    key,
    state,
    clients: StoredClients,
    num_rounds: int,
    *,
    chunk: int | None = None,
    prepare_fn: Callable | None = None,
):
    """``simulate`` over clients on disk, of which chunks of a cohort are in memory.

    The cohorts of all rounds are drawn first; then threads read ahead (Grain) what the
    device will want next. Results are those of ``simulate`` with all clients in memory,
    up to the rounding of sums.

    Args:
      algorithm: a ``FederatedAlgorithm`` with ``stages``, or a method or learner.
      key: the run's key.
      state: from ``algorithm.init`` or an earlier call. What clients keep of their own
        is a part of it, and must fit into memory.
      clients: of ``open_clients``.
      num_rounds: at least 1.
      chunk: clients worked on at once; None is as many as half of the free memory
        holds, by what the compiled program takes for a few.
      prepare_fn: ``Population -> clients`` as ``algorithm.update`` reads them, arrays
        ``[chunk, ...]``; compiled, and anew for another function. None is the
        population itself, whose rows are dicts.

    Returns:
      The new state, and ``info`` with a leading axis of rounds, as NumPy's arrays.

    Raises:
      ImportError: without Grain.
      ValueError: if the algorithm has no ``stages``; for a number below 1.

    Example:
      >>> import tempfile
      >>> import jaxanon.federated as fed
      >>> square = lambda w, row, key: 0.5 * (w - row["x"]) ** 2
      >>> algorithm = fed.fedavg(lambda key: jnp.zeros(()), square, num_steps=1)
      >>> folder = tempfile.mkdtemp() + "/clients"
      >>> fed.write_clients(folder, [{"x": np.float32([x])} for x in (4, 0, 2)])
      >>> clients = fed.open_clients(folder)
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
      >>> state, info = fed.stream(algorithm, jax.random.key(1), state, clients, 2)
      >>> state.params, info["loss"].round(3)
      (Array(1.5, dtype=float32), array([3.333, 1.833], dtype=float32))
    """
    stages = algorithm.stages
    if stages is None:
        raise ValueError(
            "algorithm must have stages to be streamed; dp_fedavg and clustered have "
            "none: run it by simulate, with all clients in memory."
        )
    if num_rounds < 1:
        raise ValueError(f"num_rounds must be >= 1, got {num_rounds!r}.")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be >= 1, or None, got {chunk!r}.")
    grain = _grain()
    programs = _programs(stages, prepare_fn)
    cohorts = programs.cohorts(key, state, clients.num_clients, num_rounds)
    size = chunk or choose_chunk_size(programs, key, state, clients, cohorts.shape[1])
    stages = 1 + stages.more_stages
    parts = _Parts(np.repeat(cohorts, stages, axis=0), min(size, cohorts.shape[1]))
    infos, working = [], collections.deque()
    with contextlib.closing(_read_ahead(grain, clients, parts)) as read:
        for ids in cohorts:
            for stage in range(stages):
                given = () if stage == 0 else (np.int32(stage),)
                sums, kept = _worked(
                    programs, key, state, read, given, len(ids), working
                )
                state, info = programs.merge(state, ids, sums, kept, *given)
                if stage == 0:
                    infos.append(info)
            state = programs.finish(state)
    host = [jax.tree.map(np.asarray, info) for info in infos]
    return state, jax.tree.map(lambda *leaves: np.stack(leaves), *host)


class _Programs(NamedTuple):
    cohorts: Callable
    add: Callable
    merge: Callable
    finish: Callable


@functools.lru_cache(maxsize=8)
def _programs(stages, prepare_fn):
    @functools.partial(jax.jit, static_argnames=("num_clients", "num_rounds"))
    def cohorts(key, state, num_clients, num_rounds):
        rounds = state.round + jnp.arange(num_rounds)
        of = lambda round_: stages.cohort(
            key, state._replace(round=round_), num_clients
        )
        return jax.lax.map(of, rounds)

    @jax.jit
    def add(key, state, total, population, ids, counted, *stage):
        data = population if prepare_fn is None else prepare_fn(population)
        if getattr(state, "own", None) is not None:
            own = jax.tree.map(lambda leaf: leaf[ids], state.own)
            state = state._replace(own=own)
        at = jnp.arange(len(ids))
        stage = stage[0] if stage else 0
        sums, kept = stages.work(key, state, data, ids, counted, at, stage)
        if total is not None:
            sums = jax.tree.map(jnp.add, total, sums)
        return sums, kept

    as_host = lambda *args: np.asarray(cohorts(*args))
    return _Programs(as_host, add, jax.jit(stages.merge), jax.jit(stages.finish))


def _worked(programs, key, state, read, stage, num, working):
    """What a cohort of ``num`` comes to in a stage, its parts worked on as they come.

    ``working`` are sums that the device may still be at, those of earlier stages too:
    the host is one part ahead of it, and no more, or clients would pile up there.
    """
    total, kept, done = None, [], 0
    while done < num:
        part, population = next(read)
        done += len(part.ids)
        sums, own = programs.add(
            key, state, total, population, part.ids, part.counted, *stage
        )
        working.append(sums)
        if len(working) > 1:
            jax.block_until_ready(working.popleft())
        total = sums
        kept.append(own)
    joined = jax.tree.map(lambda *a: jnp.concatenate(a)[:num], *kept)
    return total, joined


def _read_ahead(
    grain, clients: StoredClients, parts
) -> Generator[tuple[Part, Population], None, None]:
    """Parts with their clients, which threads read before they are asked for."""
    options = grain.ReadOptions(num_threads=THREADS, prefetch_buffer_size=AHEAD)
    read = lambda part: (part, clients.read(part.ids))
    source = grain.MapDataset.source(parts).map(read)
    yield from source.to_iter_dataset(options)


def _grain():
    try:
        import grain
    except ImportError as error:
        raise ImportError(
            "clients on disk are read by Grain; pip install 'jaxanon[stream]'."
        ) from error
    return grain


class _Parts:
    """Parts of cohorts, one after the other: a sequence, as Grain wants one."""

    def __init__(self, cohorts, size):
        self._cohorts, self._size = cohorts, size
        self._each = -(-cohorts.shape[1] // size)  # parts of a cohort

    def __len__(self):
        return len(self._cohorts) * self._each

    def __getitem__(self, index):
        number, part = divmod(int(index), self._each)
        ids = self._cohorts[number]
        place = part * self._size + np.arange(self._size)
        return Part(ids[np.minimum(place, len(ids) - 1)], place < len(ids))


def choose_chunk_size(
    programs, key, state, clients: StoredClients, cohort_size: int
) -> int:
    """Clients of a chunk: as many as fit, in chunks as even as can be.

    One program of a few is compiled to see what it takes; what it takes for each
    client is an upper bound, for some of it is there once.
    """
    free = memory.free()
    if free is None:
        return cohort_size
    few = min(_PROBE, cohort_size)
    rows = {
        name: jax.ShapeDtypeStruct((few, clients.most_rows, *shape), dtype)
        for name, (dtype, shape) in clients.arrays.items()
    }
    mask = jax.ShapeDtypeStruct((few, clients.most_rows), bool)
    ids = jax.ShapeDtypeStruct((few,), np.int32)
    counted = jax.ShapeDtypeStruct((few,), bool)
    lowered = programs.add.lower(key, state, None, Population(rows, mask), ids, counted)
    told = lowered.compile().memory_analysis()
    taken = 0 if told is None else told.temp_size_in_bytes + told.output_size_in_bytes
    each = taken / few + (2 + 2 * AHEAD) * clients.client_bytes
    room = SHARE * (free - num_bytes(state))
    return memory.even(cohort_size, int(max(1, room / each)))


FILES = "clients.array_record", "clients.json"

FORMAT = 1


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


def open_clients(folder) -> StoredClients:
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
    return StoredClients(folder, count, most, arrays, source)
