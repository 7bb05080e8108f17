"""Training of one run by several processes, on one or several machines."""

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

HEARTBEAT_S = 30  # A process is lost after this time without a heartbeat.

JOINING_S = 300  # Time limit for all processes to join.

ENDING_S = 86_400  # Time limit for a process that continues after training.

PARTING_S = 2.0  # Delay of process 0 after an error, so that others print theirs.

LOST = 3  # Exit status of a process that lost another.

# Prefixes of JAX's errors that are not caused by another process.
LOCAL_ERRORS = ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "UNIMPLEMENTED")

_SUBPACKAGES = "federated", "kernels", "datasets", "recordings"  # Separate folders.

_MAX_ERROR = 4096  # Bytes of an error message that process 0 broadcasts.

SECRET = "JAXANON_SECRET"  # Environment variable of the shared secret.

MIN_SECRET = 16  # Characters.

RESERVED = "JAXANON_RESERVED_PORT"  # Environment variable, set only by ``launch``.

GREETING_S = 1.0  # Time limit of a connecting process to identify itself.

_NONCE, _PROOF = 32, 32  # Bytes.

_HELLO = b"jaxanon "

_CLAIM = struct.Struct(f"!QQ{_NONCE}s")  # num_processes, process_id, nonce

_REFUSALS = {
    b"auth": f"secret must equal that of process 0; set the same {SECRET} for all.",
    b"many": "num_processes must equal that of process 0.",
    b"none": "process_id must be at least 1 and below num_processes.",
    b"same": "process_id is taken; give each process its own.",
}


class ProcessLost(ConnectionError):
    """Raised if the processes of a run can no longer reach each other."""


class Stopped(ValueError):
    """Raised if another process of the run raised an error."""


def join(
    coordinator: str,
    num_processes: int,
    process_id: int,
    local_device_ids=None,
    joining_s: int = JOINING_S,
    secret: str | None = None,
) -> None:
    """Joins this process to a distributed run; call before any other use of JAX.

    Process 0 listens only at ``coordinator`` and admits processes that know the secret.
    Then JAX's coordination service takes the same address. That service and all later
    messages are neither authenticated nor encrypted, so all machines must be in a
    trusted network.

    Args:
      coordinator: ``"host:port"`` at which process 0 listens.
      num_processes: number of processes, at least 2.
      process_id: index of this process, from 0.
      local_device_ids: indices of this process' devices on its machine; None is all.
      joining_s: seconds to wait for all processes.
      secret: shared secret of at least 16 characters; None takes the environment
        variable ``JAXANON_SECRET``.

    Raises:
      ValueError: if a number is out of range, the address lacks a port, or the secret
        is missing or too short.
      OSError: if process 0 cannot listen at ``coordinator``.
      ConnectionError: if processes are missing, or process 0 is unreachable or rejects
        this process.
    """
    check_numbers(num_processes, process_id)
    host, port = checks.host_and_port(coordinator, "coordinator", " of process 0")
    shared_secret = _secret(secret)
    try:
        if process_id == 0:
            _meet_all(host, port, num_processes, shared_secret, joining_s)
        else:
            _meet_first(host, port, num_processes, process_id, shared_secret, joining_s)
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
        # Connect now: later collectives time out if a process still loads data.
        multihost_utils.sync_global_devices("joined")
    except (jax.errors.JaxRuntimeError, TimeoutError) as error:
        raise ConnectionError(
            f"all {num_processes} processes must join within {joining_s} s, but "
            f"process {process_id} waited in vain at {coordinator}. Start each with "
            "the same coordinator and num_processes and its own process_id, and open "
            f"the port of process 0. {checks.first_line(error)[:200]}"
        ) from error


