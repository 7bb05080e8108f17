"""Flower's programs as child processes, with private connections to their apps.

Flower starts one process for its ServerApp and one per message for a ClientApp. These
apps only relay calls over a ``multiprocessing`` connection to the process that holds
the method and the data.
"""

import contextlib
import json
import multiprocessing.connection
import os
import pathlib
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable

ADDRESS, KEY = "JAXANON_RELAY", "JAXANON_RELAY_KEY"  # Environment variables.
STOP_S = 10.0  # Time for a program to end after SIGTERM.

# Runs a console script of Flower in this interpreter; ends when its parent does.
_LAUNCH = """
import importlib.metadata, os, signal, sys, threading, time

def watch():
    os.read(0, 1)  # Returns at the end of the parent, which writes nothing.
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)
    os._exit(1)

watched, *sys.argv = sys.argv[1:]
if watched == "watched":
    threading.Thread(target=watch, daemon=True).start()
found = importlib.metadata.entry_points(group="console_scripts", name=sys.argv[0])
next(iter(found)).load()()
"""

# Flower unpacks the server's bundle under FLWR_HOME. Its code must not be executed.
_GUARD = """
import importlib.machinery, os, sys

_home = os.path.realpath(os.environ["FLWR_HOME"]) + os.sep
_code = tuple(importlib.machinery.all_suffixes())

def _refuse_code(event, args):
    if event == "open":
        path, reads = args[0], isinstance(args[1], str) and "r" in args[1]
    elif event == "import":
        path, reads = args[1], True
    else:
        return
    if reads and isinstance(path, (str, bytes)):
        path = os.path.realpath(os.fsdecode(path))
        if path.startswith(_home) and path.endswith(_code):
            raise PermissionError(f"{path} came from the server: its code is not run.")

sys.addaudithook(_refuse_code)
"""


class Programs:
    """Running programs of Flower; ``running`` ends them.

    Attributes:
      folder: private folder for their files.
    """

    def __init__(self, folder: pathlib.Path, *, guarded: bool):
        self.folder, key = folder, secrets.token_bytes(32)
        self._listener = multiprocessing.connection.Listener(authkey=key)
        self._key, self._closed, self._serves, self._started = key, False, False, {}
        commands = folder / "bin"
        commands.mkdir()
        (commands / "launch.py").write_text(_LAUNCH)
        for name in ("flwr-serverapp", "flwr-clientapp"):  # Looked up in PATH.
            words = shlex.join([sys.executable, str(commands / "launch.py"), "-", name])
            (commands / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            (commands / name).chmod(0o700)
        self.env = os.environ | {
            "FLWR_HOME": str(folder / "home"),
            "PATH": os.pathsep.join([str(commands), os.environ.get("PATH", "")]),
            ADDRESS: str(self._listener.address),
            KEY: key.hex(),
        }
        (folder / "home").mkdir()
        self.env.setdefault("FLWR_SUPEREXEC_TASK_POLL_INTERVAL", "0.1")
        if guarded:
            (folder / "guard").mkdir()
            (folder / "guard" / "sitecustomize.py").write_text(_GUARD)
            paths = [str(folder / "guard"), *filter(None, [os.getenv("PYTHONPATH")])]
            self.env["PYTHONPATH"] = os.pathsep.join(paths)
        self.secret = folder / "secret"
        self.secret.write_text(secrets.token_hex(32))

    def _command(self, watched, name, words):
        launch = str(self.folder / "bin" / "launch.py")
        return [sys.executable, launch, watched, name, *map(str, words)]

    def start(self, name: str, *words) -> subprocess.Popen:
        """Starts a long-running program; ``said`` returns the end of its output."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._command("watched", name, words),
                env=self.env,
                stdin=subprocess.PIPE,  # Closes when this process ends.
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._started[name] = process
        return process

    def run(self, name: str, *words) -> dict:
        """Runs a program and returns the JSON that it prints.

        Raises:
          OSError: if it fails.
        """
        command = self._command("-", name, [*words, "--format", "json"])
        done = subprocess.run(command, env=self.env, capture_output=True, check=False)
        try:
            result = json.loads(done.stdout)
        except ValueError:
            result = {}
        if not result.get("success"):
            why = result.get("error-message") or (done.stdout + done.stderr).decode()
            raise OSError(f"{name} {words[0]} failed: {why.strip()[-500:]}")
        return result

    def ended(self) -> str | None:
        """Returns the name of a program that has ended, or None if all are running."""
        over = (name for name, each in self._started.items() if each.poll() is not None)
        return next(over, None)

    def said(self, name: str) -> str:
        """Returns the end of a program's output as one line without colors."""
        text = (self.folder / f"{name}.log").read_text(errors="replace")
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " ".join(lines[-4:])[-500:] or "no output"

    def serve(self, handle: Callable) -> None:
        """Handles connections of apps one after another in a thread."""

        def accept():
            while not self._closed:
                try:
                    connection = self._listener.accept()
                except (OSError, EOFError, multiprocessing.AuthenticationError):
                    continue
                if not self._closed:
                    handle(connection)

        self._serves = True
        threading.Thread(target=accept, daemon=True).start()

    def close(self) -> None:
        """Ends all programs and stops accepting connections."""
        self._closed = True
        self.stop()

        def wake():  # Unblocks the thread that waits for a connection.
            with contextlib.suppress(Exception):
                address = self._listener.address
                multiprocessing.connection.Client(address, authkey=self._key).close()

        waker = threading.Thread(target=wake, daemon=True)
        waker.start()
        waker.join(0.5 if self._serves else 0.0)
        self._listener.close()

    def stop(self) -> None:
        """Ends all programs, in reverse order of their start."""
        started = [*reversed(self._started.values())]
        self._started.clear()
        for process in started:
            process.send_signal(getattr(signal, "SIGCONT", signal.SIGTERM))
            process.terminate()
        for process in started:
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdin.close()


@contextlib.contextmanager
def running(*, guarded: bool = False):
    """Yields ``Programs`` in a temporary folder and ends them afterwards.

    Args:
      guarded: whether to block code that a server sent.
    """
    with tempfile.TemporaryDirectory(
        prefix="jaxanon-", ignore_cleanup_errors=True
    ) as folder:
        programs = Programs(pathlib.Path(folder).resolve(), guarded=guarded)
        with contextlib.closing(programs):
            yield programs


def relay():
    """Connects an app to the process that started Flower's programs."""
    address, key = os.environ[ADDRESS], bytes.fromhex(os.environ[KEY])
    return multiprocessing.connection.Client(address, authkey=key)


def free_port() -> int:
    """Returns a port of the loopback interface that is currently free."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
