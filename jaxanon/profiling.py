"""What training costs: time to compile, time of a round, memory; a trace to look at."""

import contextlib
import json
import os
import pathlib
import statistics
import sys
from collections.abc import Iterator
from typing import Any

import jax

from jaxanon.checkpoint import write_atomically

FILE = "costs.json"
COMPILING = "/jax/core/compile/"  # What JAX calls the times that compiling takes.


class Watch:
    """Of calls of a training program. A class, since JAX tells times as they pass."""

    def __init__(self, folder):
        self.folder = folder
        self.compile_s = 0.0
        self.calls: list[tuple[int, float]] = []  # Rounds and seconds.

    def heard(self, event: str, duration_secs: float, **_: Any) -> None:
        """Of JAX: something took so long."""
        if event.startswith(COMPILING):
            self.compile_s += duration_secs

    def tracing(self):
        """A context for a call: the second is traced, the first of what is compiled."""
        if len(self.calls) != 1:
            return contextlib.nullcontext()
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = (
            0  # Programs' own times; Python's would hide them.
        )
        return jax.profiler.trace(
            str(self.folder), create_perfetto_trace=True, profiler_options=options
        )

    def called(self, rounds: int, seconds: float) -> None:
        """Tells of a call that ended, all of whose work is done."""
        self.calls.append((rounds, seconds))

    def costs(self) -> dict:
        """What ``costs.json`` says.

        A round's time is the median over calls after the first, which compiles; None
        where there was no second. Memory is the most that the first device ever held
        for this process, or, where devices do not tell, as CPUs do not, the process.
        """
        device = jax.devices()[0]
        told = device.memory_stats() or {}
        of_process = "peak_bytes_in_use" not in told
        later = [seconds / rounds for rounds, seconds in self.calls[1:]]
        return {
            "compile_s": self.compile_s,
            "round_s": statistics.median(later) if later else None,
            "rounds": sum(rounds for rounds, _ in self.calls),
            "memory_bytes": peak_rss() if of_process else told["peak_bytes_in_use"],
            "memory_of": "process" if of_process else "device",
            "device": device.device_kind,
            "trace": str(self.folder) if later else None,
        }


@contextlib.contextmanager
def watched(folder, run_folder=None) -> Iterator[Watch | None]:
    """Watches calls of a training program, and writes what they cost.

    Args:
      folder: for the profiler's trace of one call; None watches nothing.
      run_folder: of the run, which ``costs.json`` is written to, too; None for a run
        that is not kept.

    Yields:
      ``Watch``, or None.
    """
    if folder is None:
        yield None
        return
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    watch = Watch(folder)
    jax.monitoring.register_event_duration_secs_listener(watch.heard)
    try:
        yield watch
    finally:
        jax.monitoring.unregister_event_duration_listener(watch.heard)
    text = json.dumps(watch.costs(), indent=1) + "\n"
    for place in filter(None, (folder, run_folder)):
        write_atomically(pathlib.Path(place) / FILE, text)


def read(folder: str | os.PathLike | None) -> dict | None:
    """What ``costs.json`` of a run says; None where nobody watched.

    Raises:
      ValueError: if it is damaged.
    """
    path = None if folder is None else pathlib.Path(folder) / FILE
    if path is None or not path.is_file():
        return None
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); delete it.") from error


def in_words(costs: dict) -> list[str]:
    """Sentences of what was measured.

    Example:
      >>> in_words({"compile_s": 3.21, "round_s": 0.0125, "rounds": 40, "trace": None,
      ...     "memory_bytes": 512e6, "memory_of": "process", "device": "cpu"})[0]
      'Compiling took 3.2 s, a round 12.5 ms (median; 40 rounds on cpu).'
    """
    rounds = f"{costs['rounds']:,} rounds on {costs['device']}"
    each = "no second call told how long a round takes"
    if costs["round_s"] is not None:
        each = f"a round {1e3 * costs['round_s']:.3g} ms (median; {rounds})"
    told = [f"Compiling took {costs['compile_s']:.1f} s, {each}."]
    if costs["memory_bytes"] is not None:
        memory = f"{costs['memory_bytes'] / 1e6:,.0f} MB"
        told.append(f"The {costs['memory_of']} held {memory} at most.")
    return told


def peak_rss() -> int | None:
    """Bytes that this process ever held at most; None where Python cannot tell."""
    try:
        import resource
    except ImportError:  # Of Unix alone.
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
