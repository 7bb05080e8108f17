"""HTTP server of one page and its events, for browsers on this machine."""

import base64
import collections
import contextlib
import errno
import hashlib
import hmac
import http
import http.server
import importlib.resources
import ipaddress
import json
import re
import secrets
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from typing import Any

MOST_WAITING = 256  # Maximum queued events per browser; older ones are dropped.
MOST_BROWSERS = 8


class Subscriber:
    """Queue of one browser's events.

    If a browser is too slow, only its newest ``MOST_WAITING`` events are kept.
    """

    def __init__(self, events, over: bool = False):
        self._waiting = collections.deque(events, maxlen=MOST_WAITING)
        self._changed = threading.Condition()
        self._over = over

    def put(self, event: bytes, last: bool = False) -> None:
        """Adds an event without waiting."""
        with self._changed:
            self._waiting.append(event)
            self._over |= last
            self._changed.notify()

    def take(self, wait_s: float) -> bytes | None:
        """Returns all queued events, b"" after ``wait_s``, or None after the last."""
        with self._changed:
            if not self._waiting and not self._over:
                self._changed.wait(wait_s)
            if not self._waiting:
                return None if self._over else b""
            events = b"".join(self._waiting)
            self._waiting.clear()
            return events


class Feed:
    """Broadcast of events to all browsers.

    A new browser first receives the first event (``greeting``), the events of the last
    seconds and the newest event of each other kind.

    Args:
      greeting: kind and data of the first event.
      passing: kinds whose recent events are kept, not only the newest.
    """

    def __init__(self, greeting: tuple[str, dict], passing: frozenset[str]):
        self._greeting, self._passing = as_event(*greeting), passing
        self._recent: collections.deque = collections.deque(maxlen=MOST_WAITING // 2)
        self._newest: dict[str, bytes] = {}
        self._subscribers: set[Subscriber] = set()
        self._lock = threading.Lock()
        self._over = False

    def send(self, kind: str, data: dict, last: bool = False) -> None:
        """Sends an event without waiting.

        Args:
          kind: one word.
          data: data for JSON.
          last: whether this is the last event.

        Raises:
          ValueError: if ``data`` contains NaN or infinity.
        """
        event = as_event(kind, data)
        with self._lock:
            if kind in self._passing:
                self._recent.append(event)
            else:
                self._newest[kind] = event
            self._over |= last
            for subscriber in self._subscribers:
                subscriber.put(event, last)

    def subscribe(self) -> Subscriber | None:
        """Returns a new subscriber, or None if there are ``MOST_BROWSERS``."""
        with self._lock:
            if len(self._subscribers) >= MOST_BROWSERS:
                return None
            events = [self._greeting, *self._recent, *self._newest.values()]
            subscriber = Subscriber(events, self._over)
            self._subscribers.add(subscriber)
            return subscriber

    def wait(self, wait_s: float) -> None:
        """Waits until all browsers have left, at most ``wait_s`` seconds."""
        deadline = time.monotonic() + wait_s
        while self._subscribers and time.monotonic() < deadline:
            time.sleep(0.01)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Removes a browser."""
        with self._lock:
            self._subscribers.discard(subscriber)


def as_event(kind: str, data: dict) -> bytes:
    r"""Returns a server-sent event.

    Example:
      >>> as_event("end", {"a": 1})
      b'event: end\ndata: {"a": 1}\n\n'
    """
    return f"event: {kind}\ndata: {json.dumps(data, allow_nan=False)}\n\n".encode()


BEAT_S = 5.0  # Interval of messages that detect closed connections.
STUCK_S = 10.0  # Timeout of a browser that reads nothing.
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@contextlib.contextmanager
def serving(
    feed: Feed, host: str, port: int, allow_other_hosts: bool = False
) -> Iterator[str]:
    """Serves a feed inside the context.

    The page's path starts with a random word, so other users and other pages cannot
    find it. The Host header of a request must name this machine, which prevents DNS
    rebinding.

    Args:
      feed: feed of events.
      host: address to listen at.
      port: port to listen at. With 0, any free port.
      allow_other_hosts: whether ``host`` may be reachable from other machines.

    Yields:
      The page's address.

    Raises:
      ValueError: if ``host`` is reachable from other machines and that is not allowed.
      OSError: if the port is in use, or the address is not this machine's.
    """
    if host not in LOCAL_NAMES and not allow_other_hosts:
        raise ValueError(
            f"host must be 127.0.0.1, ::1 or localhost, got {host!r}, because the page "
            "shows the raw signal; to show it to other machines, set "
            "allow_other_hosts (--allow-other-hosts)."
        )
    try:
        server = _Server(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} of {host} is in use; use another --port, or 0 for "
            raise OSError(error.errno, f"{message}any free port") from error
        message = f"the page cannot be served at {host}:{port}: {error.strerror}"
        raise OSError(error.errno, message) from error
    server.feed, server.open = feed, allow_other_hosts
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{shown}:{server.server_port}/{server.word}/"
    finally:
        feed.wait(1.0)
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    """Server that holds the page, its secret word and its security policy."""

    block_on_close = False  # A stuck browser must not delay the end.
    feed: Feed
    open = False

    def __init__(self, host, port):
        self.word = secrets.token_urlsafe(16)
        self.page = importlib.resources.files("jaxanon.edge").joinpath("page.html")
        self.page = self.page.read_bytes()
        self.policy = _policy(self.page.decode())
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def server_bind(self):
        # HTTPServer's own method looks up the machine's name, which may take long.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "jaxanon", self.socket.getsockname()[1]

    def handle_error(self, request, client_address):
        """Ignores errors of closed connections."""

    def knows(self, host):
        """Returns whether a Host header names this machine and port."""
        name, port = _split(host)
        if port != self.server_port:
            return False
        if name in LOCAL_NAMES:
            return True
        if not self.open:
            return False
        try:  # A literal address is safe from DNS rebinding.
            ipaddress.ip_address(name)
        except ValueError:
            return name == socket.gethostname().lower()
        return True


class _Handler(http.server.BaseHTTPRequestHandler):
    """Handler of requests for the page and its events."""

    server: Any
    timeout = STUCK_S

    def version_string(self):
        return "jaxanon"

    def log_message(self, format, *args):
        """Logs nothing, because every request contains the secret word."""

    def do_GET(self):
        status = self._status()
        if status != http.HTTPStatus.OK:
            self._answer(status, "text/plain", f"{status.phrase}\n".encode())
        elif self.path.endswith("/events"):
            self._events()
        else:
            self._answer(status, "text/html; charset=utf-8", self.server.page)

    def _status(self):
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not self.server.knows(hosts[0]):
            return http.HTTPStatus.MISDIRECTED_REQUEST
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return http.HTTPStatus.FORBIDDEN
        word = self.path.encode()
        for page in ("", "events"):
            wanted = f"/{self.server.word}/{page}".encode()
            if hmac.compare_digest(word, wanted):
                return http.HTTPStatus.OK
        return http.HTTPStatus.NOT_FOUND

    def _answer(self, status, kind, body):
        self._head(status, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _head(self, status, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")

    def _events(self):
        subscriber = self.server.feed.subscribe()
        if subscriber is None:
            busy = http.HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(busy, "text/plain", b"Too many pages are open; close one.\n")
            return
        try:
            self._head(http.HTTPStatus.OK, "text/event-stream")
            self.end_headers()
            while (events := subscriber.take(BEAT_S)) is not None:
                self.wfile.write(events or b": heartbeat\n\n")
        except OSError:
            pass  # The browser left, or read nothing for STUCK_S.
        finally:
            self.server.feed.unsubscribe(subscriber)


def _split(host):
    """Returns name and port of a Host header."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+))(?::(\d{1,5}))?", host)
    if found is None:
        return "", 0
    return (found[1] or found[2]).lower(), int(found[3] or 80)


def _policy(page):
    """Returns a policy that allows only the page's own script, style and events."""

    def digest(tag):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        sha = base64.b64encode(hashlib.sha256(inside.encode()).digest())
        return f"'sha256-{sha.decode()}'"

    return (
        f"default-src 'none'; script-src {digest('script')}; "
        f"style-src {digest('style')}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
