"""Timing that can be trusted: medians, compile time apart, the machine's own limits."""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import statistics
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp

HUGE_PAGES = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
# Rows of a square matrix, and bytes, that keep a GPU busy, and a CPU.
FILLS = (8192, 1 << 32), (2048, 1 << 28)
RANDOM_WORD = 116  # Operations of 32 bits: Threefry has 20 rounds of 5, and its keys.
# Of a normal number: its bits, and the quantile's polynomial.
NORMAL = RANDOM_WORD + 30


class Timed(NamedTuple):
    """What a call took and gave."""

    seconds: float  # median of the repeats
    compile_s: float  # first call less the median
    result: object


def timed(fn, *args, repeats=5) -> Timed:
    """Calls ``fn(*args)`` once to compile and warm up, then ``repeats`` times."""
    start = time.perf_counter()
    result = jax.block_until_ready(fn(*args))
    first = time.perf_counter() - start
    median = statistics.median(timed_once(fn, *args) for _ in range(repeats))
    return Timed(median, max(first - median, 0.0), result)


def in_turn(fns, *args, repeats=5) -> dict[str, Timed]:
    """``timed`` for each of a dict of functions, turn by turn.

    So that all of them meet the machine in the same moods, and ratios hold.
    """
    first = {name: timed(fn, *args, repeats=1) for name, fn in fns.items()}
    seconds = {name: [] for name in fns}
    for _ in range(repeats):
        for name, fn in fns.items():
            seconds[name].append(timed_once(fn, *args))
    return {
        name: Timed(statistics.median(seconds[name]), *first[name][1:]) for name in fns
    }


def timed_once(fn, *args) -> float:
    """Seconds of one call that has been compiled."""
    start = time.perf_counter()
    jax.block_until_ready(fn(*args))
    return time.perf_counter() - start


def matmul_rate(n=2048, repeats=5) -> float:
    """Measured float32 matrix products of this device, in FLOP/s."""
    x = jax.random.normal(jax.random.key(0), (n, n), jnp.float32)
    return 2 * n**3 / timed(jax.jit(jnp.matmul), x, x, repeats=repeats).seconds


