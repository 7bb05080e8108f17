"""Several processes that train one run together, on one machine or many."""

import contextlib
import errno
import hashlib
import hmac
import importlib
import json
import os
import pathlib
import platform
import secrets
import signal
import socket
import struct
import subprocess
import sys
import time

import jax
import numpy as np
from jax.experimental import multihost_utils

from jaxanon import __version__
from jaxanon.core import checks

HEARTBEAT_S = 30  # Seconds without a sign of life after which a process is lost.

JOINING_S = 300  # Seconds to wait until all have come.

ENDING_S = 86_400  # That processes wait for one that works on after training.

PARTING_S = 2.0  # That the first stays on after an error, for others to tell theirs.

LOST = 3  # Exit status of a process that lost another.

# JAX's errors that are this process' own.
OWN = ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "UNIMPLEMENTED")

_APART = "federated", "kernels", "datasets", "recordings"  # Beside the package.

_LONGEST = 4096  # Bytes of an error that the first process tells the others.

SECRET = "JAXANON_SECRET"  # Environment variable with what all processes know.

LEAST_SECRET = 16  # Characters.

RESERVED = "JAXANON_RESERVED_PORT"  # Environment variable, of ``launching`` alone.

GREETING_S = 1.0  # That a guest may take to say who it is.

_NONCE, _PROOF = 32, 32  # Bytes.

_HELLO = b"jaxanon "

_CLAIM = struct.Struct(f"!QQ{_NONCE}s")  # num_processes, process_id, a random number

_REFUSALS = {
    b"auth": f"secret must be that of process 0; set the same {SECRET} for all.",
    b"many": "num_processes must be that of process 0.",
    b"none": "process_id must be at least 1 and below num_processes.",
    b"same": "process_id is taken; give each process its own.",
}


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
    secret: str | None = None,
) -> None:
    """Makes this process one of several, before JAX is used for anything else.

    The first process listens at ``coordinator`` and nowhere else. It lets in those who
    know the secret; then JAX's coordinator takes the same address. That service and
    what processes send each other are neither authenticated nor encrypted, so that all
    machines must be in a trusted network.

    Args:
      coordinator: ``"host:port"`` of the first process, which listens there.
      num_processes: how many there are, at least 2.
      process_id: which one this is, from 0.
      local_device_ids: which of the machine's devices are its own; None is all.
      joining_s: seconds to wait until all have come.
      secret: at least 16 characters, the same in all processes; None takes the
        environment variable ``JAXANON_SECRET``.

    Raises:
      ValueError: for a number out of its range, an address without a port, or a secret
        that is missing or too short.
      OSError: if this is the first process and cannot listen at ``coordinator``.
      ConnectionError: if the others did not come, the first cannot be reached, or it
        refuses this process.
    """
    check_numbers(num_processes, process_id)
    first_one = "coordinator", " of the first process"
    host, port = checks.host_and_port(coordinator, *first_one)
    known = _secret(secret)
    given = f"process {process_id} of {num_processes} waited {joining_s} s at"
    try:
        if process_id == 0:
            _meet_all(host, port, num_processes, known, joining_s)
        else:
            _meet_first(host, port, num_processes, process_id, known, joining_s)
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            local_device_ids=local_device_ids,
            initialization_timeout=joining_s,
            heartbeat_timeout_seconds=HEARTBEAT_S,
            shutdown_timeout_seconds=ENDING_S,
            coordinator_bind_address=coordinator,
        )
        # What they talk by later waits for nobody who still loads data.
        multihost_utils.sync_global_devices("joined")
    except (jax.errors.JaxRuntimeError, TimeoutError) as error:
        raise ConnectionError(
            f"{given} {coordinator} and not all came; start every one with the same "
            "coordinator and num_processes and a process_id of its own, and let the "
            f"first's port be reached. {checks.first_line(error)[:200]}"
        ) from error