def check_numbers(num_processes: int, process_id: int) -> None:
    """Raises ValueError unless there are several processes and this is one of them.

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
    if secret is None or len(secret) < MIN_SECRET:
        raise ValueError(
            f"secret must have at least {MIN_SECRET} characters, got "
            f"{0 if secret is None else len(secret)}; set {SECRET} to the same random "
            "text for all processes."
        )
    return secret.encode()


def _meet_all(host, port, num_processes, secret, joining_s):
    """Waits as process 0 until all other processes have connected.

    JAX itself would abort the process on a timeout.
    """
    end, joined = time.monotonic() + joining_s, {}
    with contextlib.ExitStack() as connections:
        server = connections.enter_context(_listen(host, port, num_processes))
        while len(joined) < num_processes - 1:
            server.settimeout(max(0.01, end - time.monotonic()))
            try:
                peer = connections.enter_context(server.accept()[0])
            except TimeoutError as error:
                raise TimeoutError(f"Joined: {sorted(joined)}.") from error
            with contextlib.suppress(OSError):  # The peer may be any program.
                word, index, sign = _identify(peer, num_processes, secret)
                taken = index in joined and not _disconnected(joined[index][0])
                if word == b"come" and taken:
                    word = b"same"
                if word == b"come":
                    joined[index] = peer, sign
                else:
                    peer.sendall(word + sign(word))
                    peer.close()
        for peer, sign in joined.values():
            with contextlib.suppress(OSError):
                peer.sendall(b"come" + sign(b"come"))


def _listen(host, port, num_processes):
    """Returns a socket that listens at one address of a host name."""
    # ``launch`` holds the port on this machine to reserve it.
    reserved = os.environ.get(RESERVED) == str(port)
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        options = {"backlog": num_processes, "reuse_port": reserved}
        return socket.create_server(address[:2], family=family, **options)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(
                f"port {port} is in use on this machine; choose another port, the same "
                "for all processes."
            ) from error
        raise OSError(
            f"coordinator must be an address of process 0's machine, got {host}:{port} "
            f"({error}); choose one, the same for all processes."
        ) from error


def _identify(peer, num_processes, secret):
    """Returns the reply to a peer, its index, and ``sign(word)`` for the reply."""
    end = time.monotonic() + GREETING_S
    challenge = os.urandom(_NONCE)
    peer.sendall(_HELLO + challenge)
    claim = _read(peer, _CLAIM.size, end)
    count, index, _ = _CLAIM.unpack(claim)
    proof = _read(peer, _PROOF, end)
    sign = lambda word: _proof(secret, word, challenge, claim)
    if not hmac.compare_digest(proof, sign(b"join")):
        # Do not sign replies to unknown peers, which could reuse the signature.
        return b"auth", None, lambda word: bytes(_PROOF)
    if count != num_processes:
        return b"many", None, sign
    return (b"come" if 0 < index < num_processes else b"none"), index, sign


def _proof(secret, word, challenge, claim):
    return hmac.digest(secret, b"jaxanon " + word + challenge + claim, "sha256")


def _read(connection, size, end):
    """Reads ``size`` bytes; raises OSError if they do not arrive before ``end``."""
    data = b""
    while len(data) < size:
        connection.settimeout(max(0.01, end - time.monotonic()))
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the peer closed the connection.")
        data += part
    return data


def _disconnected(peer):
    peer.setblocking(False)
    try:
        return not peer.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _meet_first(host, port, num_processes, process_id, secret, joining_s):
    """Connects to process 0 and waits until all processes have joined."""
    end = time.monotonic() + joining_s
    claim = _CLAIM.pack(num_processes, process_id, os.urandom(_NONCE))
    while time.monotonic() < end:
        word = b""
        try:
            with socket.create_connection((host, port), timeout=1.0) as server:
                hello = _read(server, len(_HELLO), time.monotonic() + GREETING_S)
                if hello != _HELLO:  # JAX's coordinator of an earlier start.
                    raise ConnectionError("another service listens.")
                challenge = _read(server, _NONCE, time.monotonic() + GREETING_S)
                server.sendall(claim + _proof(secret, b"join", challenge, claim))
                word = _read(server, 4, end)
                proof = _read(server, _PROOF, end)
        except OSError:
            pass
        else:
            expected = _proof(secret, word, challenge, claim)
            authentic = hmac.compare_digest(proof, expected)
            if authentic and word == b"come":
                return
            if not authentic or word in _REFUSALS:
                reason = _REFUSALS[word if authentic else b"auth"]
                raise ConnectionError(
                    f"process {process_id} of {num_processes} was rejected at "
                    f"{host}:{port}: {reason}"
                )
        time.sleep(0.1)
    raise TimeoutError("Process 0 did not respond, or waits for other processes.")


def first() -> bool:
    """Returns whether this process writes the run's folder (process 0)."""
    return jax.process_index() == 0


