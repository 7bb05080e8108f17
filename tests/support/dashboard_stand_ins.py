"""A model, attackers and rows with known results, for tests of the dashboard."""

import contextlib
import queue
import threading
import types

import numpy as np

from jaxanon.edge import dashboard
from jaxanon.edge.types import Block, Signature, Window

SIGNATURE = Signature(20, ("acc x", "acc y"), ("g", "g"), 50.0)


def _read(output, attribute, role, trained_on, *classes):
    return types.SimpleNamespace(
        output=output,
        attribute=attribute,
        role=role,
        trained_on=trained_on,
        classes=classes,
    )


class Model:
    """Model that halves every window, and has a name."""

    signature = SIGNATURE
    metadata = {  # noqa: RUF012
        "method": "blinder",
        "weights": "float32",
        "dataset": {"name": "smartwatch", "public": "exercise", "private": ["side"]},
    }

    def anonymize(self, window):
        return window / 2


class Attackers:
    """Attackers that are sure of raw windows, with std 1, and unsure of halved ones."""

    signature = SIGNATURE
    inferences = (
        _read("public", "exercise", "public", "raw", "curls", "rows", "rest"),
        _read("of raw", "side", "private", "raw", "left", "right"),
        _read("of safe", "side", "private", "anonymized", "left", "right"),
    )

    def __call__(self, window):
        raw = window.std() > 0.7
        return {
            "public": np.float32([0.9, 0.06, 0.04] if raw else [0.8, 0.15, 0.05]),
            "of raw": np.float32([0.97, 0.03] if raw else [1.0, 0.0]),
            "of safe": np.float32([0.51, 0.49]),
        }


class Stream:
    """Stream of windows without overlap; the third is a gap."""

    def __init__(self, model, inspect, **settings):
        self.signature, self.settings = model.signature, settings
        self._model, self._inspect = model, inspect
        self._times, self._samples, self._number = [], [], 0

    def push(self, times, samples):
        self._times += list(times)
        self._samples += list(samples)
        blocks = []
        while len(self._samples) >= SIGNATURE.time:
            raw = np.float32(self._samples[: SIGNATURE.time])
            start = self._times[0]
            del self._times[: SIGNATURE.time], self._samples[: SIGNATURE.time]
            safe = None if self._number == 2 else self._model.anonymize(raw)
            self._number += 1
            self._inspect(Window(start, raw, safe))
            end = start + SIGNATURE.time / SIGNATURE.rate_hz
            gap = "the model was too late" if safe is None else ""
            rows = np.full_like(raw, np.nan) if safe is None else safe
            blocks.append(Block(start, SIGNATURE.rate_hz, rows, gap, end))
        return blocks

    def close(self):
        return []


def rows(count):
    """Yields ``count`` samples of a wave of std 1, seven at a time."""
    times = np.arange(count) / 50
    wave = np.sqrt(2) * np.stack([np.sin(9 * times), np.cos(9 * times)], 1)
    for first in range(0, count, 7):
        yield times[first : first + 7], wave[first : first + 7]


@contextlib.contextmanager
def served(given, model=None, **how):
    """Yields the address of a dashboard in a thread, and its stop event."""
    ready: queue.Queue = queue.Queue()
    stop, failed = threading.Event(), []
    how = {"port": 0, "open_stream": Stream, "attackers": Attackers()} | how

    def run():
        try:
            dashboard.serve(model or Model(), given, ready=ready.put, stop=stop, **how)
        except BaseException as error:
            failed.append(error)
            ready.put(None)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield ready.get(timeout=30), stop
    finally:
        stop.set()
        thread.join(10)
        assert not thread.is_alive()
    if failed:
        raise failed[0]
