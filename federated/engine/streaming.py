"""Rounds over clients on disk, read ahead while the device trains."""

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

AHEAD = 2  # Chunks read ahead of the one being processed.

THREADS = AHEAD  # Reader threads, one per chunk.

MEMORY_FRACTION = 0.5  # Fraction of the free memory for one chunk.

_PROBE = 32  # Clients in the program compiled to estimate memory.


class Part(NamedTuple):
    """A part of a cohort that is processed at once."""

    ids: np.ndarray  # int32[chunk]
    counted: np.ndarray  # bool[chunk]; False for padding


class StoredClients(NamedTuple):
    """A population on disk, opened by ``open_clients``."""

    folder: pathlib.Path
    num_clients: int
    most_rows: int  # maximum number of rows per client
    arrays: dict[str, tuple[np.dtype, tuple[int, ...]]]  # dtype and shape of a row
    source: Any  # array_record data source

    @property
    def client_bytes(self) -> int:
        """Bytes of a client in memory: rows padded to ``most_rows``, and their mask."""
        row = sum(
            dtype.itemsize * _size(shape) for dtype, shape in self.arrays.values()
        )
        return self.most_rows * (row + 1)

    def read(self, ids) -> Population:
        """Reads clients by index as NumPy arrays ``[len(ids), most_rows, ...]``.

        Args:
          ids: ``int[m]`` with m >= 1; indices may repeat.

        Raises:
          IndexError: for an index out of range.
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
                f"ids must be in [0, {self.num_clients - 1}], got {ids.min()} to "
                f"{ids.max()}."
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
    """Simulates rounds over clients on disk, loading chunks of a cohort.

    The cohorts of all rounds are sampled first; then threads read clients ahead with
    Grain. Results equal those of ``simulate`` with all clients in memory, up to the
    rounding of sums.

    Args:
      algorithm: ``FederatedAlgorithm``, method or learner with ``stages``.
      key: typed PRNG key of the run.
      state: state from ``algorithm.init`` or an earlier call. It includes the personal
        state of all clients, which must fit into memory.
      clients: result of ``open_clients``.
      num_rounds: number of rounds >= 1.
      chunk: clients processed at once. None fills half of the free memory, estimated
        from a compiled program.
      prepare_fn: ``Population -> clients`` with arrays ``[chunk, ...]`` for
        ``algorithm.update``. It is compiled, once per function. None uses the
        population, whose rows are dicts.

    Returns:
      The new state, and ``info`` with a leading axis of rounds, as NumPy arrays.

    Raises:
      ImportError: without Grain.
      ValueError: if the algorithm has no ``stages``; for a number below 1.

    Example:
      >>> import tempfile
      >>> import jaxanon.federated as fed
      >>> square = lambda w, row, key: 0.5 * (w - row["x"]) ** 2
      >>> algorithm = fed.fedavg(
      ...     lambda key: jnp.zeros(()), square, steps=fed.Steps(num_steps=1))
      >>> folder = tempfile.mkdtemp() + "/clients"
      >>> fed.write_clients(folder, [{"x": np.float32([x])} for x in (4, 0, 2)])
      >>> clients = fed.open_clients(folder)
      >>> state = algorithm.init(jax.random.key(0), learning_rate=0.5)
      >>> state, info = fed.stream(algorithm, jax.random.key(1), state, clients, 2)
      >>> state.params, info["loss"].round(3)
      (Array(1.5, dtype=float32), array([3.333, 1.833], dtype=float32))
    """
    stages = algorithm.stages
    if stages is None:
        raise ValueError(
            "algorithm must have stages to be streamed, got None (as for dp_fedavg and "
            "centralized_clustering); use simulate with all clients in memory."
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
        if state.own is not None:
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
    """Processes a cohort of ``num`` clients in a stage, part by part.

    ``working`` holds sums that the device may still compute, including those of earlier
    stages. The host stays at most one part ahead, so that clients do not accumulate.
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
    """Yields parts with their clients, read ahead by threads."""
    options = grain.ReadOptions(num_threads=THREADS, prefetch_buffer_size=AHEAD)
    read = lambda part: (part, clients.read(part.ids))
    source = grain.MapDataset.source(parts).map(read)
    yield from source.to_iter_dataset(options)


def _grain():
    try:
        import grain
    except ImportError as error:
        raise ImportError(
            "stream needs Grain; run pip install 'jaxanon[stream]'."
        ) from error
    return grain


