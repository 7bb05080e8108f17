"""Runs a measurement in separate processes and records their peak memory."""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
from typing import NamedTuple

import numpy as np

from federated import work

EVERY_S = 2.0  # Reading /proc costs milliseconds of a core.


class Measured(NamedTuple):
    """Output and memory of a process."""

    seconds: float  # median per round
    first_s: float  # first round or block, including compilation
    layers: list
    versions: str
    peak_mib: float  # process and children together


def run(command, out, environment) -> Measured | str:
    """Runs a command that writes ``out``; if it fails, returns its last output."""
    out.unlink(missing_ok=True)
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(
            command,
            stdout=told,
            stderr=told,
            env=environment,
            start_new_session=True,
        )
        peak = Peak(process.pid)
        process.wait()
        found = peak.stop()
        _end(process.pid, peak.seen)
        told.seek(0)
        words = told.read().strip().splitlines()
    if process.returncode or not out.exists():
        return " ".join(words[-1:]) or f"exited with {process.returncode}"
    with np.load(out) as written:
        return Measured(
            float(np.median(written["seconds"])),
            float(written["first_s"]),
            work.layers_of(written),
            str(written["versions"]),
            max(found / 1024, float(written["held_mib"])),
        )


def _end(leader, seen):
    """Terminates processes that a framework leaves behind, such as TFF's workers."""
    for pid in [*seen]:
        status = _read(f"/proc/{pid}/stat")
        # Check the session, since process ids may be reused.
        if status and int(status.rsplit(")", 1)[1].split()[3]) == leader:
            os.kill(pid, signal.SIGKILL)


class Peak:
    """Thread that watches the memory of a process and its children; Linux only, else 0.

    Counts shared pages once (proportional set size), because the processes of some
    frameworks share memory.
    """

    def __init__(self, pid):
        self.pid, self.kib, self.seen = pid, 0.0, set()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def stop(self) -> float:
        """Stops the thread and returns the peak in KiB."""
        self.ended.set()
        self.thread.join()
        return self.kib

    def _watch(self):
        while True:
            family = descendants(self.pid) | self.seen
            self.seen |= family
            self.kib = max(self.kib, sum(map(_pss, family)))
            if self.ended.wait(EVERY_S):
                return


def descendants(pid) -> set[int]:
    """Returns the process and all its descendants."""
    children = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        status = _read(folder / "stat")
        if status:
            parent = int(status.rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
    family, left = set(), [pid]
    while left:
        one = left.pop()
        family.add(one)
        left += children.get(one, [])
    return family


def _pss(pid) -> float:
    found = re.search(r"^Pss:\s+(\d+) kB", _read(f"/proc/{pid}/smaps_rollup"), re.M)
    return float(found[1]) if found else 0.0


def _read(path) -> str:
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""
