"""Several processes that train one run together, on one machine or many."""

import contextlib
import hashlib
import json
import os
import pathlib
import platform
import socket
import subprocess
import sys
from typing import NoReturn

import jax
import numpy as np
from jax.experimental import multihost_utils

from jaxanon import __version__

HEARTBEAT_S = 30  # Seconds without a sign of life after which a process is lost.
JOINING_S = 300  # Seconds to wait until all have come.
_MAIN = "import sys; from jaxanon import cli; sys.exit(cli.main())"
_LONGEST = 4096  # Bytes of an error that the first process tells the others.


class ProcessLost(ConnectionError):
    """Of a run whose processes cannot reach each other any more."""


class Stopped(ValueError):
    """Of a run that another of its processes refused."""


def join(
    coordinator: str,
    num_processes: int,
    process_id: int,
    local_device_ids=None,
    joining_s: int = JOINING_S,
) -> None:
    """Makes this process one of several, before JAX is used for anything else.

    Args:
      coordinator: ``"host:port"`` of the first process, which listens there.
      num_processes: how many there are, at least 2.
      process_id: which one this is, from 0.
      local_device_ids: which of the machine's devices are its own; None is all.
      joining_s: seconds to wait until all have come.

    Raises:
      ValueError: for a number out of its range, or an address without a port.
      OSError: if this is the first process and the port is in use.
      ConnectionError: if the others did not come, or the first cannot be reached.
    """
    if num_processes < 2:
        raise ValueError(f"num_processes must be >= 2, got {num_processes!r}.")
    if not 0 <= process_id < num_processes:
        raise ValueError(
            f"process_id must be at least 0 and below num_processes={num_processes}, "
            f"got {process_id!r}."
        )
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ValueError(
            f"coordinator must be HOST:PORT of the first process, got {coordinator!r}."
        )
    if process_id == 0:
        check_free(int(port))
    try:
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            local_device_ids=local_device_ids,
            initialization_timeout=joining_s,
            heartbeat_timeout_seconds=HEARTBEAT_S,
            shutdown_timeout_seconds=HEARTBEAT_S,
        )
        jax.devices()  # All tell each other what they have.
    except jax.errors.JaxRuntimeError as error:
        raise ConnectionError(
            f"process {process_id} of {num_processes} waited {joining_s} s at "
            f"{coordinator} and not all came; start every one of them with the same "
            "coordinator and num_processes, and let the first's port be reached. JAX: "
            f"{_first_line(error)}"
        ) from error


def check_free(port: int) -> None:
    """OSError if something listens on a port of this machine already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            raise OSError(
                f"port {port} is in use on this machine; name another one, the same to "
                "all processes."
            ) from error


def first() -> bool:
    """Whether this process keeps the run's folder; alone, it always does."""
    return jax.process_index() == 0


def several() -> bool:
    """Whether there are other processes."""
    return jax.process_count() > 1


def by_first(fn):
    """What ``fn()`` is in the first process, None in others; what it raises, all raise.

    Raises:
      Stopped: in the others, with what the first process raised.
    """
    if not several():
        return fn()
    result, error = None, None
    if first():
        try:
            result = fn()
        # Whatever it is, the others would wait for ever.
        except Exception as raised:
            error = raised
    told = np.zeros(_LONGEST, np.uint8)
    if error is not None:
        text = f"{type(error).__name__}: {error}".encode()[:_LONGEST]
        told[: len(text)] = np.frombuffer(text, np.uint8)
    told = np.asarray(multihost_utils.broadcast_one_to_all(told))
    if error is not None:
        raise error
    if told.any():
        text = told.tobytes().rstrip(b"\0").decode(errors="replace")
        raise Stopped(f"the first process stopped, and so do all: {text}")
    return result


def as_first_has(tree):
    """A tree of arrays, with the first process' numbers in every process."""
    if not several():
        return tree
    return jax.tree.map(jax.numpy.asarray, multihost_utils.broadcast_one_to_all(tree))