def check_numbers(num_processes: int, process_id: int) -> None:
    """Raises ValueError unless there are several, and this is one of them.

    Example:
      >>> check_numbers(2, 1)
    """
    if num_processes < 2:
        raise ValueError(f"num_processes must be >= 2, got {num_processes!r}.")
    if not 0 <= process_id < num_processes:
        raise ValueError(
            f"process_id must be at least 0 and below num_processes={num_processes}, "
            f"got {process_id!r}."
        )


def _secret(secret):
    secret = os.environ.get(SECRET) if secret is None else secret
    if secret is None or len(secret) < LEAST_SECRET:
        raise ValueError(
            f"secret must have at least {LEAST_SECRET} characters, got "
            f"{0 if secret is None else len(secret)}; set {SECRET} to the same random "
            "text for all processes."
        )
    return secret.encode()


def _meet_all(host, port, num_processes, secret, joining_s):
    """Waits at the address for the others, each under a number of its own.

    JAX would abort the process where they do not come in time.
    """
    end, here = time.monotonic() + joining_s, {}
    with contextlib.ExitStack() as guests:
        door = guests.enter_context(_door(host, port, num_processes))
        while len(here) < num_processes - 1:
            door.settimeout(max(0.01, end - time.monotonic()))
            try:
                guest = guests.enter_context(door.accept()[0])
            except TimeoutError as error:
                raise TimeoutError(f"There came {sorted(here)}.") from error
            with contextlib.suppress(OSError):  # Whoever else it may be.
                word, index, seal = _greeted(guest, num_processes, secret)
                if word == b"come" and index in here and not _left(here[index][0]):
                    word = b"same"
                if word == b"come":
                    here[index] = guest, seal
                else:
                    guest.sendall(word + seal(word))
                    guest.close()
        for guest, seal in here.values():
            with contextlib.suppress(OSError):
                guest.sendall(b"come" + seal(b"come"))


def _door(host, port, num_processes):
    """A socket that listens at one address, of the names that the host has."""
    # A launcher of this machine holds the port, for nobody else to take it meanwhile.
    reserved = os.environ.get(RESERVED) == str(port)
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        how = {"backlog": num_processes, "reuse_port": reserved}
        return socket.create_server(address[:2], family=family, **how)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(
                f"port {port} is in use on this machine; name another one, the same to "
                "all processes."
            ) from error
        raise OSError(
            f"coordinator must be an address of process 0's machine, got {host}:{port} "
            f"({error}); name one, the same to all processes."
        ) from error


def _greeted(guest, num_processes, secret):
    """What a guest is told, its number, and ``seal(word)``, which proves who tells."""
    end = time.monotonic() + GREETING_S
    challenge = os.urandom(_NONCE)
    guest.sendall(_HELLO + challenge)
    claim = _read(guest, _CLAIM.size, end)
    count, index, _ = _CLAIM.unpack(claim)
    proof = _read(guest, _PROOF, end)
    seal = lambda word: _proof(secret, word, challenge, claim)
    if not hmac.compare_digest(proof, seal(b"join")):
        # To a stranger no proof: it would be the one who asks another time.
        return b"auth", None, lambda word: bytes(_PROOF)
    if count != num_processes:
        return b"many", None, seal
    return (b"come" if 0 < index < num_processes else b"none"), index, seal


def _proof(secret, word, challenge, claim):
    return hmac.digest(secret, b"jaxanon " + word + challenge + claim, "sha256")


def _read(end_point, size, end):
    """So many bytes until a time, or OSError."""
    data = b""
    while len(data) < size:
        end_point.settimeout(max(0.01, end - time.monotonic()))
        part = end_point.recv(size - len(data))
        if not part:
            raise ConnectionError("the other end has left.")
        data += part
    return data