def several() -> bool:
    """Returns whether several processes train together."""
    return jax.process_count() > 1


def run_on_first(fn):
    """Calls ``fn()`` in process 0 and returns its result; other processes return None.

    Raises:
      Stopped: in the other processes, if ``fn`` raised in process 0.
    """
    if not several():
        return fn()
    result, error = None, None
    if first():
        try:
            result = fn()
        # Broadcast any error: the other processes would wait forever.
        except Exception as raised:
            error = raised
    message = np.zeros(_MAX_ERROR, np.uint8)
    if error is not None:
        text = f"{type(error).__name__}: {error}".encode()[:_MAX_ERROR]
        message[: len(text)] = np.frombuffer(text, np.uint8)
    message = np.asarray(multihost_utils.broadcast_one_to_all(message))
    if error is not None:
        raise error
    if message.any():
        text = message.tobytes().rstrip(b"\0").decode(errors="replace")
        raise Stopped(f"process 0 stopped, so all processes stop: {text}")
    return result


def broadcast_from_first(tree):
    """Returns process 0's values of a tree of arrays, in every process."""
    if not several():
        return tree
    return jax.tree.map(jax.numpy.asarray, multihost_utils.broadcast_one_to_all(tree))


def code() -> str:
    """Returns a digest of the library's source code."""
    sha = hashlib.sha256()
    for name in ("jaxanon", *(f"jaxanon.{package}" for package in _SUBPACKAGES)):
        for root in importlib.import_module(name).__path__:
            for path in sorted(pathlib.Path(root).rglob("*.py")):
                sha.update(f"{name}/{path.relative_to(root)}".encode())
                sha.update(path.read_bytes())
    return sha.hexdigest()


def check_alike(config: dict) -> None:
    """Checks that all processes would train the same run.

    Args:
      config: this process' result of ``run_folder.describe``.

    Raises:
      ValueError: in all processes, if any two differ. The message names the differences
        and the processes that differ from process 0.
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
    compared = versions | parts
    digests = [
        np.frombuffer(hashlib.sha256(json.dumps(part).encode()).digest()[:8], np.uint8)
        for part in compared.values()
    ]
    gathered = np.asarray(multihost_utils.process_allgather(np.stack(digests)))
    differs = (gathered != gathered[:1]).any(axis=2)  # [processes, parts]
    if differs.any():
        bad = differs.any(axis=0)
        names = [name for name, one in zip(compared, bad, strict=True) if one]
        indices = np.flatnonzero(differs.any(axis=1)).tolist()
        raise ValueError(
            f"all processes must train the same run, but processes {indices} differ "
            f"from process 0 in {', '.join(names)}; start all with the same command, "
            "data and installation. Nothing was trained."
        )


@contextlib.contextmanager
def raise_on_lost_process(where: str):
    """Converts JAX's network errors to ``ProcessLost`` with a remedy.

    Args:
      where: phrase about the point in training and the last checkpoint.

    Raises:
      ProcessLost: if JAX raises an error of the network.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if not several() or str(error).startswith(LOCAL_ERRORS):
            raise
        raise ProcessLost(
            f"another of the {jax.process_count()} processes was lost {where}. "
            "Restart all processes with resume=True (--resume). JAX: "
            f"{checks.first_line(error)[:200]}"
        ) from error


