"""Timing that can be trusted: medians, compile time apart, the machine's own limits."""

import argparse
import datetime
import importlib.util
import json
import math
import os
import pathlib
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxanon

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


def work(operations, bytes, seconds, **more) -> dict:
    """What ``Report.add_work`` asks for."""
    return {"operations": operations, "bytes": bytes, "seconds": seconds, **more}


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
        "versions": {
            "jaxanon": jaxanon.__version__,
            "jax": jax.__version__,
            "python": platform.python_version(),
        },
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


class Option(NamedTuple):
    """An option of the command line."""

    help: str
    names: tuple | None = None  # that there are; None where any will do
    apart: str | None = None  # what stands between several of them
    default: Any = None
    type: Callable = str


def one_of(names, more="all by default", apart=None) -> Option:
    """One of some names, or several with something between."""
    many = f", with {apart!r} between several" if apart else ""
    return Option(f"of {', '.join(names)}{many}; {more}", tuple(names), apart)


def number(default, what) -> Option:
    """A whole number."""
    return Option(f"{what}, {default} by default", default=default, type=int)


def arguments(
    description, *, folder=None, hours=False, **options
) -> argparse.Namespace:
    """The options that every benchmark has, and those of its own.

    Args:
      description: the benchmark's docstring, whose first line is told.
      folder: name of a folder below ``runs`` in which answers are kept, so that the
        same command goes on where it was stopped: the default of ``--folder``. Or an
        ``Option``, whose default the benchmark itself knows.
      hours: whether there is ``--hours``, which is told as ``end``, when to begin
        nothing new, by ``time.monotonic``.
      **options: an ``Option`` each, or its help.

    Raises:
      SystemExit: where an option names what there is not.
    """
    parser = argparse.ArgumentParser("bench", description=description.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="small sizes, a minute")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    if isinstance(folder, Option):
        options["folder"], folder = folder, None
    if folder is not None:
        where = f"what was found so far, runs/{folder} by default"
        options["folder"] = Option(where, type=pathlib.Path)
    if hours:
        later = "begin nothing new after so many hours"
        options["hours"] = Option(later, default=math.inf, type=float)
    every = {
        name: option if isinstance(option, Option) else Option(option)
        for name, option in options.items()
    }
    for name, option in every.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            help=option.help.replace("%", "%%"),
            default=option.default,
            type=option.type,
        )
    args = parser.parse_args()
    for name, option in every.items():
        given = getattr(args, name)
        if option.apart:
            given = given.split(option.apart) if given else option.names
            setattr(args, name, given)
        if option.names is not None:
            among(name, given, option.names)
    if folder is not None:
        default = pathlib.Path("runs", folder + "-smoke" * args.smoke)
        args.folder = args.folder or default
    if hours:
        args.end = time.monotonic() + 3600 * args.hours
    return args


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
            **work(2 * n**3, 3 * 4 * n**2, 2 * n**3 / self.flops),
        )
        copied = num_bytes // 4, 2 * num_bytes, 2 * num_bytes / self.bandwidth
        self.add_work(
            "copy bandwidth",
            self.bandwidth / 1e9,
            "GB/s",
            f"{num_bytes >> 20} MiB",
            **work(*copied, huge_pages=huge_pages()),
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
        self, name, value, unit, shapes, *, operations, bytes, seconds, **more
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
          **more: further entries of the row; ``least_bytes`` is what the best of
            programs would move, where this one moves more.
        """
        shares = {
            "matmul rate": operations / seconds / self.flops,
            "copy bandwidth": bytes / seconds / self.bandwidth,
        }
        if "least_bytes" in more:
            more["least_bytes"] = int(more["least_bytes"])
            share = more["least_bytes"] / seconds / self.bandwidth
            shares["copy bandwidth by least bytes"] = share
        whole = work(int(operations), int(bytes), float(seconds))
        self._row(name, value, unit, shapes, shares, **whole, **more)

    def _row(self, name, value, unit, shapes, shares, **more):
        row = {"name": name, "value": float(value), "unit": unit, "shapes": shapes}
        row |= {**self.about, **more}
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

    def took(self, name, timed, shapes, operations, bytes, **more) -> dict:
        """Notes milliseconds of what was ``timed``; returns its work."""
        own = work(operations, bytes, timed.seconds)
        self.add(name, timed.seconds * 1e3, "ms", shapes, **own, **more)
        return own

    def over(self, name, seconds, own, shapes):
        """Notes how many times as fast what has a work was as another's seconds."""
        self.add(name, seconds / own["seconds"], "x as fast", shapes, **own)


def installed(module, name) -> bool:
    """Whether a rival is; else says that its rows are left out."""
    if importlib.util.find_spec(module) is not None:
        return True
    print(f"{name} is not installed; its rows are left out", flush=True)
    return False
