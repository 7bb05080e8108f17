"""What training costs: time to compile, time of a round, memory; a trace to look at."""

import contextlib
import json
import os
import pathlib
import statistics
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax

from jaxanon.datasets import writing

FILE = "costs.json"

KEYS = {
    *("compile_s", "round_s", "first_round", "last_round"),
    *("memory_bytes", "memory_of", "device", "trace"),
}

COMPILING = "/jax/core/compile/"  # What JAX calls the times that compiling takes.

TRACED = 1  # The second call: the first compiles.


class Call(NamedTuple):
    """Of a training program."""

    rounds: int
    seconds: float
    last_round: int


class ProfileTimer:
    """Of calls of a training program. A class, since JAX tells times as they pass."""

    def __init__(self, folder):
        """Of a folder for traces; NotADirectoryError if it is something else."""
        self.folder = pathlib.Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(f"profile must be a folder, {folder} is a file.")
        self.compile_s = 0.0
        self.calls: list[Call] = []

    def heard(self, event: str, duration_secs: float, **_: Any) -> None:
        """Of JAX: something took so long."""
        if event.startswith(COMPILING):
            self.compile_s += duration_secs

    def tracing(self):
        """A context for a call, the second of which is traced."""
        if len(self.calls) != TRACED:
            return contextlib.nullcontext()
        self.folder.mkdir(parents=True, exist_ok=True)
        options = jax.profiler.ProfileOptions()
        # Programs' own times; Python's would hide them.
        options.python_tracer_level = 0
        return jax.profiler.trace(
            str(self.folder), create_perfetto_trace=True, profiler_options=options
        )

    def called(self, rounds: int, seconds: float, last_round: int) -> None:
        """Tells of a call that ended, all of whose work is done."""
        self.calls.append(Call(rounds, seconds, last_round))

    def costs(self) -> dict:
        """What ``costs.json`` says of calls, one at least.

        A round's time is the median over calls after those that compiled and that were
        traced; of the traced one where there is no other, None where there was one call
        alone. Memory is the most that the first device ever held for this process, or,
        where devices do not tell, as CPUs do not, the process.
        """
        device = jax.devices()[0]
        told = device.memory_stats() or {}
        of_process = "peak_bytes_in_use" not in told
        later = self.calls[TRACED + 1 :] or self.calls[TRACED:]
        each = [call.seconds / call.rounds for call in later]
        first = self.calls[0]
        return {
            "compile_s": self.compile_s,
            "round_s": statistics.median(each) if each else None,
            "first_round": first.last_round - first.rounds + 1,
            "last_round": self.calls[-1].last_round,
            "memory_bytes": peak_rss() if of_process else told["peak_bytes_in_use"],
            "memory_of": "process" if of_process else "device",
            "device": device.device_kind,
            "trace": str(self.folder) if later else None,
        }

    def write(self, run_folder=None) -> None:
        """Writes ``costs.json`` beside the trace, and to ``run_folder``, if any.

        Where nothing was called, for all was trained, what is there stays.
        """
        if not self.calls:
            return
        text = json.dumps(self.costs(), indent=1) + "\n"
        for place in filter(None, (self.folder, run_folder)):
            writing.write(pathlib.Path(place) / FILE, text)


@contextlib.contextmanager
def listening(watch: ProfileTimer | None) -> Iterator[None]:
    """While it lasts, a watch hears how long JAX compiles; None hears nothing."""
    if watch is None:
        yield
        return
    jax.monitoring.register_event_duration_secs_listener(watch.heard)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(watch.heard)


def read(folder: str | os.PathLike | None) -> dict | None:
    """What ``costs.json`` of a run says.

    None where nobody watched, and, with a warning, where it is damaged: no report need
    fail for it.
    """
    path = None if folder is None else pathlib.Path(folder) / FILE
    if path is None or not path.is_file():
        return None
    try:
        told = json.loads(path.read_text())
    except (RecursionError, ValueError):
        told = None
    if not isinstance(told, dict) or not KEYS <= told.keys():
        warnings.warn(
            f"{path} is damaged; what training cost is left out.", stacklevel=2
        )
        return None
    return told


def peak_rss() -> int | None:
    """Bytes that this process ever held at most; None where Python cannot tell."""
    try:
        import resource
    except ImportError:  # Of Unix alone.
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
