"""One program for many members of a sweep, and how many fit into memory."""

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

SHARE = 0.8  # Of the free memory; the rest is for what comes and goes beside.


def needed(compiled, there) -> int:
    """Bytes that a compiled program takes, beside arguments that lie there anyway.

    Args:
      compiled: of ``jax.jit(...).lower(...).compile()``.
      there: tree of those arguments; arrays, or their shapes.

    Returns:
      0 where the backend does not say.
    """
    told = compiled.memory_analysis()
    if told is None:
        return 0
    whole = told.argument_size_in_bytes + told.temp_size_in_bytes
    whole += told.output_size_in_bytes - told.alias_size_in_bytes
    return max(0, whole - num_bytes(there))


def fitting(need: Callable[[int], int], count: int, budget: int | None) -> int:
    """How many of ``count`` members to take at once.

    Args:
      need: bytes of a program of so many members, which it compiles to find out.
      count: how many there are, at least 1.
      budget: bytes; None is no bound.

    Returns:
      All of them if they fit, else the largest even chunk found that does; 1 where
      not even that fits, for there is no smaller one to try.

    Example:
      >>> fitting(lambda size: 10 * size, 120, 505)
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

# Where nothing is gained by more of them, members are saved after so many.
SAVED = 8


class Program(NamedTuple):
    """What all members of a program share."""

    method: Any  # ``Method``
    data: Any  # of ``method.prepare``; all members read the same
    layout: str  # one of ``LAYOUTS``
    per_epoch: int  # rounds
    work: int  # of a round
    splits: int = 1  # where there are several, a leading axis of ``data``


def program(method, prepared, layout: str) -> Program:
    """The program of a method on prepared data."""
    per_epoch = method.schedule.rounds_per_epoch(prepared)
    work = method.schedule.work_per_round(prepared)
    data = jax.tree.map(jnp.asarray, prepared)
    return Program(method, data, layout, per_epoch, work)


def choose_layout(layout: str | None) -> str:
    """``layout``, or what is fast here: a CPU's caches hold one member's weights.

    Raises:
      ValueError: for a layout that there is not.
    """
    if layout is None:
        return LAYOUTS[jax.default_backend() == "cpu"]
    if layout not in LAYOUTS:
        raise ValueError(f"layout must be None or one of {LAYOUTS}, got {layout!r}.")
    return layout


def start(method, seeds, hyper):
    """New members' states, with a leading axis.

    Args:
      method: ``Method``.
      seeds: Python ints, one per member.
      hyper: one dict of floats per member, of the same names.
    """
    arrays = {
        name: jnp.asarray([each[name] for each in hyper], jnp.result_type(float))
        for name in hyper[0]
    }
    return _init(method.init, jnp.asarray(seeds, jnp.int32), arrays)


def stack(states):
    """Members' states, each a tree of arrays, as one with a leading axis."""
    join = lambda *leaves: jnp.stack([np.asarray(leaf) for leaf in leaves])
    return jax.tree.map(join, *states)


def chunk_size(shared: Program, count: int, like) -> int:
    """How many of ``count`` members to train at once.

    Side by side, as many as fit the memory. One after another their memory does not
    add up, nor is anything gained by more of them, and a killed sweep loses only
    members that are under way: at most ``SAVED``.

    Args:
      shared: their program.
      count: of each split, at least 1.
      like: a member's state, arrays or their shapes.

    Returns:
      As many of each split.
    """
    free = memory.free()
    budget = None if free is None else int(SHARE * free)
    if shared.layout == LAYOUTS[1]:
        most = count if budget is None else budget // (2 * num_bytes(like))
        return memory.even(count, min(SAVED, most))

    def need(size):
        many = size * shared.splits
        seeds = jax.ShapeDtypeStruct((many,), jnp.int32)
        wide = lambda leaf: jax.ShapeDtypeStruct((many, *leaf.shape), leaf.dtype)
        compiled = _compiled(shared, seeds, jax.tree.map(wide, like))
        return needed(compiled, shared.data)

    return fitting(need, count, budget)


