"""A run's anonymizer on batches of windows of fixed size."""

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxanon.core.programs import single
from jaxanon.edge.budget import Budget
from jaxanon.kernels.checks import typed_key

LARGE, SMALL = 1024, 64  # Windows per call, for long and for short recordings.


class BatchedModel:
    """Anonymizes any number of windows by programs of one batch size each.

    The last batch is padded, so at most two programs are compiled. Batches are
    numbered, and each draws its own noise.

    Args:
      run: ``Run`` of an anonymizer.
      key: typed PRNG key.
      budget: ``Budget`` to charge for every window, or None.
      compiling: callback ``compiling(seconds)``; called with None before a program is
        compiled, and with the duration afterwards.
    """

    def __init__(
        self,
        run,
        key,
        budget: Budget | None = None,
        compiling: Callable[[float | None], None] | None = None,
    ):
        if run.method.anonymize is None:
            raise TypeError(
                f"{run.method.name} cannot anonymize recordings; train a method of "
                "jaxanon.methods."
            )
        if run.spec.tokens:
            raise ValueError(
                f"recordings must be measurements, got a run on {run.spec.name}, whose "
                "numbers stand for events; anonymize its windows (run.anonymize)."
            )
        typed_key(key)
        self._run, self._key, self._budget = run, key, budget
        self._compiling = compiling or (lambda seconds: None)
        self._number = 0
        self._programs: dict[int, Callable] = {}
        self.compile_s = 0.0
        self.not_finite = 0  # Windows without a finite result.

    @single
    def __call__(self, windows: np.ndarray) -> np.ndarray:
        """Returns anonymized ``float32[N, time, channels]``; windows may be NaN."""
        release = self._run.method.release
        epsilon: Any = None if release is None else release.epsilon
        if self._budget is not None:
            self._budget.check(epsilon, len(windows))  # Before the computation.
        parts = []
        first = 0
        while first < len(windows):
            size = self._size(len(windows) - first)
            batch = windows[first : first + size]
            if len(batch) < size:
                padding = [(0, size - len(batch)), (0, 0), (0, 0)]
                batch = np.pad(batch, padding)
            key = jax.random.fold_in(self._key, self._number)
            # Not fetched yet, so that the next batch is prepared meanwhile.
            parts.append(self._program(size)(key, self._run.state, batch))
            first, self._number = first + size, self._number + 1
        if not parts:
            return windows
        safe = np.concatenate([np.asarray(part) for part in parts])[: len(windows)]
        self.not_finite += int((~np.isfinite(safe).all(axis=(1, 2))).sum())
        if self._budget is not None:
            self._budget.charge(epsilon, len(windows))
        return safe

    def _size(self, left):
        """Returns the size of the next batch."""
        if left >= LARGE or (LARGE in self._programs and SMALL not in self._programs):
            return LARGE
        return SMALL

    def _program(self, size):
        if size not in self._programs:
            spec = self._run.spec
            self._compiling(None)
            began = time.perf_counter()
            shape = (size, spec.time, len(spec.channels))
            windows = jax.ShapeDtypeStruct(shape, np.float32)
            lowered = jax.jit(self._run.method.anonymize).lower(
                self._key, self._run.state, windows
            )
            self._programs[size] = lowered.compile()
            seconds = time.perf_counter() - began
            self.compile_s += seconds
            self._compiling(seconds)
        return self._programs[size]
