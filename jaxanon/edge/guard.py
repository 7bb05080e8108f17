"""One window through a model: charged, rewritten and checked, or nothing of it."""

import collections
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from jaxanon.edge import budget as budgets
from jaxanon.edge.types import Signature

GRACE_S = 0.25  # So long a call that was told to stop is waited for.


class Late(TimeoutError):
    """A call took longer than its deadline, or the one before it still runs."""


class Failed(Exception):
    """A call raised what its one argument is."""


def _work(jobs):
    while (job := jobs.get()) is not None:
        call, argument, answer = job
        try:
            answer.put((call(argument), None))
        except BaseException as error:  # A thread that dies would answer nobody.
            answer.put((None, error))
        job = call = argument = answer = None  # Nothing is kept of the last window.


class Watchdog:
    """Calls with a deadline. A class because it has a thread.

    Args:
      deadline_s: of each call.
      stop: is called when a call is late, and shall end it; None cannot.

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
        """``function(argument)``.

        Raises:
          Late: if it takes longer than the deadline, or if a call before did and still
            runs; then ``function`` is not called.
          Failed: if ``function`` raises, with what it raised.
        """
        if self._thread is None or not self._thread.is_alive():
            # The first call, or the first after a fork, which leaves threads behind.
            self._jobs, self._owed = queue.SimpleQueue(), None
            self._thread = threading.Thread(
                target=_work, args=(self._jobs,), daemon=True, name="jaxanon watchdog"
            )
            self._thread.start()
        if self._owed is not None:
            self._tell_to_stop()
            if self._owed.empty():
                raise Late("the model still hangs")
            self._owed = None
        answer: queue.SimpleQueue = queue.SimpleQueue()
        self._jobs.put((function, argument, answer))
        try:
            found, error = answer.get(timeout=self._deadline_s)
        except queue.Empty:
            self._give_up(answer)
            raise Late(f"the model took more than {self._deadline_s:g} s") from None
        if error is not None:
            raise Failed(error)
        return found

    def _tell_to_stop(self):
        if self._stop is not None:
            self._stop()

    def _give_up(self, answer):
        self._owed = answer
        self._tell_to_stop()
        try:
            answer.get(timeout=GRACE_S if self._stop is not None else 0.001)
            self._owed = None
        except queue.Empty:
            pass

    def close(self) -> None:
        """Lets the thread go; one that hangs goes with the process."""
        self._jobs.put(None)
        self._thread = None

    def __del__(self):
        self._jobs.put(None)


class Anonymizer(Protocol):
    """What a stream needs of a model; ``epsilon`` and ``stop()`` may be missing."""

    signature: Signature

    def anonymize(self, window: np.ndarray) -> np.ndarray:
        """``float32[time, channels]`` to the same shape."""
        ...


NO_CLAIM = (
    "this model claims no epsilon, so a budget would count nothing; leave the budget "
    "out."
)


class Guard:
    """Lets a window through a model, or says why not. A class because budgets end.

    ``counts`` counts windows by what became of them.

    Args:
      model: an ``Anonymizer``.
      deadline_s: of a window.
      budget: ``Budget``, ``UNBOUNDED`` or None.

    Raises:
      ValueError: if ``deadline_s`` is not > 0; if the model spends ε and there is no
        budget, or the other way round.

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
                f"deadline_s must be > 0 and finite, got {deadline_s!r}: a model that "
                "hangs must not hang the stream."
            )
        self.epsilon = getattr(model, "epsilon", None)
        if self.epsilon is not None and budget is None:
            raise ValueError(
                f"each window of this model spends epsilon {self.epsilon:g}: give "
                "budget=edge.Budget(path, epsilon) (--budget, --epsilon), or "
                "budget=edge.UNBOUNDED to keep no account of it."
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
        """``float32[time, channels]`` rewritten, and ""; or None, and why.

        Whatever the model raises, returns or does not return: it never raises.
        """
        if self._exhausted:
            return self._none("exhausted", "the privacy budget is exhausted")
        if self.epsilon is not None:
            # Before it is known whether the model fails: that tells of the window, too.
            try:
                self._budget.charge(self.epsilon)
            except budgets.Exhausted:
                self._exhausted = True
                return self._none("exhausted", "the privacy budget is exhausted")
            except Exception as error:  # Whatever it is, nothing was charged for sure.
                why = f"the privacy budget cannot be charged ({type(error).__name__})"
                return self._none("uncharged", why)
        try:
            found = self._dog.call(self._model.anonymize, window)
            with np.errstate(over="ignore"):  # Infinity is seen below.
                # A copy: the model may keep its own and write to it.
                safe = np.array(found, np.float32)
        except Late as error:
            return self._none("late windows", str(error))
        except Failed as error:
            # Its name alone: what it says may be raw samples.
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
        """Lets the model's thread go."""
        self._dog.close()