class _Parts:
    """Sequence of the parts of all cohorts, for Grain."""

    def __init__(self, cohorts, size):
        self._cohorts, self._size = cohorts, size
        self._each = -(-cohorts.shape[1] // size)  # parts per cohort

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
    """Returns the number of clients per chunk that fits into memory.

    A program for a few clients is compiled to estimate the memory per client. This is
    an upper bound, because a part of the memory does not depend on the number.
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
    stats = lowered.compile().memory_analysis()
    used = 0 if stats is None else stats.temp_size_in_bytes + stats.output_size_in_bytes
    each = used / few + (2 + 2 * AHEAD) * clients.client_bytes
    room = MEMORY_FRACTION * (free - num_bytes(state))
    return memory.even(cohort_size, int(max(1, room / each)))


FILES = "clients.array_record", "clients.json"

FORMAT = 1


def _check_types(arrays, client):
    for name, array in arrays.items():
        if array.ndim < 1 or array.dtype.kind not in "biufc":
            raise ValueError(
                f"array {name!r} of client {client} must have a rows axis and a "
                f"numeric NumPy dtype, got {array.dtype}{[*array.shape]}."
            )


def _whole(value, least=0):
    if type(value) is not int or value < least:
        raise ValueError(f"the number of rows must be >= {least}, got {value!r}")
    return value


def _size(shape):
    return int(np.prod(shape, dtype=np.int64))


def _damaged(folder, why):
    return f"the clients in {folder} are damaged ({why}); write them again."


def write_clients(folder, clients: Iterable[Mapping[str, Any]]) -> None:
    """Writes clients to a folder one by one; they need not fit into memory.

    Args:
      folder: folder to create. ``clients.json`` is written last, so an interrupted
        write is never opened.
      clients: iterable of dicts of arrays ``[n_c, ...]`` with n_c >= 1 and the same
        names, dtypes and row shapes.

    Raises:
      FileExistsError: if the folder already holds clients.
      ValueError: for arrays without a numeric NumPy dtype; for a client without rows,
        with arrays of different length, or unlike the first client; for an empty
        iterable.

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
        raise FileExistsError(f"{folder} already holds clients; use another folder.")
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
                    f"client {number - 1} must have arrays like the first client, "
                    f"{arrays}, got {described}."
                )
            counts = sorted({len(a) for a in own.values()})
            if len(counts) != 1 or not counts[0]:
                raise ValueError(
                    f"arrays of client {number - 1} must have the same number of rows "
                    f">= 1, got {counts}."
                )
            most = max(most, counts[0])
            parts = [np.uint32(counts[0]).astype("<u4"), *own.values()]
            writer.write(b"".join(part.tobytes() for part in parts))
    finally:
        writer.close()
    if arrays is None:
        raise ValueError("clients must hold at least one client, got none.")
    description = {
        "format": FORMAT,
        "num_clients": number,
        "most_rows": most,
        "arrays": {k: [dtype.str, list(shape)] for k, (dtype, shape) in arrays.items()},
    }
    partial = about.with_name(f".{about.name}.partial")
    partial.write_text(json.dumps(description, indent=1) + "\n")
    os.replace(partial, about)


def open_clients(folder) -> StoredClients:
    """Opens clients written by ``write_clients``.

    Raises:
      FileNotFoundError: if the folder holds no clients.
      ValueError: if the files are damaged or have another format.

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
            f"{folder} must hold clients, got no {about.name}; use "
            "federated.write_clients."
        )
    try:
        description = json.loads(about.read_text())
        if description["format"] != FORMAT:
            raise ValueError(
                f"the format must be {FORMAT}, got {description['format']}"
            )
        count = description["num_clients"]
        most = _whole(description["most_rows"], least=1)
        arrays = {
            str(name): (np.dtype(dtype), tuple(_whole(size) for size in shape))
            for name, (dtype, shape) in description["arrays"].items()
        }
        _check_types({n: np.empty(1, dtype) for n, (dtype, _) in arrays.items()}, "any")
        source = ArrayRecordDataSource(str(records))
        if len(source) != count:
            raise ValueError(f"the file must hold {count} clients, got {len(source)}")
    except Exception as error:  # array_record raises what its file format raises.
        raise ValueError(_damaged(folder, error)) from error
    return StoredClients(folder, count, most, arrays, source)
