"""One program for many members of a sweep, with a chunk size that fits memory."""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.engine import memory
from jaxanon.federated.engine.layout import num_bytes
from jaxanon.federated.engine.memory import even
from jaxanon.training import loop, progress

MEMORY_FRACTION = 0.8  # Fraction of free memory to use; the rest is for other arrays.


def memory_needed(compiled, resident) -> int:
    """Returns the bytes of a compiled program without arguments already in memory.

    Args:
      compiled: result of ``jax.jit(...).lower(...).compile()``.
      resident: tree of arguments already in memory; arrays or their shapes.

    Returns:
      Number of bytes; 0 if the backend does not report it.
    """
    usage = compiled.memory_analysis()
    if usage is None:
        return 0
    total = usage.argument_size_in_bytes + usage.temp_size_in_bytes
    total += usage.output_size_in_bytes - usage.alias_size_in_bytes
    return max(0, total - num_bytes(resident))


def fit_chunk(need: Callable[[int], int], count: int, budget: int | None) -> int:
    """Returns the number of members to train at once.

    Args:
      need: function from a number of members to the bytes of their program, which it
        compiles.
      count: number of members, at least 1.
      budget: available bytes; None is unlimited.

    Returns:
      ``count`` if all members fit, else a smaller even chunk that fits, at least 1.

    Example:
      >>> fit_chunk(lambda size: 10 * size, 120, 505)
      40
    """
    size = count
    while size > 1 and budget is not None:
        bytes_ = need(size)
        if bytes_ <= budget:
            break
        size = even(count, min(size - 1, int(size * max(budget, 0) / bytes_)))
    return size


LAYOUTS = ("vmap", "scan")

# Chunk size of members trained one after another; larger chunks are not faster.
SAVE_EVERY = 8


class Program(NamedTuple):
    """State shared by all members of a program."""

    method: Any  # ``Method``
    data: Any  # result of ``method.prepare``
    layout: str  # one of ``LAYOUTS``
    per_epoch: int  # rounds per epoch
    work: int  # work per round
    splits: int = 1  # if > 1, the leading axis of ``data``


def program(method, prepared, layout: str) -> Program:
    """Returns the program of a method on prepared data."""
    per_epoch = method.schedule.rounds_per_epoch(prepared)
    work = method.schedule.work_per_round(prepared)
    data = jax.tree.map(jnp.asarray, prepared)
    return Program(method, data, layout, per_epoch, work)


def choose_layout(layout: str | None) -> str:
    """Returns ``layout``; for None, the faster layout on this backend.

    On a CPU, members run one after another, because its caches hold the weights of one.

    Raises:
      ValueError: if the layout is unknown.
    """
    if layout is None:
        return LAYOUTS[jax.default_backend() == "cpu"]
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be None or one of {LAYOUTS}, got {layout!r}.")
    return layout


def start(method, seeds, hyper):
    """Returns the initial states of members, with a leading axis.

    Args:
      method: a ``Method``.
      seeds: Python ints, one per member.
      hyper: one dict of floats per member, with equal keys.
    """
    arrays = {
        name: jnp.asarray([each[name] for each in hyper], jnp.result_type(float))
        for name in hyper[0]
    }
    return _init(method.init, jnp.asarray(seeds, jnp.int32), arrays)


def stack(states):
    """Stacks members' states along a new leading axis."""
    join = lambda *leaves: jnp.stack([np.asarray(leaf) for leaf in leaves])
    return jax.tree.map(join, *states)


def chunk_size(shared: Program, count: int, like) -> int:
    """Returns the number of members of each split to train at once.

    Side by side, it is the largest number that fits in memory. One after another, more
    members are not faster, so it is at most ``SAVE_EVERY``; a killed sweep loses only
    the members of one chunk.

    Args:
      shared: program of the members.
      count: number of members of each split, at least 1.
      like: state of one member; arrays or their shapes.
    """
    free = memory.free()
    budget = None if free is None else int(MEMORY_FRACTION * free)
    if shared.layout == LAYOUTS[1]:
        largest = count if budget is None else budget // (2 * num_bytes(like))
        return memory.even(count, min(SAVE_EVERY, largest))

    def need(size):
        many = size * shared.splits
        seeds = jax.ShapeDtypeStruct((many,), jnp.int32)
        wide = lambda leaf: jax.ShapeDtypeStruct((many, *leaf.shape), leaf.dtype)
        return compiled_memory(shared, seeds, jax.tree.map(wide, like))

    return fit_chunk(need, count, budget)


