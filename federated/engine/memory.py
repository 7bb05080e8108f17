"""How much memory is free, and how many of something fit into it."""

import math
import os
import pathlib

import jax

_MEMINFO = pathlib.Path("/proc/meminfo")

_GROUP = pathlib.Path("/sys/fs/cgroup")

# Of both versions of control groups: folder, limit, what is used, and what of that are
# files that nobody looked at for a while, which give way.
_GROUPS = (
    ("", "memory.max", "memory.current", "inactive_file"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free() -> int | None:
    """Bytes that the first device can still take; None where nobody says.

    A CPU can take what its machine has free, or what its container has left.

    Example:
      >>> free() is None or free() > 0
      True
    """
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        return free_on_host()
    told = device.memory_stats() or {}
    if "bytes_limit" not in told:
        return None
    return told["bytes_limit"] - told.get("bytes_in_use", 0)


def free_on_host(
    meminfo: pathlib.Path = _MEMINFO, group: pathlib.Path = _GROUP
) -> int | None:
    """Bytes that a machine has free, or its container, whichever is fewer.

    Args:
      meminfo: Linux's file of the machine's memory.
      group: folder of Linux's control group, whose limit a container has.

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
            told = int(read(limit)) - int(read(used))  # No limit is "max", no number.
            stat = dict(row.split() for row in read("memory.stat").splitlines())
            known.append(told + int(stat[old]))
        except (OSError, KeyError, ValueError):
            pass
    return min(known, default=None)


def even(count: int, most: int) -> int:
    """The size of as many chunks as must be, none above ``most``, as even as can be.

    Example:
      >>> even(120, 50), even(7, 3), even(4, 9)
      (40, 3, 4)
    """
    most = max(1, min(count, most))
    return math.ceil(count / math.ceil(count / most))
