"""The live page: raw and anonymized side by side, and what an attacker infers."""

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


PASSING = frozenset({"raw", "safe"})


class Timed:
    """A model whose windows are timed. A class because it remembers the last ones.

    Args:
      model: has ``signature`` and ``anonymize``; all else is passed on.
    """

    def __init__(self, model: Any):
        self._model = model
        self.latencies_ms: collections.deque = collections.deque(maxlen=100)

    def __getattr__(self, name):
        return getattr(self._model, name)

    def anonymize(self, window):
        """As the model does."""
        start = time.perf_counter()
        safe = self._model.anonymize(window)
        self.latencies_ms.append(1000 * (time.perf_counter() - start))
        return safe


class Show:
    """Sends what happens to a feed. A class because it counts and averages.

    Args:
      feed: of the page.
      model: ``Timed``.
      reader: ``Readings``, or None without attackers.
      asked: its questions.
    """

    def __init__(
        self,
        feed: Feed,
        model: Timed,
        reader: Readings | None,
        asked: Sequence[Question],
    ):
        self._feed, self._model = feed, model
        self._reader, self._asked = reader, asked
        self._windows = self._failed = 0
        self._begun = False

    def raw(self, times, samples) -> None:
        """Samples as they are pushed, ``float64[n]`` and ``float[n, channels]``."""
        known = [time for time in map(float, times) if math.isfinite(time)]
        if not self._begun and known:  # From here on the page counts its seconds.
            self._feed.send("origin", {"t": known[0]})
            self._begun = True
        self._feed.send("raw", {"t": _numbers(times), "x": _numbers(samples)})

    def safe(self, block: Block) -> None:
        """A block as it leaves."""
        x = [] if block.gap else _numbers(block.samples)
        about = {"start": block.start, "end": block.end, "rate_hz": block.rate_hz}
        self._feed.send("safe", about | {"gap": block.gap, "x": x})

    def window(self, window: Window) -> None:
        """What attackers make of a window; ``inspect`` of a stream."""
        self._windows += 1
        self._failed += window.safe is None
        latencies, found, trouble = self._model.latencies_ms, [], ""
        if self._reader is not None:
            try:
                found = self._reader.add(window)
            except Exception as error:  # The show goes on without them.
                trouble = f"The attackers failed: {error}"
        answers = [
            {
                "raw": None if answer.raw is None else _numbers(answer.raw),
                "safe": None if answer.safe is None else _numbers(answer.safe),
                "sentence": sentence(question, answer),
            }
            for question, answer in zip(self._asked, found, strict=False)
        ]
        about = {
            "windows": self._windows,
            "failed": self._failed,
            "latency_ms": latencies[-1] if latencies else None,
            "median_ms": float(np.median(latencies)) if latencies else None,
            "trouble": trouble,
        }
        self._feed.send("read", about | {"answers": answers})


def play(
    rows: Iterable,
    stream: Any,
    show: Show,
    speed: float | None,
    stop: threading.Event,
    order: Sequence[int] | None = None,
) -> None:
    """Pushes rows through a stream at their pace, and shows both ends.

    Args:
      rows: of ``(times float64[n] s, samples float[n, channels])``.
      stream: has ``signature``, ``push`` and ``close``.
      show: of the page.
      speed, stop: as ``paced`` takes them.
      order: of the model's channels among those of the rows; None is the same.
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
    """Nested lists for JSON, with None for what is not finite."""
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
    """Serves the live page until it is stopped, by Ctrl-C or ``stop``.

    The page shows the raw signal, so it is for whoever sits at this machine: it
    listens to this machine alone, under a path that nobody can guess. After the last
    row it stays as it is.

    Args:
      model: of ``jaxanon.edge.load``.
      rows: of ``(times float64[n] s, samples float[n, channels])``.
      attackers: of ``jaxanon.edge.load_attackers``; None shows signals alone.
      host: address to listen at.
      port: 0 for any that is free.
      speed: seconds of the rows' clock per second; None takes them as they come.
      average: windows that an attacker's probabilities are averaged over.
      allow_other_hosts: lets ``host`` be an address that other machines reach: they
        see the raw signal, unencrypted, if they know the path.
      ready: is called with the page's address.
      stop: ends it when set.
      open_stream: ``Stream``, or what stands in its place.
      **stream: settings of the stream.

    Raises:
      ValueError: for settings out of range, a ``host`` that other machines reach, and
        attackers of other windows than the model's.
      OSError: if the page cannot be served at that port.
    """
    if speed is not None and not speed > 0:
        raise ValueError(f"speed must be > 0, or None, got {speed!r}.")
    stop = threading.Event() if stop is None else stop
    own, asked, reader = model.signature, [], None
    if attackers is not None:
        _same(own, attackers.signature)
        asked = questions(attackers.reads)
        reader = Readings(attackers, asked, average)
    about = _about(model, asked) | {"average": average, "speed": speed or 1.0}
    about["rate_hz"] = stream.get("rate_hz") or own.rate_hz  # Of the rows.
    about["hop_s"] = (stream.get("hop") or max(1, own.time // 2)) / own.rate_hz
    feed, timed = Feed(("hello", about), PASSING), Timed(model)
    shown = Show(feed, timed, reader, asked)
    opened = open_stream(timed, inspect=shown.window, **stream)
    order = types.order(own, stream.get("channels"), None, reorder=True)
    with page_server.serving(feed, host, port, allow_other_hosts) as address:
        try:
            ready(address)
            play(rows, opened, shown, speed, stop, order)
            feed.send("end", {"said": "The recording is over."})
            stop.wait()
        except KeyboardInterrupt:
            pass
        finally:
            feed.send("bye", {"said": "jaxanon live was ended."}, last=True)


def _same(model, attackers):
    """Refuses attackers of other windows."""
    fields = "time", "channels", "rate_hz"
    of_model, of_attackers = (
        [getattr(signature, field) for field in fields]
        for signature in (model, attackers)
    )
    if of_model != of_attackers:
        raise ValueError(
            f"attackers read windows of (time, channels, rate_hz) {of_attackers}, and "
            f"the model's are {of_model}; export both of one preset."
        )


def _about(model, asked):
    """What a page says before anything happens."""
    told, signature = getattr(model, "metadata", {}), model.signature
    dataset = told.get("dataset") or {}
    return {
        "model": " · ".join(
            str(part)
            for part in (told.get("method"), dataset.get("name"), told.get("weights"))
            if part
        )
        or "a model without a name",
        "hides": list(dataset.get("private") or ()),
        "keeps": dataset.get("public"),
        "epsilon": told.get("epsilon"),
        "channels": list(signature.channels),
        "units": list(signature.units),
        "window_s": signature.time / signature.rate_hz,
        "questions": [question._asdict() for question in asked],
    }