def code() -> str:
    """A digest of the library's source, of which a version may have many."""
    here = pathlib.Path(__file__).parent
    sha = hashlib.sha256()
    for path in sorted(here.rglob("*.py")):
        sha.update(path.relative_to(here).as_posix().encode() + path.read_bytes())
    return sha.hexdigest()


def check_alike(config: dict) -> None:
    """Refuses processes that would train different runs.

    Args:
      config: of ``training.describe``, each process' own.

    Raises:
      ValueError: in all processes, if two of them differ; it says in what, and names
        those that are unlike the first.
    """
    if not several():
        return
    versions = {
        "jaxanon's code": [__version__, code()],
        "the version of JAX": jax.__version__,
        "the version of Python": platform.python_version_tuple()[:2],
    }
    parts = {name: config.get(name) for name in ("method", "settings", "hyper")}
    rest = {k: v for k, v in config.items() if k not in (*parts, "data", "version")}
    parts |= {"the data": config.get("data"), "seed, epochs or spec": rest}
    told = versions | parts
    digests = [
        np.frombuffer(hashlib.sha256(json.dumps(part).encode()).digest()[:8], np.uint8)
        for part in told.values()
    ]
    everyone = np.asarray(multihost_utils.process_allgather(np.stack(digests)))
    unlike = (everyone != everyone[:1]).any(axis=2)  # [processes, parts]
    if unlike.any():
        bad = unlike.any(axis=0)
        names = [name for name, one in zip(told, bad, strict=True) if one]
        who = np.flatnonzero(unlike.any(axis=1)).tolist()
        raise ValueError(
            f"processes {who} differ from process 0 in {', '.join(names)}; start all "
            "with the same command, data and installation. Nothing was trained."
        )


@contextlib.contextmanager
def told_when_lost(where: str):
    """Says of JAX's errors between processes what happened and what to do.

    Args:
      where: what was going on, and what is kept.

    Raises:
      ProcessLost: in place of an error of the network.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if not several():
            raise
        raise ProcessLost(
            f"another process of {jax.process_count()} was lost {where}. Start all of "
            f"them again with resume=True (--resume). JAX: {_first_line(error)}"
        ) from error


def leave(error: ProcessLost) -> NoReturn:
    """Ends this process, with the reason as the last thing that it says.

    JAX would wait for the others on its way out, and abort.
    """
    print(f"jaxanon: error: {error}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(2)


def _first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def launch(num_processes: int, devices: int | None = None) -> int:
    """Runs this very command as several processes of this machine.

    Each is told which one it is, and its share of the devices where there are some to
    share out. When one fails, the others are ended.

    Args:
      num_processes: at least 2.
      devices: of all of them together; None gives each the whole machine, as is right
        for a CPU.

    Returns:
      0, or the first failure's exit status.

    Raises:
      ValueError: if devices cannot be shared out evenly.
    """
    if num_processes < 2:
        raise ValueError(f"num_processes must be >= 2, got {num_processes!r}.")
    if devices is not None and devices % num_processes:
        raise ValueError(
            f"devices must be a multiple of num_processes={num_processes} to be shared "
            f"out, got {devices}."
        )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-P", "-c", _MAIN, *sys.argv[1:]]
    command += ["--coordinator", f"127.0.0.1:{port}", "--process-id"]

    def start(index):
        env = dict(os.environ)
        if devices is not None:
            share = devices // num_processes
            own = range(index * share, (index + 1) * share)
            env["JAX_LOCAL_DEVICE_IDS"] = ",".join(map(str, own))
        return subprocess.Popen([*command, str(index)], env=env)

    started = [start(index) for index in range(num_processes)]
    try:
        return _watched(started)
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


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
                for other in left.values():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        other.wait(timeout=HEARTBEAT_S)
                        break
                how = f"signal {-status}" if status < 0 else f"status {status}"
                print(
                    f"process {index} of {len(started)} ended by {how}; the others "
                    "were ended, too. Go on by the same command with --resume.",
                    file=sys.stderr,
                )
                return abs(status)
    return 0