def copy_bandwidth(num_bytes=1 << 28, repeats=5) -> float:
    """Measured bytes per second, read and written, of a pass that fits no cache.

    Each pass writes over what it reads: pages of fresh memory cost more than the pass.
    """
    x = jnp.zeros(num_bytes // 4, jnp.float32)
    add = jax.jit(lambda x: x + 1, donate_argnums=0)

    def again():
        nonlocal x
        x = add(x)
        return x

    return 2 * num_bytes / timed(again, repeats=repeats).seconds


def device() -> str:
    """The device, and how many of them, in words."""
    first = jax.devices()[0]
    name = first.device_kind
    if first.platform == "cpu":
        name = f"{platform.machine()} CPU"
    return f"{jax.device_count()} x {name}"


def about() -> dict:
    """What measured a row, and when."""
    found = {
        "device": device(),
        "versions": {"jax": jax.__version__, "python": platform.python_version()},
        "date": datetime.date.today().isoformat(),
    }
    if jax.default_backend() != "cpu":  # Where float32 products may be rounded.
        precision = jax.config.jax_default_matmul_precision or "default"
        found["matmul_precision"] = precision
    if jax.config.jax_compilation_cache_dir:  # What took no time was compiled before.
        found["compilation_cache"] = True
    return found


def peak_mib() -> float:
    """Most memory of the first device that was ever in use; 0 where it doesn't say."""
    told = jax.devices()[0].memory_stats() or {}
    return told.get("peak_bytes_in_use", 0) / 2**20


def huge_pages() -> bool:
    """Whether memory that is asked for comes in huge pages."""
    return "hugetlb=1" in os.environ.get("GLIBC_TUNABLES", "")


def arguments(description, **extra) -> argparse.Namespace:
    """The options that every benchmark has, and flags of its own (name=help)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--smoke", action="store_true", help="small sizes, a minute")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    for name, help_ in extra.items():
        parser.add_argument(f"--{name.replace('_', '-')}", help=help_)
    return parser.parse_args()


def end(args) -> float:
    """When ``--hours`` says to begin nothing new, by ``time.monotonic``.

    Example:
      >>> end(argparse.Namespace(hours=None))
      inf
    """
    return time.monotonic() + 3600 * float(args.hours or math.inf)


def among(option, given, names) -> None:
    """Ends the program where an option names what there is not.

    Args:
      option: its name, without dashes.
      given: one name or several; None where the option is not there.
      names: those there are.

    Raises:
      SystemExit: naming them.

    Example:
      >>> among("part", None, ("start", "stream"))
      >>> among("part", "start", ("start", "stream"))
    """
    asked = [given] if isinstance(given, str) else given or ()
    unknown = sorted(set(asked) - set(names))
    if unknown:
        raise SystemExit(f"--{option} must be of {[*names]}, got {unknown}.")


class Report:
    """Rows as they come: printed at once, kept for ``--json``.

    Until all are there they are in a file beside, named ``.part``: a run that is
    stopped has its rows, and replaces none that are whole.

    Args:
      path: where to write them, or ``None``.
      smoke: whether limits are measured at small sizes.
    """

    def __init__(self, path=None, *, smoke=False):
        self._path = path
        fills = FILLS[jax.default_backend() == "cpu"]
        n, num_bytes = (256, 1 << 22) if smoke else fills
        self.rows = []
        self.about = about()
        self.flops = matmul_rate(n)
        self.bandwidth = copy_bandwidth(num_bytes)
        date, place = self.about["date"], self.about["device"]
        print(f"{date}, device: {place}, jax {jax.__version__}", flush=True)
        self.add_work(
            "matmul rate",
            self.flops / 1e9,
            "GFLOP/s",
            f"float32 {n} x {n}",
            operations=2 * n**3,
            bytes=3 * 4 * n**2,
            seconds=2 * n**3 / self.flops,
        )
        self.add_work(
            "copy bandwidth",
            self.bandwidth / 1e9,
            "GB/s",
            f"{num_bytes >> 20} MiB",
            operations=num_bytes // 4,
            bytes=2 * num_bytes,
            seconds=2 * num_bytes / self.bandwidth,
            huge_pages=huge_pages(),
        )
        if jax.default_backend() == "cpu" and not huge_pages():
            print(
                "no huge pages: fresh memory is slow to come by on a virtual machine, "
                "which the copy in place does not show; who makes every gradient is "
                f"several times faster with {HUGE_PAGES}",
                flush=True,
            )

    def add(self, name, value, unit, shapes, *, flops=None, **more):
        """Notes one figure; its FLOP/s give its share of the matmul rate."""
        shares = {} if flops is None else {"matmul rate": flops / self.flops}
        self._row(name, value, unit, shapes, shares, **more)

    def add_work(
        self,
        name,
        value,
        unit,
        shapes,
        *,
        operations,
        bytes,
        seconds,
        least_bytes=None,
        **more,
    ):
        """Notes one figure with its work, and how near that is to the machine's limits.

        Args:
          name: what was timed; in a ratio, first the one whose work the row has.
          value: the figure, in ``unit``.
          unit: of ratios "x as fast" or "x as long".
          shapes: of what.
          operations: arithmetic and comparisons that the result needs, those for random
            bits included (``RANDOM_WORD`` each).
          bytes: to and from memory: inputs read and results written once, unless a
            comment says more.
          seconds: that this took; the shares of the limits follow.
          least_bytes: what the best of programs would move, where this one moves more.
          **more: further entries of the row.
        """
        shares = {
            "matmul rate": operations / seconds / self.flops,
            "copy bandwidth": bytes / seconds / self.bandwidth,
        }
        if least_bytes is not None:
            share = least_bytes / seconds / self.bandwidth
            shares["copy bandwidth by least bytes"] = share
            more["least_bytes"] = int(least_bytes)
        work = {
            "operations": int(operations),
            "bytes": int(bytes),
            "seconds": float(seconds),
        }
        self._row(name, value, unit, shapes, shares, **work, **more)

    def _row(self, name, value, unit, shapes, shares, **more):
        row = {
            "name": name,
            "value": float(value),
            "unit": unit,
            "shapes": shapes,
            **self.about,
            **more,
        }
        for limit, share in shares.items():
            row[f"share_of_{limit.replace(' ', '_')}"] = float(share)
        self.rows.append(row)
        self._keep()
        told = "".join(f"  {share:6.1%} of {limit}" for limit, share in shares.items())
        print(f"{name:42s} {value:12.2f} {unit:18s}{told}  {shapes}", flush=True)

    def _keep(self):
        if self._path is not None:
            self._part().write_text(json.dumps(self.rows, indent=2) + "\n")

    def _part(self):
        return self._path.with_name(f"{self._path.name}.part")

    def write(self):
        """Puts the rows where they belong, if there is a path."""
        if self._path is not None:
            self._part().replace(self._path)


class KernelReport(Report):
    """Rows on kernels: none without its operations, bytes and share of the limits."""

    add = Report.add_work
