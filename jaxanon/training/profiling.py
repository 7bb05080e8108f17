"""Costs of training: compile time, time per round, memory, and a profiler trace."""

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

COMPILING = "/jax/core/compile/"  # Prefix of JAX's compilation events.

TRACED = 1  # Index of the traced call; the first call compiles.


class Call(NamedTuple):
    """A call of the training program."""

    rounds: int
    duration_s: float
    last_round: int


class ProfileTimer:
    """Times of a training program's calls, collected as JAX reports them."""

    def __init__(self, folder):
        """Sets the folder for traces; raises NotADirectoryError if it is a file."""
        self.folder = pathlib.Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(
                f"profile must be a folder, got the file {folder}."
            )
        self.compile_s = 0.0
        self.calls: list[Call] = []

    def on_event(self, event: str, duration_secs: float, **_: Any) -> None:
        """Adds the duration of a JAX event if it belongs to compilation."""
        if event.startswith(COMPILING):
            self.compile_s += duration_secs

    def tracing(self):
        """Returns a context for a call, which traces the second call."""
        if len(self.calls) != TRACED:
            return contextlib.nullcontext()
        self.folder.mkdir(parents=True, exist_ok=True)
        options = jax.profiler.ProfileOptions()
        # Python's events would hide those of the compiled programs.
        options.python_tracer_level = 0
        return jax.profiler.trace(
            str(self.folder), create_perfetto_trace=True, profiler_options=options
        )

    def record_call(self, rounds: int, duration_s: float, last_round: int) -> None:
        """Records a call after all its work has finished."""
        self.calls.append(Call(rounds, duration_s, last_round))

    def costs(self) -> dict:
        """Returns the content of ``costs.json``; requires at least one call.

        The time per round is the median over the calls after the first (compiled) and
        the second (traced) one. With two calls it is that of the second, with one None.
        Memory is the peak of the first device for this process, or of the process if
        the device, such as a CPU, does not report it.
        """
        device = jax.devices()[0]
        memory = device.memory_stats() or {}
        of_process = "peak_bytes_in_use" not in memory
        later = self.calls[TRACED + 1 :] or self.calls[TRACED:]
        each = [call.duration_s / call.rounds for call in later]
        first = self.calls[0]
        return {
            "compile_s": self.compile_s,
            "round_s": statistics.median(each) if each else None,
            "first_round": first.last_round - first.rounds + 1,
            "last_round": self.calls[-1].last_round,
            "memory_bytes": peak_rss() if of_process else memory["peak_bytes_in_use"],
            "memory_of": "process" if of_process else "device",
            "device": device.device_kind,
            "trace": str(self.folder) if later else None,
        }

    def write(self, run_folder=None) -> None:
        """Writes ``costs.json`` to the trace folder and to ``run_folder``, if any.

        Existing files stay if there was no call, because the run was already finished.
        """
        if not self.calls:
            return
        text = json.dumps(self.costs(), indent=1) + "\n"
        for folder in filter(None, (self.folder, run_folder)):
            writing.write(pathlib.Path(folder) / FILE, text)


@contextlib.contextmanager
def listen(watch: ProfileTimer | None) -> Iterator[None]:
    """Adds JAX's compilation times to ``watch`` within the context, unless None."""
    if watch is None:
        yield
        return
    jax.monitoring.register_event_duration_secs_listener(watch.on_event)
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(watch.on_event)


def read(folder: str | os.PathLike | None) -> dict | None:
    """Reads ``costs.json`` of a run.

    Returns None if the run was not profiled. Returns None with a warning if the file is
    damaged, so that a report can be written without it.
    """
    path = None if folder is None else pathlib.Path(folder) / FILE
    if path is None or not path.is_file():
        return None
    try:
        costs = json.loads(path.read_text())
    except (RecursionError, ValueError):
        costs = None
    if not isinstance(costs, dict) or not KEYS <= costs.keys():
        warnings.warn(
            f"{path} is damaged; the report omits the costs of training.", stacklevel=2
        )
        return None
    return costs


def peak_rss() -> int | None:
    """Returns the peak memory of this process in bytes; None if unavailable."""
    try:
        import resource
    except ImportError:  # Unix only.
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