def _left(guest):
    guest.setblocking(False)
    try:
        return not guest.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _meet_first(host, port, num_processes, process_id, secret, joining_s):
    """Tells the first process that this one is here, and waits for the rest."""
    end = time.monotonic() + joining_s
    claim = _CLAIM.pack(num_processes, process_id, os.urandom(_NONCE))
    while time.monotonic() < end:
        word = b""
        try:
            with socket.create_connection((host, port), timeout=1.0) as door:
                hello = _read(door, len(_HELLO), time.monotonic() + GREETING_S)
                if hello != _HELLO:  # JAX's coordinator, of processes that have met.
                    raise ConnectionError("another service listens.")
                challenge = _read(door, _NONCE, time.monotonic() + GREETING_S)
                door.sendall(claim + _proof(secret, b"join", challenge, claim))
                word = _read(door, 4, end)
                proof = _read(door, _PROOF, end)
        except OSError:
            pass
        else:
            same = hmac.compare_digest(proof, _proof(secret, word, challenge, claim))
            if same and word == b"come":
                return
            if not same or word in _REFUSALS:
                why = _REFUSALS[word if same else b"auth"]
                raise ConnectionError(
                    f"process {process_id} of {num_processes} was refused at "
                    f"{host}:{port}: {why}"
                )
        time.sleep(0.1)
    raise TimeoutError("The first was not there, or waits for others.")


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
    sha = hashlib.sha256()
    for name in ("jaxanon", *(f"jaxanon.{room}" for room in _APART)):
        for here in importlib.import_module(name).__path__:
            for path in sorted(pathlib.Path(here).rglob("*.py")):
                sha.update(f"{name}/{path.relative_to(here)}".encode())
                sha.update(path.read_bytes())
    return sha.hexdigest()


def check_alike(config: dict) -> None:
    """Refuses processes that would train different runs.

    Args:
      config: of ``run_folder.describe``, each process' own.

    Raises:
      ValueError: in all processes, if two of them differ; it says in what, and names
        those that are unlike the first.
    """
    if not several():
        return
    versions = {
        "jaxanon's code": [__version__, code()],
        "the version of JAX": [jax.__version__, jax.lib.__version__],
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
        if not several() or str(error).startswith(OWN):
            raise
        raise ProcessLost(
            f"another process of {jax.process_count()} was lost {where}. Start all of "
            "them again with resume=True (--resume). JAX: "
            f"{checks.first_line(error)[:200]}"
        ) from error


@contextlib.contextmanager
def leaving_on_errors():
    """Ends this process by an error, if it is one of several, before it leaves here.

    Ctrl-C is one. JAX would wait for the others on the way out, and abort.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if not several():
            raise
        text = " ".join(str(error).split()) or type(error).__name__
        code = LOST if isinstance(error, ProcessLost) else 2
        if isinstance(error, KeyboardInterrupt):
            text, code = "interrupted; the same commands with --resume go on.", 130
        print(f"jaxanon: error: {text}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        if first():
            time.sleep(PARTING_S)  # Its end is that of the others.
        os._exit(code)


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
            "num_devices must be given (--num-devices) if processes share GPUs of a "
            "machine."
        )
    # Held to the end, so that no other program gets the port: process 0 shares it.
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        return _launched(words, num_processes, devices, reserved.getsockname()[1])


def _launched(words, num_processes, devices, port):
    known = os.environ.get(SECRET) or secrets.token_hex(32)
    told = {SECRET: known, RESERVED: str(port)}
    command = [sys.executable, "-P", "-c", MAIN, *words]
    command += ["--coordinator-address", f"127.0.0.1:{port}", "--process-id"]

    def start(index):
        env = os.environ | told
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
                end = time.monotonic() + HEARTBEAT_S
                for other in left.values():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        other.wait(timeout=max(0.0, end - time.monotonic()))
                if status < 0 or status == LOST:
                    print(
                        f"process {index} of {len(started)} was lost, and all are "
                        "ended; go on by the same command with --resume.",
                        file=sys.stderr,
                    )
                return status if status > 0 else 128 - status
    return 0
