"""What attackers infer from windows, raw and anonymized, in numbers and in words."""

import collections
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxanon.edge.blocks import Window

NEAR = 10  # Points above chance up to which a class is not named.


class Question(NamedTuple):
    """An attribute that is asked for.

    Attributes:
      attribute: its name.
      role: "public" (should stay) or "private" (should go to chance).
      classes: their names.
      raw: output of the attackers that reads it from raw windows.
      safe: that which reads it from anonymized windows: one that was trained on such,
        where there is one.
      adapted: whether ``safe`` was.
    """

    attribute: str
    role: str
    classes: tuple[str, ...]
    raw: str
    safe: str
    adapted: bool


class Answer(NamedTuple):
    """Running averages of probabilities, ``float[classes]``; None before the first."""

    raw: np.ndarray | None
    safe: np.ndarray | None


def questions(reads: Sequence) -> list[Question]:
    """What attackers are asked, private attributes first.

    Args:
      reads: each has ``output``, ``attribute``, ``role``, ``trained_on``, ``classes``.

    Returns:
      One ``Question`` per attribute.
    """
    found = []
    for attribute in dict.fromkeys(read.attribute for read in reads):
        of = [read for read in reads if read.attribute == attribute]
        raw = next((read for read in of if read.trained_on == "raw"), of[0])
        safe = next((read for read in of if read.trained_on != "raw"), raw)
        adapted = safe.trained_on != "raw"
        classes = tuple(raw.classes)
        found.append(
            Question(attribute, raw.role, classes, raw.output, safe.output, adapted)
        )
    return sorted(found, key=lambda question: question.role == "public")


class Readings:
    """Averages over the last windows. A class because it remembers them.

    Args:
      attackers: ``(window) -> {output: float32[classes]}``.
      asked: ``Question`` each.
      average: windows that an average is taken over, > 0.

    Raises:
      ValueError: if ``average`` is not positive.
    """

    def __init__(self, attackers: Callable, asked: Sequence[Question], average: int):
        if not average > 0:
            raise ValueError(f"average must be > 0 windows, got {average!r}.")
        self._attackers, self._asked = attackers, asked
        self._raw = [collections.deque(maxlen=average) for _ in asked]
        self._safe = [collections.deque(maxlen=average) for _ in asked]

    def add(self, window: Window) -> list[Answer]:
        """Takes a window in; the averages with it, in the questions' order."""
        raw = self._attackers(window.raw)
        safe = None if window.safe is None else self._attackers(window.safe)
        for question, of_raw, of_safe in self._columns():
            of_raw.append(np.asarray(raw[question.raw], np.float64))
            if safe is not None:
                of_safe.append(np.asarray(safe[question.safe], np.float64))
        return [Answer(_mean(raw), _mean(safe)) for _, raw, safe in self._columns()]

    def _columns(self):
        return zip(self._asked, self._raw, self._safe, strict=True)


def sentence(question: Question, answer: Answer) -> list[tuple[str, str]]:
    r"""An answer in words.

    Args:
      question: ``Question``.
      answer: its ``Answer``.

    Returns:
      Pairs of text and what it is of: "raw", "safe" or "".

    Example:
      >>> asked = Question("side", "private", ("left", "right"), "a", "a", False)
      >>> answer = Answer(np.array([0.97, 0.03]), np.array([0.51, 0.49]))
      >>> found = sentence(asked, answer)
      >>> print("".join(text for text, _ in found).replace(". ", ".\n"))
      From the raw signal the attacker is 97 % sure: left.
      From what leaves the device: 51 %.
    """
    if answer.raw is None:
        return [("The first window is not done yet.", "")]
    of_raw, raw = _best(question, answer.raw)
    if answer.safe is None:
        after = "nothing so far"
    else:
        of_safe, safe = _best(question, answer.safe)
        # Near chance it is now this class and now that one, which says nothing.
        other = of_safe != of_raw and safe > 100 / len(question.classes) + NEAR
        after = f"{safe} %: {of_safe}" if other else f"{safe} %"
    return [
        ("From the raw signal the attacker is ", ""),
        (f"{raw} % sure: {of_raw}", "raw"),
        (". From what leaves the device: ", ""),
        (after, "safe"),
        (".", ""),
    ]


def _best(question, probabilities):
    """The class that is likeliest, and its probability in whole percent."""
    best = int(np.argmax(probabilities))
    return question.classes[best], round(100 * float(probabilities[best]))


def _mean(values):
    return np.mean(values, axis=0) if values else None
