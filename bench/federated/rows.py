"""Rows of bench/federated: rates, shares of the machine's limits, ratios."""

import statistics
from typing import NamedTuple

from federated import many_clients, work
from harness import timing
from harness.timing import NORMAL, RANDOM_WORD


class Cost(NamedTuple):
    """Minimum cost of a round."""

    operations: float
    bytes: float  # if clients' weights do not fit in a cache
    least_bytes: float  # if they fit: rows in, weights in and out


def cost(name, sizes) -> Cost:
    """Returns the cost of one round without masks, clipping and an LSTM's noise."""
    if isinstance(sizes, many_clients.Many):
        flops = many_clients.flops_per_update(sizes)
        numbers = sizes.batch * sizes.steps * sizes.time * sizes.channels
        least = 4 * sizes.clients * numbers
        return Cost(sizes.clients * flops, least, least)
    weights = work.num_weights(sizes)
    operations = work.flops_per_update(sizes)
    if "noise" in name:
        operations += sizes.steps * weights * NORMAL
    if "LDP" in name:
        operations += weights * RANDOM_WORD
    seen = min(sizes.rows, sizes.batch * sizes.steps)
    rows = 4 * sizes.clients * seen * sizes.widths[0]
    # Atlas stores its clients' weights and masks between rounds.
    kept = 4 * 4 * sizes.clients * weights if "Atlas" in name else 0
    least = rows + kept + 2 * 4 * weights
    # A step reads weights in both directions, and reads and writes them to update.
    streamed = 4 * 4 * weights * sizes.steps * sizes.clients
    return Cost(sizes.clients * operations, least + streamed, least)


def add_rate(report, name, sizes, measured, in_cache):
    """Adds client updates per second as the median over passes, and their time."""
    seconds = statistics.median(one.seconds for one in measured)
    needed = cost(name, sizes)
    moved = needed.least_bytes if in_cache else needed.bytes
    limit = max(needed.operations / report.flops, moved / report.bandwidth)
    report.add_work(
        name,
        sizes.clients / seconds,
        "client updates/s",
        str(sizes),
        **timing.work(needed.operations, moved, seconds),
        share_of_limit=limit / seconds,
        seconds_of_passes=[one.seconds for one in measured],
        first_s=min(one.first_s for one in measured),
        peak_memory_mib=max(one.peak_mib for one in measured),
        measured_with=measured[0].versions,
    )


def add_ratio(report, fast, slow, sizes, ours, theirs, unit, in_cache):
    """Adds the median over passes of ``theirs / ours``."""
    pairs = list(zip(ours, theirs, strict=False))
    ratio = statistics.median(b.seconds / a.seconds for a, b in pairs)
    seconds = statistics.median(a.seconds for a, _ in pairs)
    needed = cost(fast, sizes)
    moved = needed.least_bytes if in_cache else needed.bytes
    report.add_work(
        f"{fast} over {slow}",
        ratio if "fast" in unit else 1 / ratio,
        unit,
        str(sizes),
        **timing.work(needed.operations, moved, seconds),
    )
