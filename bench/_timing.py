"""Timing that can be trusted: medians, compile time apart, the machine's own limits."""

import argparse
import json
import pathlib
import platform
import statistics
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp


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


def arguments(description, **extra) -> argparse.Namespace:
    """The options that every benchmark has, and flags of its own (name=help)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--smoke", action="store_true", help="small sizes, a minute")
    parser.add_argument("--json", type=pathlib.Path, help="write the rows to this file")
    for name, help_ in extra.items():
        parser.add_argument(f"--{name.replace('_', '-')}", help=help_)
    return parser.parse_args()


class Report:
    """Rows as they come: printed at once, kept for ``--json``."""

    def __init__(self, *, smoke=False):
        n, num_bytes = (256, 1 << 22) if smoke else (2048, 1 << 28)
        self.rows = []
        self.flops = matmul_rate(n)
        self.bytes = copy_bandwidth(num_bytes)
        print(f"device: {device()}, jax {jax.__version__}", flush=True)
        self.add("matmul rate", self.flops / 1e9, "GFLOP/s", f"float32 {n} x {n}")
        self.add("copy bandwidth", self.bytes / 1e9, "GB/s", f"{num_bytes >> 20} MiB")

    def add(self, name, value, unit, shapes, *, flops=None, bandwidth=None, **more):
        """Notes one figure; its FLOP/s and bytes/s give the shares of the limits."""
        shares = {}
        if flops is not None:
            shares["matmul rate"] = flops / self.flops
        if bandwidth is not None:
            shares["copy bandwidth"] = bandwidth / self.bytes
        row = {
            "name": name,
            "value": value,
            "unit": unit,
            "shapes": shapes,
            "device": device(),
            "versions": {"jax": jax.__version__, "python": platform.python_version()},
            **more,
        }
        for limit, share in shares.items():
            row[f"share_of_{limit.replace(' ', '_')}"] = share
        self.rows.append(row)
        told = "".join(f"  {share:6.1%} of {limit}" for limit, share in shares.items())
        print(f"{name:42s} {value:12.2f} {unit:18s}{told}  {shapes}", flush=True)

    def write(self, path):
        """Writes the rows as JSON, if there is a path to write them to."""
        if path is not None:
            path.write_text(json.dumps(self.rows, indent=2) + "\n")
