"""Runs one measurement as processes of its own, and notes the most memory they held."""

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

EVERY_S = 2.0  # Looking costs milliseconds of a core.


class Measured(NamedTuple):
    """What a process wrote, and what it held."""

    seconds: float  # of a round, the median
    first_s: float  # of the first round or block, with what it compiled
    layers: list
    versions: str
    peak_mib: float  # of the process and its children together


def run(command, out, environment) -> Measured | str:
    """Runs a command that writes ``out``; where it fails, its last words."""
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
        return " ".join(words[-1:]) or f"ended with {process.returncode}"
    with np.load(out) as written:
        return Measured(
            float(np.median(written["seconds"])),
            float(written["first_s"]),
            work.layers_of(written),
            str(written["versions"]),
            max(found / 1024, float(written["held_mib"])),
        )


def _end(leader, seen):
    """Ends what a framework has left behind, such as TFF's workers."""
    for pid in [*seen]:
        status = _read(f"/proc/{pid}/stat")
        # Only what is still of the session that we began; numbers are used again.
        if status and int(status.rsplit(")", 1)[1].split()[3]) == leader:
            os.kill(pid, signal.SIGKILL)


class Peak:
    """Watches a process and its children from a thread; Linux only, else 0.

    Shared pages are counted once (proportional set size), for frameworks whose
    processes share what they load.
    """

    def __init__(self, pid):
        self.pid, self.kib, self.seen = pid, 0.0, set()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def stop(self) -> float:
        """KiB."""
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
    """The process and all that it began, and they."""
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
