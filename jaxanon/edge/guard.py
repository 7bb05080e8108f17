"""One window through a model: charged, rewritten and checked, or nothing of it."""

import collections
from typing import Any, Protocol

import numpy as np

from jaxanon.edge import budget as budgets
from jaxanon.edge.signature import Signature
from jaxanon.edge.watchdog import Failed, Late, Watchdog


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
