"""Mosquitto, a real MQTT broker that tests start and kill, and a stream for it."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
import types

import pytest

PROGRAM = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin")
needed = pytest.mark.skipif(
    PROGRAM is None, reason="mosquitto is not installed (Debian: mosquitto)"
)
SIGNATURE = types.SimpleNamespace(
    channels=("acc x", "acc y"), units=("g", "g"), rate_hz=50.0
)


class Broker:
    """Mosquitto on a local port, which tests kill and restart."""

    def __init__(self, folder, *settings):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.file, self.process = folder / "mosquitto.conf", None
        lines = [f"listener {self.port} 127.0.0.1", "persistence false", *settings]
        if os.geteuid() == 0:
            lines.append("user root")  # Otherwise it may not read this test's files.
        self.file.write_text("\n".join(lines) + "\n")

    def start(self):
        self.process = subprocess.Popen(
            [PROGRAM, "-c", str(self.file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(200):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            time.sleep(0.02)
        raise AssertionError("mosquitto did not start")

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