def compiled_memory(shared: Program, seeds, states) -> int:
    """Compiles a program and returns its bytes without the data.

    Args:
      shared: program of the members.
      seeds, states: arrays of ``run_members``, or their shapes.
    """
    return memory_needed(_compiled(shared, seeds, states), shared.data)


def run_members(shared: Program, seeds, states, *, first: int, last: int, show_row):
    """Trains members at once.

    Args:
      shared: program of the members.
      seeds: Python ints, one per member; members of several splits are ordered by
        split, with equal numbers of each.
      states: states from ``start`` or ``stack``; the arrays are donated.
      first: number of rounds done before.
      last: number of rounds done afterwards.
      show_row: function called with a summary row after every call of the program.

    Returns:
      A list of ``(state, history)`` as in ``train``, with arrays on the host.
    """
    method, done = shared.method, first
    seeds = jnp.asarray(seeds, jnp.int32)
    call = _compiled(shared, seeds, states)
    histories: list[list[dict]] = [[] for _ in seeds]
    while done < last:
        start_time = time.monotonic()
        num = loop.rounds_of_call(done, shared.per_epoch)
        states, infos = call(seeds, states, shared.data, np.int32(num))
        infos = {name: np.asarray(value) for name, value in infos.items()}
        duration_s = time.monotonic() - start_time
        done += num
        work = num * shared.work
        losses = [
            {name: float(each[i]) for name, each in infos.items()}
            for i in range(len(seeds))
        ]
        rows = [
            progress.row(method, done, shared.per_epoch, each, duration_s, work)
            for each in losses
        ]
        for history, row in zip(histories, rows, strict=True):
            history.append(row)
        show_row(_summary_row(rows))
    host = jax.tree.map(np.asarray, states)
    pick = lambda index: jax.tree.map(lambda leaf: leaf[index], host)
    return [(pick(index), history) for index, history in enumerate(histories)]


def _summary_row(rows):
    """Row with the mean losses and the total rate of all members."""
    mean = {
        name: float(np.mean([row["losses"][name] for row in rows]))
        for name in rows[0]["losses"]
    }
    name = next(name for name in rows[0] if name.endswith(progress.RATE))
    rate = sum(row[name] for row in rows)
    return rows[0] | {"losses": mean, name: rate}


@functools.partial(jax.jit, static_argnames="init")
def _init(init, seeds, hyper):
    def init_member(seed, values):
        init_key, _ = jax.random.split(jax.random.key(seed))  # Same as in ``train``.
        return init(init_key, **values)

    return jax.vmap(init_member)(seeds, hyper)


def _compiled(shared, seeds, states):
    """Returns the cached compiled program for arrays of these shapes."""
    shape = lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    shapes = jax.tree.map(shape, (seeds, states, shared.data))
    leaves, tree = jax.tree.flatten(shapes)
    fixed = (shared.method.update, shared.layout, shared.splits)
    return _compile(*fixed, tree, tuple(leaves))


def num_compiled() -> int:
    """Returns the number of round programs that this process has compiled."""
    return _compile.cache_info().misses


@functools.lru_cache(maxsize=8)
def _compile(update, layout, splits, tree, leaves):
    seeds, states, data = jax.tree.unflatten(tree, leaves)
    num = jax.ShapeDtypeStruct((), jnp.int32)
    return _rounds.lower(update, layout, splits, seeds, states, data, num).compile()


@functools.partial(
    jax.jit,
    static_argnames=("update", "layout", "splits"),
    donate_argnames="states",
)
def _rounds(update, layout, splits, seeds, states, data, num):
    """Runs ``num`` rounds of every member; returns states and mean info."""

    step = jax.jit(update, inline=True)  # Traced once for eval_shape and the loop.

    def run_member(seed, state, data):
        _, key = jax.random.split(jax.random.key(seed))
        _, like = jax.eval_shape(step, key, state, data)
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)

        def body(_, carry):
            state, total = carry
            state, info = step(key, state, data)
            return state, jax.tree.map(jnp.add, total, info)

        state, total = jax.lax.fori_loop(0, num, body, (state, zeros))
        return state, jax.tree.map(lambda leaf: leaf / num, total)

    if layout == LAYOUTS[1]:
        return jax.lax.map(lambda x: run_member(x[0], x[1], data), (seeds, states))
    run_split = jax.vmap(run_member, in_axes=(0, 0, None))
    if splits == 1:
        return run_split(seeds, states, data)
    fold = lambda leaf: leaf.reshape(splits, -1, *leaf.shape[1:])
    seeds, states = jax.tree.map(fold, (seeds, states))
    results = jax.vmap(run_split)(seeds, states, data)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), results)
