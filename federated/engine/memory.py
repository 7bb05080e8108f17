"""Free memory, and sizes of chunks that fit into it."""

import math
import os
import pathlib

import jax

_MEMINFO = pathlib.Path("/proc/meminfo")

_GROUP = pathlib.Path("/sys/fs/cgroup")

# Control groups v2 and v1: folder, limit, usage, and the reclaimable part of the usage
# (inactive file cache).
_GROUPS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free() -> int | None:
    """Returns the free bytes of the first device, or None if unknown.

    For a CPU it is the free memory of the machine or of the container.

    Example:
      >>> free() is None or free() > 0
      True
    """
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        return free_on_host()
    stats = device.memory_stats() or {}
    if "bytes_limit" not in stats:
        return None
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0)


def free_on_host(
    meminfo: pathlib.Path = _MEMINFO, group: pathlib.Path = _GROUP
) -> int | None:
    """Returns the free bytes of the machine or its container, whichever is less.

    Args:
      meminfo: Linux's ``meminfo`` file.
      group: folder of the Linux control group of a container.

    Example:
      >>> import pathlib
      >>> nowhere = pathlib.Path("no such file")
      >>> (free_on_host(nowhere, nowhere) or 1) > 0
      True
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
    for folder, limit, used, old in _GROUPS:
        try:
            read = lambda name, at=group / folder: (at / name).read_text()
            unused = int(read(limit)) - int(read(used))  # "max" raises ValueError.
            stat = dict(row.split() for row in read("memory.stat").splitlines())
            known.append(unused + int(stat[old]))
        except (OSError, KeyError, ValueError):
            pass
    return min(known, default=None)


def even(count: int, max_size: int) -> int:
    """Returns the size of evenly sized chunks, none larger than ``max_size``.

    Example:
      >>> even(120, 50), even(7, 3), even(4, 9)
      (40, 3, 4)
    """
    max_size = max(1, min(count, max_size))
    return math.ceil(count / math.ceil(count / max_size))
