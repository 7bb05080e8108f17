"""Events for any number of browsers, none of which can hold up the others."""

import collections
import json
import threading
import time

MOST_WAITING = 256  # Events of one browser; older ones are dropped.
MOST_BROWSERS = 8


class Reader:
    """One browser's events. A class because they wait here.

    At most ``MOST_WAITING`` do: of a browser that is slower, the oldest are dropped.
    """

    def __init__(self, events, over: bool = False):
        self._waiting = collections.deque(events, maxlen=MOST_WAITING)
        self._changed = threading.Condition()
        self._over = over

    def put(self, event: bytes, last: bool = False) -> None:
        """Adds an event, and never waits."""
        with self._changed:
            self._waiting.append(event)
            self._over |= last
            self._changed.notify()

    def take(self, wait_s: float) -> bytes | None:
        """All events that wait, b"" if none came in time, None when it is all over."""
        with self._changed:
            if not self._waiting and not self._over:
                self._changed.wait(wait_s)
            if not self._waiting:
                return None if self._over else b""
            events = b"".join(self._waiting)
            self._waiting.clear()
            return events


class Feed:
    """Hands every event to every browser. A class because browsers come and go.

    One that comes later is given the first event (``greeting``), those of the last
    seconds and the newest one of each other kind.

    Args:
      greeting: kind and data of the first event.
      passing: kinds of which not only the newest is kept, but half of what may wait.
    """

    def __init__(self, greeting: tuple[str, dict], passing: frozenset[str]):
        self._greeting, self._passing = as_event(*greeting), passing
        self._recent: collections.deque = collections.deque(maxlen=MOST_WAITING // 2)
        self._newest: dict[str, bytes] = {}
        self._readers: set[Reader] = set()
        self._lock = threading.Lock()
        self._over = False

    def send(self, kind: str, data: dict, last: bool = False) -> None:
        """Sends an event; never waits.

        Args:
          kind: one word.
          data: what JSON holds.
          last: nothing follows.

        Raises:
          ValueError: if ``data`` holds NaN, which JSON does not.
        """
        event = as_event(kind, data)
        with self._lock:
            if kind in self._passing:
                self._recent.append(event)
            else:
                self._newest[kind] = event
            self._over |= last
            for reader in self._readers:
                reader.put(event, last)

    def join(self) -> Reader | None:
        """A reader for a browser; None if there are ``MOST_BROWSERS`` already."""
        with self._lock:
            if len(self._readers) >= MOST_BROWSERS:
                return None
            events = [self._greeting, *self._recent, *self._newest.values()]
            reader = Reader(events, self._over)
            self._readers.add(reader)
            return reader

    def wait(self, wait_s: float) -> None:
        """Waits until every browser has left, or ``wait_s`` is over."""
        deadline = time.monotonic() + wait_s
        while self._readers and time.monotonic() < deadline:
            time.sleep(0.01)

    def leave(self, reader: Reader) -> None:
        """The browser is gone."""
        with self._lock:
            self._readers.discard(reader)


def as_event(kind: str, data: dict) -> bytes:
    r"""A server-sent event.

    Example:
      >>> as_event("read", {"a": 1})
      b'event: read\ndata: {"a": 1}\n\n'
    """
    return f"event: {kind}\ndata: {json.dumps(data, allow_nan=False)}\n\n".encode()
