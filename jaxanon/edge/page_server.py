"""Serves one page and its events to browsers of this machine, and to nobody else."""

import base64
import contextlib
import errno
import hashlib
import hmac
import http
import http.server
import importlib.resources
import ipaddress
import re
import secrets
import socket
import socketserver
import threading
from collections.abc import Iterator
from typing import Any

from jaxanon.edge.feed import Feed

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
