"""How many members of a sweep fit into the memory at once."""

import math
import os
import pathlib
from collections.abc import Callable

import jax

SHARE = 0.8  # Of the free memory; the rest is for what comes and goes beside.
_MEMINFO = pathlib.Path("/proc/meminfo")
_GROUP = pathlib.Path("/sys/fs/cgroup")


def free() -> int | None:
    """Bytes that the first device can still take; None where nobody says.

    A CPU can take what its machine has free, or what its container has left.
    """
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        return free_on_host(_MEMINFO, _GROUP)
    told = device.memory_stats() or {}
    if "bytes_limit" not in told:
        return None
    return told["bytes_limit"] - told.get("bytes_in_use", 0)


def free_on_host(meminfo: pathlib.Path, group: pathlib.Path) -> int | None:
    """Bytes that a machine has free, or its container, whichever is fewer.

    Args:
      meminfo: Linux's file of the machine's memory.
      group: folder of Linux's control group, whose limit a container has.
    """
    known = []
    try:
        rows = dict(line.split(":") for line in meminfo.read_text().splitlines())
        known.append(1024 * int(rows["MemAvailable"].split()[0]))
    except (OSError, KeyError, ValueError):
        try:
            known.append(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, OSError, ValueError):
            pass
    try:
        limit, used = ((group / f"memory.{x}").read_text() for x in ("max", "current"))
        known.append(int(limit) - int(used))  # No limit is "max", no number.
    except (OSError, ValueError):
        pass
    return min(known, default=None)


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
    return max(0, whole - nbytes(there))


def nbytes(tree) -> int:
    """Bytes of a tree's arrays."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def even(count: int, most: int) -> int:
    """The size of as many chunks as must be, none above ``most``, as even as can be.

    Example:
      >>> even(120, 50), even(7, 3), even(4, 9)
      (40, 3, 4)
    """
    most = max(1, min(count, most))
    return math.ceil(count / math.ceil(count / most))


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
