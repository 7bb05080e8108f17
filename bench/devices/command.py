"""Compares rounds on one device with two workers and two processes.

Example: ``python bench devices --part overhead --smoke``.

``--part`` selects one of these parts:

- ``overhead``: FedAvg (the work of ``federated`` with 256 clients) and Blinder's client
  update (MobiAct's sizes, second order) on one device, on two workers with a core each,
  and on two processes with a reduction between them. Work and results are equal.
- ``stream``: clients on disk compared with clients in memory, up to a million clients.
- ``many``: Blinder's update for ``--clients`` clients (100,000 on a GPU), with its
  share of the machine's limits.
- ``costs``: README's formulas for three rounds compared with the compiler's counts.
"""

import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

from blinder import meta_gradient
from devices import costs, work
from harness import memory, rivals, timing
from jaxanon import federated
from jaxanon.federated.engine import algorithm as engine_algorithm
from jaxanon.federated.engine import layout

NUM = 2  # Number of workers and of processes.


def main():
    """Runs the selected parts."""
    args = timing.arguments(
        __doc__,
        part=timing.one_of(PARTS),
        clients=timing.Option("number of clients in the part many", type=int),
    )
    report = timing.Report(args.json, smoke=args.smoke)
    for part in [args.part] if args.part else PARTS:
        more = {"clients": args.clients} if part == "many" else {}
        PARTS[part](report, args.smoke, **more)
    report.write()


def overhead(report, smoke):
    """Compares one device, two workers and two processes on the same work."""
    for name in ("FedAvg", "Blinder"):
        algorithm, clients, operations = work.case(name, smoke)
        num = engine_algorithm.count_clients(clients)
        rounds = 2 if smoke else 6
        alone, params = work.one_program(algorithm, clients, rounds)
        wanted = work.checksum(params)
        devices = jax.local_devices()[:1] * NUM
        workers, params = work.by_workers(algorithm, clients, rounds, devices)
        np.testing.assert_allclose(work.checksum(params), wanted, rtol=1e-3)
        told = in_processes(name, rounds, smoke)
        np.testing.assert_allclose(told["checksum"], wanted, rtol=1e-3)
        routes = {
            "one device": alone,
            f"{NUM} workers": workers,
            f"{NUM} processes": told["seconds"],
        }
        of_clients = layout.num_bytes(clients)
        for route, seconds in routes.items():
            report.add_work(
                f"{name}, {route}",
                num / seconds,
                "client updates/s",
                f"{num} clients, {rounds} rounds",
                **timing.work(num * operations, of_clients, seconds),
            )
            if route != "one device":
                over, asked = (
                    f"{name}, {route} over one device",
                    "1.15 at most is asked",
                )
                ratio = seconds / alone
                report.add(over, ratio, "x as long", f"{num} clients; {asked}")


def in_processes(name, rounds, smoke):
    """Returns the measurement of the first of several processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    words = [str(NUM), port, name, str(rounds), "smoke" if smoke else "full"]
    secret = secrets.token_hex(16)
    started = [
        subprocess.Popen(
            rivals.call("devices.work", index, *words),
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"JAXANON_SECRET": secret},
        )
        for index in range(NUM)
    ]
    try:
        said = [process.communicate(timeout=900)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    if any(process.returncode for process in started):
        raise SystemExit(f"{name} by {NUM} processes failed: {said}")
    return json.loads(said[0].strip().splitlines()[-1])


def stream(report, smoke):
    """Compares clients on disk with clients in memory; streams a million small ones."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="clients"))
    try:
        # (clients, rows of each, numbers of a row, clients of a round)
        sizes = [(300, 4, 8, 50)] if smoke else [(20_000, 16, 768, 4_000)]
        sizes += [(1_000, 2, 8, 200)] if smoke else [(1_000_000, 8, 16, 10_000)]
        for at, size in enumerate(sizes):
            one_population(report, folder / str(at), *size, smoke)
    finally:
        shutil.rmtree(folder)