@contextlib.contextmanager
def exit_on_error():
    """Exits on an error or Ctrl-C, if there are several processes.

    Skips JAX's shutdown, which would wait for the other processes and abort.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if not several():
            raise
        text = " ".join(str(error).split()) or type(error).__name__
        code = LOST if isinstance(error, ProcessLost) else 2
        if isinstance(error, KeyboardInterrupt):
            text, code = (
                "interrupted; continue with the same commands and --resume.",
                130,
            )
        print(f"jaxanon: error: {text}", file=sys.stderr, flush=True)
        sys.stdout.flush()
        if first():
            time.sleep(PARTING_S)  # The others end with process 0.
        os._exit(code)


MAIN = "import sys; from jaxanon import cli; sys.exit(cli.main())"


def launch(words: list[str], num_processes: int, devices: int | None = None) -> int:
    """Runs a command as several processes on this machine.

    Each process gets its index and an equal part of the devices. If one fails, the
    others are killed.

    Args:
      words: arguments of the command, after ``jaxanon``.
      num_processes: number of processes, at least 2.
      devices: total number of devices; None gives each process the whole machine, which
        suits CPUs.

    Returns:
      0, or the exit status of the first failure; 128 plus the signal number for a
      signal.

    Raises:
      ValueError: if ``num_processes`` is below 2 or does not divide ``devices``, or
        ``devices`` is missing on a machine with GPUs.
    """
    if num_processes < 2:
        raise ValueError(
            f"num_processes must be >= 2, got {num_processes!r}; omit it for one "
            "process."
        )
    if devices is not None and devices % num_processes:
        raise ValueError(
            f"devices must be a multiple of num_processes={num_processes}, got "
            f"{devices}."
        )
    on_cpu = os.environ.get("JAX_PLATFORMS") == "cpu"
    if devices is None and not on_cpu and pathlib.Path("/dev/nvidia0").exists():
        raise ValueError(
            "num_devices must be given for processes that share a machine's GPUs, got "
            "None; pass --num-devices."
        )
    # Hold the port to the end, so that no other program gets it; process 0 shares it.
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        return _launch(words, num_processes, devices, reserved.getsockname()[1])


def _launch(words, num_processes, devices, port):
    secret = os.environ.get(SECRET) or secrets.token_hex(32)
    variables = {SECRET: secret, RESERVED: str(port)}
    command = [sys.executable, "-P", "-c", MAIN, *words]
    command += ["--coordinator-address", f"127.0.0.1:{port}", "--process-id"]

    def start(index):
        env = os.environ | variables
        if devices is not None:
            count = devices // num_processes
            device_ids = range(index * count, (index + 1) * count)
            env["JAX_LOCAL_DEVICE_IDS"] = ",".join(map(str, device_ids))
        return subprocess.Popen([*command, str(index)], env=env)

    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    started: list[subprocess.Popen] = []
    try:
        started.extend(start(index) for index in range(num_processes))
        return _wait(started)
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
        signal.signal(signal.SIGTERM, before)


def _wait(started):
    """Waits for all processes; returns the first failure's status, or 0.

    After a failure, the others have a heartbeat's time to print their errors.
    """
    running = dict(enumerate(started))
    while running:
        for index, process in list(running.items()):
            try:
                status = process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
            del running[index]
            if status:
                end = time.monotonic() + HEARTBEAT_S
                for other in running.values():
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        other.wait(timeout=max(0.0, end - time.monotonic()))
                if status < 0 or status == LOST:
                    print(
                        f"process {index} of {len(started)} was lost, so all were "
                        "ended; continue with the same command and --resume.",
                        file=sys.stderr,
                    )
                return status if status > 0 else 128 - status
    return 0
