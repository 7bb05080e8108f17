"""Release of a window after charging, anonymizing and checking it."""

import collections
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from jaxanon.edge import budget as budgets
from jaxanon.edge.types import Signature

GRACE_S = 0.25  # Time to wait for a call after stopping it.


class Late(TimeoutError):
    """A call exceeded its deadline, or an earlier call still runs."""


class Failed(Exception):
    """A call raised the exception in this one's argument."""


def _work(jobs):
    while (job := jobs.get()) is not None:
        call, argument, answer = job
        try:
            answer.put((call(argument), None))
        except BaseException as error:  # The caller waits for an answer in any case.
            answer.put((None, error))
        job = call = argument = answer = None  # Drops references to the window.


class Watchdog:
    """Calls with a deadline, in a thread.

    Args:
      deadline_s: deadline of each call, in seconds.
      stop: function that ends a late call; None if there is none.

    Example:
      >>> import time
      >>> dog = Watchdog(0.01)
      >>> dog.call(time.sleep, 0.1)
      Traceback (most recent call last):
      ...
      jaxanon.edge.guard.Late: the model took more than 0.01 s
      >>> dog.close()
    """

    def __init__(self, deadline_s: float, stop: Callable[[], Any] | None = None):
        self._deadline_s, self._stop = deadline_s, stop
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._owed: queue.SimpleQueue | None = None

    def call(self, function: Callable, argument: Any) -> Any:
        """Returns ``function(argument)``.

        Raises:
          Late: if it exceeds the deadline. Also if an earlier call still runs; then
            ``function`` is not called.
          Failed: if ``function`` raises, with its exception.
        """
        if self._thread is None or not self._thread.is_alive():
            # On the first call, or after a fork, which does not copy threads.
            self._jobs, self._owed = queue.SimpleQueue(), None
            self._thread = threading.Thread(
                target=_work, args=(self._jobs,), daemon=True, name="jaxanon watchdog"
            )
            self._thread.start()
        if self._owed is not None:
            self._request_stop()
            if self._owed.empty():
                raise Late("the model still hangs")
            self._owed = None
        answer: queue.SimpleQueue = queue.SimpleQueue()
        self._jobs.put((function, argument, answer))
        try:
            result, error = answer.get(timeout=self._deadline_s)
        except queue.Empty:
            self._give_up(answer)
            raise Late(f"the model took more than {self._deadline_s:g} s") from None
        if error is not None:
            raise Failed(error)
        return result

    def _request_stop(self):
        if self._stop is not None:
            self._stop()

    def _give_up(self, answer):
        self._owed = answer
        self._request_stop()
        try:
            answer.get(timeout=GRACE_S if self._stop is not None else 0.001)
            self._owed = None
        except queue.Empty:
            pass

    def close(self) -> None:
        """Ends the thread; a hanging one ends with the process."""
        self._jobs.put(None)
        self._thread = None

    def __del__(self):
        self._jobs.put(None)


class Anonymizer(Protocol):
    """The interface of a stream's model; ``epsilon`` and ``stop()`` are optional."""

    signature: Signature

    def anonymize(self, window: np.ndarray) -> np.ndarray:
        """Maps ``float32[time, channels]`` to the same shape."""
        ...


NO_CLAIM = (
    "budget must be None for a model without epsilon, which charges nothing; leave the "
    "budget out."
)


class Guard:
    """Releases anonymized windows, or the reason why not.

    ``counts`` counts windows by outcome.

    Args:
      model: an ``Anonymizer``.
      deadline_s: deadline of a window, in seconds.
      budget: ``Budget``, ``UNBOUNDED`` or None.

    Raises:
      ValueError: if ``deadline_s`` is not > 0, or only one of the model's ε and the
        budget is given.

    Example:
      >>> import types
      >>> model = types.SimpleNamespace(anonymize=lambda window: window * np.nan)
      >>> guard = Guard(model, 1.0, None)
      >>> guard.rewrite(np.ones((2, 1), np.float32))
      (None, 'the model returned NaN or infinity')
      >>> guard.close()
    """

    def __init__(self, model: Anonymizer, deadline_s: float, budget: Any):
        if not (deadline_s > 0 and np.isfinite(deadline_s)):
            raise ValueError(
                f"deadline_s must be > 0 and finite, got {deadline_s!r}; it protects "
                "the stream from a hanging model."
            )
        self.epsilon = getattr(model, "epsilon", None)
        if self.epsilon is not None and budget is None:
            raise ValueError(
                f"each window of this model spends epsilon {self.epsilon:g}; give "
                "budget=edge.Budget(path, epsilon) (--budget, --epsilon), or "
                "budget=edge.UNBOUNDED to disable accounting."
            )
        if self.epsilon is None and budget is not None:
            raise ValueError(NO_CLAIM)
        if budget is not None:
            budget.check_neighbours(budgets.ANY)
        self.counts: collections.Counter[str] = collections.Counter()
        self._model = model
        self._budget: Any = budget
        self._dog = Watchdog(deadline_s, getattr(model, "stop", None))
        self._exhausted = False

    def rewrite(self, window: np.ndarray) -> tuple[np.ndarray | None, str]:
        """Returns the rewritten ``float32[time, channels]`` and "", or None and why.

        It never raises, even if the model raises, hangs or returns other values.
        """
        if self._exhausted:
            return self._none("exhausted", "the privacy budget is exhausted")
        if self.epsilon is not None:
            # Charged first, because a failure of the model also depends on the window.
            try:
                self._budget.charge(self.epsilon)
            except budgets.Exhausted:
                self._exhausted = True
                return self._none("exhausted", "the privacy budget is exhausted")
            except Exception as error:  # The charge may have failed.
                why = f"the privacy budget cannot be charged ({type(error).__name__})"
                return self._none("uncharged", why)
        try:
            output = self._dog.call(self._model.anonymize, window)
            with np.errstate(over="ignore"):  # Infinity is detected below.
                # Copied, because the model may write to its own array later.
                safe = np.array(output, np.float32)
        except Late as error:
            return self._none("late windows", str(error))
        except Failed as error:
            # Only its type, because the message may contain raw samples.
            name = type(error.args[0]).__name__
            return self._none("raised", f"the model raised {name}")
        except Exception:
            return self._none("shape", "the model returned no array of numbers")
        if safe.shape != window.shape:
            return self._none("shape", f"the model returned shape {safe.shape}")
        if not np.isfinite(safe).all():
            return self._none("non-finite", "the model returned NaN or infinity")
        self.counts["released"] += 1
        return safe, ""

    def _none(self, what, reason):
        self.counts[what] += 1
        return None, reason

    def close(self) -> None:
        """Ends the model's thread."""
        self._dog.close()
