"""Timing by medians; compile time and the machine's limits are measured separately."""

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
# Rows of a square matrix, and bytes, that are large enough for a GPU and for a CPU.
FILLS = (8192, 1 << 32), (2048, 1 << 28)
RANDOM_WORD = 116  # 32-bit operations: Threefry has 20 rounds of 5, plus its keys.
# Operations per normal number: its bits and the polynomial of the quantile.
NORMAL = RANDOM_WORD + 30


class Timed(NamedTuple):
    """Times and result of a call."""

    seconds: float  # median of the repeats
    compile_s: float  # time of the first call minus the median
    result: object


def timed(fn, *args, repeats=5) -> Timed:
    """Calls ``fn(*args)`` once to compile and warm up, then ``repeats`` times."""
    start = time.perf_counter()
    result = jax.block_until_ready(fn(*args))
    first = time.perf_counter() - start
    median = statistics.median(timed_once(fn, *args) for _ in range(repeats))
    return Timed(median, max(first - median, 0.0), result)


def in_turn(fns, *args, repeats=5) -> dict[str, Timed]:
    """Times each function of a dict as ``timed`` does, alternating between them.

    Alternating exposes all functions to the same load, so ratios are reliable.
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
    """Returns the seconds of one call of a compiled function."""
    start = time.perf_counter()
    jax.block_until_ready(fn(*args))
    return time.perf_counter() - start


def matmul_rate(n=2048, repeats=5) -> float:
    """Measures the rate of float32 matrix products on this device, in FLOP/s."""
    x = jax.random.normal(jax.random.key(0), (n, n), jnp.float32)
    return 2 * n**3 / timed(jax.jit(jnp.matmul), x, x, repeats=repeats).seconds


def copy_bandwidth(num_bytes=1 << 28, repeats=5) -> float:
    """Measures bytes per second, read and written, of a pass larger than any cache.

    Each pass overwrites its input, because fresh pages cost more than the pass itself.
    """
    x = jnp.zeros(num_bytes // 4, jnp.float32)
    add = jax.jit(lambda x: x + 1, donate_argnums=0)

    def again():
        nonlocal x
        x = add(x)
        return x

    return 2 * num_bytes / timed(again, repeats=repeats).seconds


def work(operations, bytes, seconds, **more) -> dict:
    """Returns the work arguments of ``Report.add_work``."""
    return {"operations": operations, "bytes": bytes, "seconds": seconds, **more}


def device() -> str:
    """Returns the number and name of the devices."""
    first = jax.devices()[0]
    name = first.device_kind
    if first.platform == "cpu":
        name = f"{platform.machine()} CPU"
    return f"{jax.device_count()} x {name}"


def about() -> dict:
    """Returns the machine, versions and date of a measurement."""
    found = {
        "device": device(),
        "versions": {
            "jaxanon": jaxanon.__version__,
            "jax": jax.__version__,
            "python": platform.python_version(),
        },
        "date": datetime.date.today().isoformat(),
    }
    if jax.default_backend() != "cpu":  # Accelerators may round float32 products.
        precision = jax.config.jax_default_matmul_precision or "default"
        found["matmul_precision"] = precision
    if jax.config.jax_compilation_cache_dir:  # A cached program compiles in no time.
        found["compilation_cache"] = True
    return found


def peak_mib() -> float:
    """Returns the peak memory of the first device in MiB; 0 if it is not reported."""
    told = jax.devices()[0].memory_stats() or {}
    return told.get("peak_bytes_in_use", 0) / 2**20


def huge_pages() -> bool:
    """Returns whether glibc allocates memory in huge pages."""
    return "hugetlb=1" in os.environ.get("GLIBC_TUNABLES", "")


class Option(NamedTuple):
    """A command line option."""

    help: str
    names: tuple | None = None  # valid values; None allows any
    apart: str | None = None  # separator between several values
    default: Any = None
    type: Callable = str


def one_of(names, more="all by default", apart=None) -> Option:
    """Returns an option for one of ``names``, or several with a separator."""
    many = f", separated by {apart!r}" if apart else ""
    return Option(f"one of {', '.join(names)}{many}; {more}", tuple(names), apart)


def number(default, what) -> Option:
    """Returns an option for an integer."""
    return Option(f"{what}, {default} by default", default=default, type=int)


def arguments(
    description, *, folder=None, hours=False, **options
) -> argparse.Namespace:
    """Parses the options common to all benchmarks and the options of this benchmark.

    Args:
      description: docstring of the benchmark; ``--help`` prints it.
      folder: folder below ``runs`` that saves answers so that the command can resume;
        the default of ``--folder``. An ``Option`` leaves the default to the benchmark.
      hours: whether to add ``--hours``; ``end`` of the result is the time after which
        no new job starts, on the clock of ``time.monotonic``.
      **options: an ``Option``, or a help text, for each further option.

    Raises:
      SystemExit: if an option has an unknown value.
    """
    parser = argparse.ArgumentParser(
        "bench",
        description=description.replace("``", ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--smoke", action="store_true", help="small sizes, a minute")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    if isinstance(folder, Option):
        options["folder"], folder = folder, None
    if folder is not None:
        where = f"folder of saved answers, runs/{folder} by default"
        options["folder"] = Option(where, type=pathlib.Path)
    if hours:
        later = "start no new job after this many hours"
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
    """Exits with an error if an option has an unknown value.

    Args:
      option: name of the option without dashes.
      given: one value or several; None if the option is absent.
      names: valid values.

    Raises:
      SystemExit: for an unknown value; lists the valid ones.

    Example:
      >>> among("part", None, ("start", "stream"))
      >>> among("part", "start", ("start", "stream"))
    """
    asked = [given] if isinstance(given, str) else given or ()
    unknown = sorted(set(asked) - set(names))
    if unknown:
        raise SystemExit(f"--{option} must be one of {[*names]}, got {unknown}.")


class Report:
    """Rows of a benchmark, printed immediately and saved for ``--json``.

    Rows go to a ``.part`` file until the benchmark ends. An interrupted benchmark thus
    keeps its rows and does not overwrite a complete file.

    Args:
      path: path of the JSON file, or ``None``.
      smoke: whether to measure limits at small sizes.
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
                "no huge pages: a virtual machine allocates fresh memory slowly, which "
                "the in-place copy does not show; code that stores every gradient is "
                f"several times faster with {HUGE_PAGES}",
                flush=True,
            )

    def add(self, name, value, unit, shapes, *, flops=None, **more):
        """Adds a measured value; FLOP/s also give the share of the matmul rate."""
        shares = {} if flops is None else {"matmul rate": flops / self.flops}
        self._row(name, value, unit, shapes, shares, **more)

    def add_work(
        self, name, value, unit, shapes, *, operations, bytes, seconds, **more
    ):
        """Adds a measured value with its work and its share of the machine's limits.

        Args:
          name: timed function; in a ratio, the function whose work is given is first.
          value: measured value in ``unit``.
          unit: unit; ratios use "x as fast" or "x as long".
          shapes: shapes of the data.
          operations: arithmetic and comparisons that the result needs, including those
            for random bits (``RANDOM_WORD`` each).
          bytes: memory traffic: inputs read and results written once, unless a comment
            says more.
          seconds: measured time, from which the shares of the limits follow.
          **more: further entries of the row; ``least_bytes`` is the traffic of the best
            possible program if this program moves more.
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
        """Writes the rows to the path, if it has one."""
        if self._path is not None:
            self._part().replace(self._path)


class KernelReport(Report):
    """Rows on kernels; each has operations, bytes and shares of the limits."""

    add = Report.add_work

    def took(self, name, timed, shapes, operations, bytes, **more) -> dict:
        """Adds the milliseconds of a ``timed`` call; returns its work."""
        own = work(operations, bytes, timed.seconds)
        self.add(name, timed.seconds * 1e3, "ms", shapes, **own, **more)
        return own

    def over(self, name, seconds, own, shapes):
        """Adds the speedup over another function's seconds."""
        self.add(name, seconds / own["seconds"], "x as fast", shapes, **own)


def installed(module, name) -> bool:
    """Returns whether a rival is installed; otherwise reports that it is skipped."""
    if importlib.util.find_spec(module) is not None:
        return True
    print(f"{name} is not installed; its rows are skipped", flush=True)
    return False
