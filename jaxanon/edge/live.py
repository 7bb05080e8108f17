"""The live page: raw and anonymized side by side, and what an attacker infers."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from jaxanon.edge import page_server, readings, show, signature
from jaxanon.edge.feed import Feed
from jaxanon.edge.stream import Stream


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
        asked = readings.questions(attackers.reads)
        reader = readings.Readings(attackers, asked, average)
    about = _about(model, asked) | {"average": average, "speed": speed or 1.0}
    about["rate_hz"] = stream.get("rate_hz") or own.rate_hz  # Of the rows.
    about["hop_s"] = (stream.get("hop") or max(1, own.time // 2)) / own.rate_hz
    feed, timed = Feed(("hello", about), show.PASSING), show.Timed(model)
    shown = show.Show(feed, timed, reader, asked)
    opened = open_stream(timed, inspect=shown.window, **stream)
    order = signature.order(own, stream.get("channels"), None, reorder=True)
    with page_server.serving(feed, host, port, allow_other_hosts) as address:
        try:
            ready(address)
            show.play(rows, opened, shown, speed, stop, order)
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
