"""The dashboard: raw and anonymized signals, with attackers' inferences."""

import collections
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxanon.edge import page_server, types
from jaxanon.edge.csv_input import paced
from jaxanon.edge.page_server import Feed
from jaxanon.edge.stream import Stream
from jaxanon.edge.types import Block, Window

NEAR = 10  # Percentage points above chance up to which a class is not named.


class Question(NamedTuple):
    """An attribute whose inference is shown.

    Attributes:
      attribute: name of the attribute.
      role: "public" (should be preserved) or "private" (should drop to chance level).
      classes: names of the classes.
      raw: the attackers' output for raw windows.
      safe: the attackers' output for anonymized windows, trained on such if available.
      adapted: whether ``safe`` was trained on anonymized windows.
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


def questions(inferences: Sequence) -> list[Question]:
    """Groups attackers' outputs by attribute, private attributes first.

    Args:
      inferences: objects with ``output``, ``attribute``, ``role``, ``trained_on`` and
        ``classes``.

    Returns:
      One ``Question`` per attribute.
    """
    grouped = []
    for attribute in dict.fromkeys(each.attribute for each in inferences):
        same = [each for each in inferences if each.attribute == attribute]
        raw = next((each for each in same if each.trained_on == "raw"), same[0])
        safe = next((each for each in same if each.trained_on != "raw"), raw)
        adapted = safe.trained_on != "raw"
        classes = tuple(raw.classes)
        grouped.append(
            Question(attribute, raw.role, classes, raw.output, safe.output, adapted)
        )
    return sorted(grouped, key=lambda question: question.role == "public")


class RunningAverages:
    """Averages of attackers' probabilities over the last windows.

    Args:
      attackers: function ``(window) -> {output: float32[classes]}``.
      asked: list of ``Question``.
      average: number of windows in an average, > 0.

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
        """Adds a window; returns the averages in the order of the questions."""
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
    r"""Returns an answer in words.

    Args:
      question: ``Question``.
      answer: its ``Answer``.

    Returns:
      Pairs of text and its side, "raw", "safe" or "".

    Example:
      >>> asked = Question("side", "private", ("left", "right"), "a", "a", False)
      >>> answer = Answer(np.array([0.97, 0.03]), np.array([0.51, 0.49]))
      >>> pairs = sentence(asked, answer)
      >>> print("".join(text for text, _ in pairs).replace(". ", ".\n"))
      From the raw signal, the attacker is 97 % sure: left.
      From the released signal: 51 %.
    """
    if answer.raw is None:
        return [("Waiting for the first window.", "")]
    of_raw, raw = _best(question, answer.raw)
    if answer.safe is None:
        after = "no window yet"
    else:
        of_safe, safe = _best(question, answer.safe)
        # Near chance level the most likely class alternates, so it is not named.
        other = of_safe != of_raw and safe > 100 / len(question.classes) + NEAR
        after = f"{safe} %: {of_safe}" if other else f"{safe} %"
    return [
        ("From the raw signal, the attacker is ", ""),
        (f"{raw} % sure: {of_raw}", "raw"),
        (". From the released signal: ", ""),
        (after, "safe"),
        (".", ""),
    ]


def _best(question, probabilities):
    """Returns the most likely class and its probability in percent."""
    best = int(np.argmax(probabilities))
    return question.classes[best], round(100 * float(probabilities[best]))


def _mean(values):
    return np.mean(values, axis=0) if values else None


PASSING = frozenset({"raw", "safe"})


class Timed:
    """A model that records the latencies of its last windows.

    Args:
      model: object with ``signature`` and ``anonymize``. Other attributes pass through.
    """

    def __init__(self, model: Any):
        self._model = model
        self.latencies_ms: collections.deque = collections.deque(maxlen=100)

    def __getattr__(self, name):
        return getattr(self._model, name)

    def anonymize(self, window):
        """Anonymizes a window and records the latency."""
        start = time.perf_counter()
        safe = self._model.anonymize(window)
        self.latencies_ms.append(1000 * (time.perf_counter() - start))
        return safe


class Show:
    """Publishes samples, blocks and inferences to a page's feed.

    Args:
      feed: feed of the page.
      model: ``Timed``.
      averages: ``RunningAverages``, or None without attackers.
      asked: questions of the averages.
    """

    def __init__(
        self,
        feed: Feed,
        model: Timed,
        averages: RunningAverages | None,
        asked: Sequence[Question],
    ):
        self._feed, self._model = feed, model
        self._averages, self._asked = averages, asked
        self._windows = self._failed = 0
        self._begun = False

    def raw(self, times, samples) -> None:
        """Publishes pushed samples, ``float64[n]`` and ``float[n, channels]``."""
        known = [time for time in map(float, times) if math.isfinite(time)]
        if not self._begun and known:  # Origin of the page's time axis.
            self._feed.send("origin", {"t": known[0]})
            self._begun = True
        self._feed.send("raw", {"t": _numbers(times), "x": _numbers(samples)})

    def safe(self, block: Block) -> None:
        """Publishes a released block."""
        x = [] if block.gap else _numbers(block.samples)
        about = {"start": block.start, "end": block.end, "rate_hz": block.rate_hz}
        self._feed.send("safe", about | {"gap": block.gap, "x": x})

    def window(self, window: Window) -> None:
        """Publishes the attackers' inferences; the stream's ``inspect``."""
        self._windows += 1
        self._failed += window.safe is None
        latencies, averaged, trouble = self._model.latencies_ms, [], ""
        if self._averages is not None:
            try:
                averaged = self._averages.add(window)
            except Exception as error:  # The page continues without attackers.
                trouble = f"The attackers failed: {error}"
        answers = [
            {
                "raw": None if answer.raw is None else _numbers(answer.raw),
                "safe": None if answer.safe is None else _numbers(answer.safe),
                "sentence": sentence(question, answer),
            }
            for question, answer in zip(self._asked, averaged, strict=False)
        ]
        about = {
            "windows": self._windows,
            "failed": self._failed,
            "latency_ms": latencies[-1] if latencies else None,
            "median_ms": float(np.median(latencies)) if latencies else None,
            "trouble": trouble,
        }
        self._feed.send("inferences", about | {"answers": answers})