def one_population(report, folder, num, rows, width, cohort, smoke):
    """Writes a population, streams rounds, reads it, and loads it into memory."""
    draws = np.random.default_rng(0)
    pool = draws.standard_normal((64, rows, width), np.float32)
    start = time.perf_counter()
    federated.write_clients(folder, ({"x": pool[c % 64]} for c in range(num)))
    wrote = time.perf_counter() - start
    stored = federated.open_clients(folder)
    hidden = 8 if smoke else 128

    def loss_fn(layers, row, key):
        del key
        x = row["x"]
        return jnp.mean((jnp.tanh(x @ layers[0]) @ layers[1] - x) ** 2, axis=1)

    init_fn = lambda key: [jnp.full((width, hidden), 0.01), jnp.zeros((hidden, width))]
    algorithm = federated.fedavg(
        init_fn, loss_fn, steps=federated.Steps(num_steps=1), cohort_size=cohort
    )
    key, rounds = jax.random.key(1), 3
    begin = lambda: algorithm.init(jax.random.key(0))
    run = lambda: jax.block_until_ready(
        federated.stream(algorithm, key, begin(), stored, rounds)
    )
    memory.forget_held()  # Ignore memory of other parts and populations.
    run()
    streamed = timing.timed_once(run) / rounds
    held = memory.held_mib()
    ids = draws.integers(0, num, cohort)
    read = timing.timed_once(lambda: stored.read(ids).mask)
    cohort_bytes = cohort * stored.client_bytes
    shapes = f"{cohort} of {num} clients x {rows} x {width}"
    operations = cohort * rows * (6 * 2 * width * hidden - 2 * width * hidden)
    report.add("clients written", num / wrote, "clients/s", shapes)
    report.add_work(
        "FedAvg, clients on disk",
        cohort / streamed,
        "client updates/s",
        shapes,
        **timing.work(operations, cohort_bytes, streamed),
        peak_memory_mib=held,
        population_mib=num * stored.client_bytes / 2**20,
    )
    report.add("reading a cohort, one thread", cohort / read, "clients/s", shapes)
    if num * stored.client_bytes > 4 << 30:
        return  # Memory does not suffice for both.
    everyone = stored.read(np.arange(num))
    clients = federated.population(everyone.rows, everyone.mask)
    del everyone
    in_memory = lambda: jax.block_until_ready(
        federated.simulate(algorithm, key, begin(), clients, rounds)
    )
    in_memory()
    seconds = timing.timed_once(in_memory) / rounds
    report.add_work(
        "FedAvg, clients in memory",
        cohort / seconds,
        "client updates/s",
        shapes,
        **timing.work(operations, cohort_bytes, seconds),
    )
    report.add(
        "clients on disk over in memory", streamed / seconds, "x as long", shapes
    )


def many(report, smoke, clients=None):
    """Runs Blinder's update over a large cohort in one program."""
    large = 100_000 if jax.default_backend() != "cpu" else 2_048
    num = int(clients or (8 if smoke else large))
    memory.forget_held()  # Ignore memory of other parts.
    algorithm, data, operations = work.blinder_update(smoke, num)
    seconds, params = work.one_program(algorithm, data, 2)
    assert all(np.isfinite(np.asarray(x)).all() for x in jax.tree.leaves(params))
    report.add_work(
        f"Blinder, {num} clients in a round",
        num / seconds,
        "client updates/s",
        f"{num} clients, support {meta_gradient.SUPPORT}, query {meta_gradient.QUERY}",
        **timing.work(num * operations, layout.num_bytes(data), seconds),
        peak_memory_mib=timing.peak_mib() or memory.held_mib(),
    )


def counted(report, smoke):
    """Compares the formulas for three rounds with the compiler's counts."""
    for row in costs.rows(smoke):
        report.add(**row)


PARTS = {"overhead": overhead, "stream": stream, "many": many, "costs": counted}
