"""Compares federated rounds with those of rival frameworks.

Example: ``python bench federated --rivals DIR --passes 1 --smoke``.

64 clients of 64 windows (768 numbers each) train the autoencoder 768-256-128-25-128-
256-768 for 5 steps of 16 windows in a fixed order, and the server averages. The same
rounds run in our FedAvg, FedJAX, Apple's pfl, Flower and TFF; after three rounds the
weights must equal those of NumPy loops. Also measures Atlas and LDP-FL on the same
work, and a thousand clients with an LSTM in one program. Every figure is measured in
separate processes in turn, with their peak memory.

Rivals have virtual environments below DIR; for missing ones, the benchmark prints the
commands that create them. On a GPU, ours also run with 1,000 clients.
"""

import os
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Callable
from typing import NamedTuple

# The measuring processes need the GPU's memory; this process does not.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax

from federated import check as fed_check
from federated import many_clients, processes, rows, work
from harness import rivals as bench_rivals
from harness import timing

OUT = "out.npz"
PASSES = 3
SHARDED, PLAIN = "FedAvg, a shard per device", "FedAvg, one device"
EXACT, NOISY = "Atlas, one device", "Atlas with noise, one device"
LDP = "LDP-FL, one device"
CHECKS = {EXACT: fed_check.same, NOISY: fed_check.noisy, LDP: fed_check.two_points}
SPLIT = f"--xla_force_host_platform_device_count={os.cpu_count()}"


class Entry(NamedTuple):
    """A line of the table."""

    name: str
    sizes: work.Sizes | many_clients.Many
    command: tuple[str, ...]
    check: Callable | None  # layers -> number; raises if they are wrong
    passes: int = PASSES
    flags: str = ""  # XLA flags
    ours: bool = True


def ours(folder, smoke) -> list[Entry]:
    """Returns our entries, on a GPU also with more clients."""
    on_cpu = jax.default_backend() == "cpu"
    sizes = work.SMOKE if smoke else work.Sizes()
    entries = []
    for clients in [sizes.clients] if on_cpu else [sizes.clients, 1000]:
        sized = sizes._replace(clients=clients)
        path = folder / f"work_{clients}.npz"
        work.save(path, work.make(sized))
        names = [PLAIN, EXACT, NOISY, LDP]
        if on_cpu or jax.device_count() > 1:
            names = [SHARDED, *names]
        for name in names:
            check = CHECKS.get(name, fed_check.same)
            check = lambda layers, check=check, path=path: check(path, layers)
            command = our_command(path, folder, name, blocks=2 if smoke else 10)
            flags = SPLIT if name == SHARDED and on_cpu else ""
            entries.append(Entry(name, sized, command, check, flags=flags))
    return entries


def our_command(path, folder, name, blocks) -> tuple[str, ...]:
    """Returns the command that measures one of our cases."""
    return bench_rivals.call("federated.ours", path, folder / OUT, blocks, name)


def many(folder, smoke) -> list[Entry]:
    """Returns the entries with a thousand clients of the LSTM."""
    names = [name for name in many_clients.CASES if name.endswith("smoke") == smoke]
    return [
        Entry(
            name,
            many_clients.CASES[name][1],
            our_command("-", folder, name, 1),
            None,
            passes=1,
        )
        for name in names
    ]


def rivals(folder, environments, sizes) -> list[Entry]:
    """Returns the installed rivals; prints how to install the others."""
    path = folder / f"work_{sizes.clients}.npz"
    check = lambda layers: fed_check.same(path, layers)
    entries, absent = [], {}
    for rival in bench_rivals.RIVALS:
        command = bench_rivals.command(rival, environments, path, folder / OUT)
        if command is None:
            absent[rival.folder] = bench_rivals.install(
                rival.folder, environments or pathlib.Path("rivals")
            )
            continue
        passes = rival.passes or PASSES
        entries.append(Entry(rival.name, sizes, command, check, passes, ours=False))
    for name, commands in absent.items():
        print(f"{name} is not installed; install it with\n  " + "\n  ".join(commands))
    return entries


def measure(entries, passes, out, n):
    """Runs all passes; returns ``({entry: [Measured]}, rates, failures)``."""
    found, rates, failed = {}, [], {}
    for number in range(passes):
        rates.append(timing.matmul_rate(n))
        for entry in entries:
            if number >= entry.passes or entry in failed:
                continue
            flags = f"{os.environ.get('XLA_FLAGS', '')} {entry.flags}".strip()
            environment = os.environ | {"XLA_FLAGS": flags}
            if not entry.ours:  # Our PYTHONPATH is of no use to them.
                environment.pop("PYTHONPATH", None)
            measured = processes.run(entry.command, out, environment)
            if isinstance(measured, str):
                failed[entry] = measured
                print(f"{entry.name} failed: {measured}", flush=True)
                continue
            if entry.check:
                entry.check(measured.layers)
            found.setdefault(entry, []).append(measured)
            told = f"pass {number + 1}: {entry.name:32s} {measured.seconds:9.4f} s"
            print(f"{told} a round of {entry.sizes.clients} clients", flush=True)
    return found, rates, [f"{e.name}: {words}" for e, words in failed.items()]


def tell(report, found, in_cache):
    """Adds rates, and ratios of FedAvg to rivals and of others to FedAvg."""
    for entry, measured in found.items():
        rows.add_rate(report, entry.name, entry.sizes, measured, in_cache)
    by = {(entry.name, entry.sizes): measured for entry, measured in found.items()}
    rivals = {entry.name for entry in found if not entry.ours}

    def ratio(fast, slow, sizes, unit):
        if (fast, sizes) in by and (slow, sizes) in by:
            pair = by[fast, sizes], by[slow, sizes]
            rows.add_ratio(report, fast, slow, sizes, *pair, unit, in_cache)

    for name, sizes in by:
        if name in rivals:
            best = SHARDED if (SHARDED, sizes) in by else PLAIN
            ratio(best, name, sizes, "x as fast")
        elif name in (EXACT, NOISY, LDP):
            ratio(name, PLAIN, sizes, "x as long")
        elif isinstance(sizes, many_clients.Many) and "Atlas" in name:
            ratio(name, f"FedAvg, {name.partition(', ')[2]}", sizes, "x as long")


def main():
    """Measures, checks that all results agree, and prints the table."""
    args = timing.arguments(
        __doc__,
        rivals="folder of the rivals' virtual environments",
        passes=timing.number(PASSES, "passes over all entries"),
    )
    report = timing.Report(args.json, smoke=args.smoke)
    in_cache = jax.default_backend() == "cpu"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        entries = ours(folder, args.smoke)
        environments = pathlib.Path(args.rivals).absolute() if args.rivals else None
        entries += rivals(folder, environments, entries[0].sizes)
        entries += many(folder, args.smoke)
        large = timing.FILLS[in_cache][0]
        passes, n = (1, 256) if args.smoke else (args.passes, large)
        found, rates, failed = measure(entries, passes, folder / OUT, n)
    print("all frameworks end in the same weights")
    report.flops = statistics.median([report.flops, *rates])
    report.add_work(
        "matmul rate, median of the passes",
        report.flops / 1e9,
        "GFLOP/s",
        f"float32 {n} x {n}",
        **timing.work(2 * n**3, 3 * 4 * n**2, 2 * n**3 / report.flops),
    )
    tell(report, found, in_cache)
    report.write()
    if failed:
        sys.exit("failed: " + "; ".join(failed))
