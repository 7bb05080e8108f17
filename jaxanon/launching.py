"""Several processes of one machine, started and ended together."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from jaxanon import processes

MAIN = "import sys; from jaxanon import cli; sys.exit(cli.main())"


def launch(words: list[str], num_processes: int, devices: int | None = None) -> int:
    """Runs a command as several processes of this machine.

    Each is told which one it is, and its share of the devices where there are some to
    share out. When one fails, the others are ended.

    Args:
      words: of the command, after ``jaxanon``.
      num_processes: at least 2.
      devices: of all of them together; None gives each the whole machine, as is right
        for a CPU.

    Returns:
      0, or the first failure's exit status; 128 and more of a signal.

    Raises:
      ValueError: for fewer processes than 2; if devices cannot be shared out evenly;
        without devices, where the machine has GPUs.
    """
    if num_processes < 2:
        raise ValueError(
            f"num_processes must be >= 2, got {num_processes!r}; leave it out for one."
        )
    if devices is not None and devices % num_processes:
        raise ValueError(
            f"devices must be a multiple of num_processes={num_processes} to be shared "
            f"out, got {devices}."
        )
    on_cpu = os.environ.get("JAX_PLATFORMS") == "cpu"
    if devices is None and not on_cpu and pathlib.Path("/dev/nvidia0").exists():
        raise ValueError(
            "devices must be told (--devices) where processes share a machine's GPUs."
        )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-P", "-c", MAIN, *words]
    command += ["--coordinator", f"127.0.0.1:{port}", "--process-id"]

    def start(index):
        env = dict(os.environ)
        if devices is not None:
            share = devices // num_processes
            own = range(index * share, (index + 1) * share)
            env["JAX_LOCAL_DEVICE_IDS"] = ",".join(map(str, own))
        return subprocess.Popen([*command, str(index)], env=env)

    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    started: list[subprocess.Popen] = []
    try:
        started.extend(start(index) for index in range(num_processes))
        return _watched(started)
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
        signal.signal(signal.SIGTERM, before)


def _watched(started):
    """Waits for all; the status of the first that fails, once others could tell."""
    left = dict(enumerate(started))
    while left:
        for index, process in list(left.items()):
            try:
                status = process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            del left[index]
            if status:
                end = time.monotonic() + processes.HEARTBEAT_S
                for other in left.values():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        other.wait(timeout=max(0.0, end - time.monotonic()))
                if status < 0 or status == processes.LOST:
                    print(
                        f"process {index} of {len(started)} was lost, and all are "
                        "ended; go on by the same command with --resume.",
                        file=sys.stderr,
                    )
                return status if status > 0 else 128 - status
    return 0
