"""Serves one page and its events to browsers of this machine, and to nobody else."""

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


BEAT_S = 5.0  # A browser that is gone is noticed by then.
STUCK_S = 10.0  # One that takes nothing is left alone after this.
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@contextlib.contextmanager
def serving(
    feed: Feed, host: str, port: int, allow_other_hosts: bool = False
) -> Iterator[str]:
    """Serves a feed as long as the context lasts.

    The page's path begins with a random word, so that neither other users of the
    machine nor other pages find it; a request must name this machine as the host it
    wants, so that no stranger's name that leads here opens it.

    Args:
      feed: of events.
      host: address to listen at.
      port: 0 for any that is free.
      allow_other_hosts: an address that other machines reach is no error.

    Yields:
      The page's address.

    Raises:
      ValueError: if ``host`` is not this machine alone, and that is not allowed.
      OSError: if the port is in use, or the address is not this machine's.
    """
    if host not in LOCAL_NAMES and not allow_other_hosts:
        raise ValueError(
            f"host must be 127.0.0.1, ::1 or localhost, got {host!r}: the page shows "
            "the raw signal, and others could read it; to show it to them, set "
            "allow_other_hosts (--allow-other-hosts)."
        )
    try:
        server = _Server(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            said = f"port {port} of {host} is in use; take another (--port), or 0 for "
            raise OSError(error.errno, f"{said}any that is free") from error
        said = f"the page cannot be served at {host}:{port}: {error.strerror}"
        raise OSError(error.errno, said) from error
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
    """A class because the standard library's is one."""

    block_on_close = False  # A stuck browser must not keep us.
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
        # Not HTTPServer's, which asks for the machine's name, and may wait for it.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "jaxanon", self.socket.getsockname()[1]

    def handle_error(self, request, client_address):
        """A browser that went away is no error of ours."""

    def knows(self, host):
        """Whether a request's Host is a name that only this machine goes by."""
        name, port = _split(host)
        if port != self.server_port:
            return False
        if name in LOCAL_NAMES:
            return True
        if not self.open:
            return False
        try:  # No name server can make an address its own.
            ipaddress.ip_address(name)
        except ValueError:
            return name == socket.gethostname().lower()
        return True


class _Handler(http.server.BaseHTTPRequestHandler):
    """A class because the standard library's is one."""

    server: Any
    timeout = STUCK_S

    def version_string(self):
        return "jaxanon"

    def log_message(self, format, *args):
        """Says nothing: the address, which holds the word, is in every request."""

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
        reader = self.server.feed.join()
        if reader is None:
            busy = http.HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(busy, "text/plain", b"Too many pages are open; close one.\n")
            return
        try:
            self._head(http.HTTPStatus.OK, "text/event-stream")
            self.end_headers()
            while (events := reader.take(BEAT_S)) is not None:
                self.wfile.write(events or b": still here\n\n")
        except OSError:
            pass  # The browser went away, or took nothing for STUCK_S.
        finally:
            self.server.feed.leave(reader)


def _split(host):
    """Name and port that a Host header says."""
    found = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]]+))(?::(\d{1,5}))?", host)
    if found is None:
        return "", 0
    return (found[1] or found[2]).lower(), int(found[3] or 80)


def _policy(page):
    """Lets the page run its own script and style, and fetch from here alone."""

    def digest(tag):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        found = base64.b64encode(hashlib.sha256(inside.encode()).digest())
        return f"'sha256-{found.decode()}'"

    return (
        f"default-src 'none'; script-src {digest('script')}; "
        f"style-src {digest('style')}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
