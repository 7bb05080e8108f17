"""A call in a thread of its own, which whoever waits for it can give up."""

import queue
import threading
from collections.abc import Callable
from typing import Any

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
      jaxanon.edge.watchdog.Late: the model took more than 0.01 s
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