def play(
    rows: Iterable,
    stream: Any,
    show: Show,
    speed: float | None,
    stop: threading.Event,
    order: Sequence[int] | None = None,
) -> None:
    """Pushes rows through a stream at their pace and publishes both signals.

    Args:
      rows: pairs ``(times float64[n] s, samples float[n, channels])``.
      stream: object with ``signature``, ``push`` and ``close``.
      show: ``Show`` of the page.
      speed, stop: see ``paced``.
      order: indices of the model's channels among those of the rows. None if equal.
    """
    try:
        rate_hz = stream.signature.rate_hz
        for times, samples in paced(rows, rate_hz, speed, stop):
            show.raw(times, samples if order is None else samples[:, order])
            for block in stream.push(times, samples):
                show.safe(block)
    finally:
        for block in stream.close():
            show.safe(block)


def _numbers(values):
    """Converts to nested lists for JSON, with None for non-finite values."""
    values = np.asarray(values, np.float64)
    finite = np.isfinite(values)
    if finite.all():
        return values.tolist()
    values = values.astype(object)
    values[~finite] = None
    return values.tolist()


def serve(
    model: Any,
    rows: Iterable,
    *,
    attackers: Any = None,
    host: str = "127.0.0.1",
    port: int = 8700,
    speed: float | None = 1.0,
    average: int = 10,
    allow_other_hosts: bool = False,
    ready: Callable[[str], Any] = print,
    stop: threading.Event | None = None,
    open_stream: Callable[..., Any] = Stream,
    **stream: Any,
) -> None:
    """Serves the dashboard until it is interrupted by Ctrl-C or ``stop``.

    The page shows the raw signal, so by default it is reachable only from this machine,
    under a secret path. It stays available after the last row.

    Args:
      model: model from ``jaxanon.edge.load``.
      rows: pairs ``(times float64[n] s, samples float[n, channels])``.
      attackers: result of ``jaxanon.edge.load_attackers``. None shows only signals.
      host: address to listen at.
      port: port to listen at. With 0, any free port.
      speed: recorded seconds per second. None pushes rows immediately.

      average: number of windows over which probabilities are averaged.
      allow_other_hosts: whether other machines may connect. They see the raw signal,
        unencrypted, if they know the path.
      ready: callback for the page's address.
      stop: event that ends the dashboard.
      open_stream: ``Stream`` or a substitute.
      **stream: settings of the stream.

    Raises:
      ValueError: if a setting is out of range, other machines can reach ``host``
        without ``allow_other_hosts``, or attackers and model have different windows.
      OSError: if the port is not available.
    """
    if speed is not None and not speed > 0:
        raise ValueError(f"speed must be > 0, or None, got {speed!r}.")
    stop = threading.Event() if stop is None else stop
    signature, asked, averages = model.signature, [], None
    if attackers is not None:
        _check_windows(signature, attackers.signature)
        asked = questions(attackers.inferences)
        averages = RunningAverages(attackers, asked, average)
    about = _about(model, asked) | {"average": average, "speed": speed or 1.0}
    about["rate_hz"] = stream.get("rate_hz") or signature.rate_hz

    hop = stream.get("hop") or max(1, signature.time // 2)
    about["hop_s"] = hop / signature.rate_hz
    feed, timed = Feed(("hello", about), PASSING), Timed(model)
    shown = Show(feed, timed, averages, asked)
    opened = open_stream(timed, inspect=shown.window, **stream)
    order = types.order(signature, stream.get("channels"), None, reorder=True)
    with page_server.serving(feed, host, port, allow_other_hosts) as address:
        try:
            ready(address)
            play(rows, opened, shown, speed, stop, order)
            feed.send("end", {"text": "The recording has ended."})
            stop.wait()
        except KeyboardInterrupt:
            pass
        finally:
            feed.send("bye", {"text": "The dashboard has stopped."}, last=True)


def _check_windows(model, attackers):
    """Raises ValueError if attackers and model have different windows."""
    fields = "time", "channels", "rate_hz"
    of_model, of_attackers = (
        [getattr(signature, field) for field in fields]
        for signature in (model, attackers)
    )
    if of_model != of_attackers:
        raise ValueError(
            f"attackers' (time, channels, rate_hz) must be {of_model}, as the model's, "
            f"got {of_attackers}; export both with one preset."
        )


def _about(model, asked):
    """Returns the data of a page's first event."""
    metadata, signature = getattr(model, "metadata", {}), model.signature
    dataset = metadata.get("dataset") or {}
    parts = metadata.get("method"), dataset.get("name"), metadata.get("weights")
    return {
        "model": " · ".join(str(part) for part in parts if part) or "unnamed model",
        "private": list(dataset.get("private") or ()),
        "public": dataset.get("public"),
        "epsilon": metadata.get("epsilon"),
        "channels": list(signature.channels),
        "units": list(signature.units),
        "window_s": signature.time / signature.rate_hz,
        "questions": [question._asdict() for question in asked],
    }