def run_members(shared: Program, seeds, states, *, first: int, last: int, tell):
    """Trains members at once.

    Args:
      shared: their program.
      seeds: Python ints, one per member; of several splits, as many of each in turn.
      states: of ``start`` or ``stack``; given away.
      first: rounds that they have done.
      last: rounds that they are to have done.
      tell: called with a row that is of all of them, after every call.

    Returns:
      A list of ``(state, history)`` as ``train`` makes them; arrays are on the host.
    """
    method, done = shared.method, first
    seeds = jnp.asarray(seeds, jnp.int32)
    call = _compiled(shared, seeds, states)
    histories: list[list[dict]] = [[] for _ in seeds]
    while done < last:
        begun = time.monotonic()
        num = loop.rounds_of_call(done, shared.per_epoch)
        states, infos = call(seeds, states, shared.data, np.int32(num))
        infos = {name: np.asarray(value) for name, value in infos.items()}
        seconds = time.monotonic() - begun
        done += num
        work = num * shared.work
        losses = [
            {name: float(each[i]) for name, each in infos.items()}
            for i in range(len(seeds))
        ]
        rows = [
            progress.row(method, done, shared.per_epoch, own, seconds, work)
            for own in losses
        ]
        for history, row in zip(histories, rows, strict=True):
            history.append(row)
        tell(_of_all(rows))
    host = jax.tree.map(np.asarray, states)
    pick = lambda index: jax.tree.map(lambda leaf: leaf[index], host)
    return [(pick(index), history) for index, history in enumerate(histories)]


def _of_all(rows):
    """What to show of the members' rows: mean losses, work done together."""
    mean = {
        name: float(np.mean([row["losses"][name] for row in rows]))
        for name in rows[0]["losses"]
    }
    name = next(name for name in rows[0] if name.endswith(progress.RATE))
    rate = sum(row[name] for row in rows)
    return rows[0] | {"losses": mean, name: rate}


@functools.partial(jax.jit, static_argnames="init")
def _init(init, seeds, hyper):
    def of_member(seed, values):
        init_key, _ = jax.random.split(jax.random.key(seed))  # As ``train`` does.
        return init(init_key, **values)

    return jax.vmap(of_member)(seeds, hyper)


def _compiled(shared, seeds, states):
    """The program for arrays of these shapes, whose memory can be asked for."""
    shape = lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    shapes = jax.tree.map(shape, (seeds, states, shared.data))
    leaves, tree = jax.tree.flatten(shapes)
    fixed = (shared.method.update, shared.layout, shared.splits)
    return _compile(*fixed, tree, tuple(leaves))


def programs() -> int:
    """How many programs of rounds this process has compiled so far."""
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
    """``num`` rounds of every member, and the mean of each one's info over them."""

    a_round = jax.jit(update, inline=True)  # Traced once for its shape and the loop.

    def of_member(seed, state, data):
        _, key = jax.random.split(jax.random.key(seed))
        _, like = jax.eval_shape(a_round, key, state, data)
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like)

        def body(_, carry):
            state, total = carry
            state, info = a_round(key, state, data)
            return state, jax.tree.map(jnp.add, total, info)

        state, total = jax.lax.fori_loop(0, num, body, (state, zeros))
        return state, jax.tree.map(lambda leaf: leaf / num, total)

    if layout == LAYOUTS[1]:
        return jax.lax.map(lambda own: of_member(own[0], own[1], data), (seeds, states))
    of_split = jax.vmap(of_member, in_axes=(0, 0, None))
    if splits == 1:
        return of_split(seeds, states, data)
    fold = lambda leaf: leaf.reshape(splits, -1, *leaf.shape[1:])
    seeds, states = jax.tree.map(fold, (seeds, states))
    found = jax.vmap(of_split)(seeds, states, data)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), found)
