"""Rounds over clients on disk: a cohort is read while the device trains."""

import collections
import contextlib
import functools
from collections.abc import Callable, Generator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated import memory
from jaxanon.federated.cohort import Population
from jaxanon.federated.layout import num_bytes
from jaxanon.federated.stored import Stored

AHEAD = 2  # Chunks that are read and wait, beside the one that the device works on.
THREADS = AHEAD  # That read, each a chunk.
SHARE = 0.5  # Of the free memory, for a chunk that is worked on.
_PROBE = 32  # Clients of the program whose memory says how many will fit.


class Part(NamedTuple):
    """A part of a cohort that is worked on at once."""

    ids: np.ndarray  # int32[chunk]
    counted: np.ndarray  # bool[chunk]; False where it is filled up


def stream(
    algorithm,
    key,
    state,
    clients: Stored,
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
      algorithm: a ``FederatedAlgorithm`` with ``acts``, or a method or learner.
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
      ValueError: if the algorithm has no ``acts``; for a number below 1.

    Example:
      >>> import tempfile
      >>> import jaxanon.federated as fed
      >>> square = lambda w, row, key: 0.5 * (w - row["x"]) ** 2
      >>> algorithm = fed.fed_avg(lambda key: jnp.zeros(()), square, num_steps=1)
      >>> folder = tempfile.mkdtemp() + "/clients"
      >>> fed.write_clients(folder, [{"x": np.float32([x])} for x in (4, 0, 2)])
      >>> clients = fed.open_clients(folder)
      >>> state = algorithm.init(jax.random.key(0), step_size=0.5)
      >>> state, info = fed.stream(algorithm, jax.random.key(1), state, clients, 2)
      >>> state.params, info["loss"].round(3)
      (Array(1.5, dtype=float32), array([3.333, 1.833], dtype=float32))
    """
    acts = algorithm.acts
    if acts is None:
        raise ValueError(
            "algorithm must have acts to be streamed; dp_fed_avg and clustered have "
            "none: run it by simulate, with all clients in memory."
        )
    if num_rounds < 1:
        raise ValueError(f"num_rounds must be >= 1, got {num_rounds!r}.")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk must be >= 1, or None, got {chunk!r}.")
    grain = _grain()
    programs = _programs(acts, prepare_fn)
    cohorts = programs.cohorts(key, state, clients.num_clients, num_rounds)
    size = chunk or fitting(programs, key, state, clients, cohorts.shape[1])
    stages = 1 + acts.more_stages
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
def _programs(acts, prepare_fn):
    @functools.partial(jax.jit, static_argnames=("num_clients", "num_rounds"))
    def cohorts(key, state, num_clients, num_rounds):
        rounds = state.round + jnp.arange(num_rounds)
        of = lambda round_: acts.cohort(key, state._replace(round=round_), num_clients)
        return jax.lax.map(of, rounds)

    @jax.jit
    def add(key, state, total, population, ids, counted, *stage):
        data = population if prepare_fn is None else prepare_fn(population)
        if getattr(state, "own", None) is not None:
            own = jax.tree.map(lambda leaf: leaf[ids], state.own)
            state = state._replace(own=own)
        at = jnp.arange(len(ids))
        stage = stage[0] if stage else 0
        sums, kept = acts.work(key, state, data, ids, counted, at, stage)
        if total is not None:
            sums = jax.tree.map(jnp.add, total, sums)
        return sums, kept

    as_host = lambda *args: np.asarray(cohorts(*args))
    return _Programs(as_host, add, jax.jit(acts.merge), jax.jit(acts.finish))


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
    grain, clients: Stored, parts
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


def fitting(programs, key, state, clients: Stored, cohort_size: int) -> int:
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
