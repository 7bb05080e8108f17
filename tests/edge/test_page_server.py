"""Access to the dashboard: only local browsers with the secret path."""

import errno
import http.client
import socket
import urllib.parse

import pytest

from jaxanon.edge import page_server


@pytest.fixture
def address():
    hall = page_server.Feed(("hello", {}), frozenset())
    with page_server.serving(hall, "127.0.0.1", 0) as address:
        hall.send("bye", {}, last=True)
        yield urllib.parse.urlsplit(address)


def _ask(address, path=None, verb="GET", **headers):
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(verb, path or address.path, headers=headers)
    answer = connection.getresponse()
    body = answer.read() if answer.getheader("Content-Length") else b""
    connection.close()
    return answer, body


def test_the_page_stands_alone(address):
    answer, body = _ask(address)
    assert answer.status == 200
    text = body.decode()
    # Only relative links: no address, no file, no font.
    assert "http://" not in text and "https://" not in text and "src=" not in text
    policy = answer.getheader("Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.getheader("Referrer-Policy") == "no-referrer"
    assert answer.getheader("Cache-Control") == "no-store"
    assert answer.getheader("Access-Control-Allow-Origin") is None
    assert "Python" not in answer.getheader("Server")


def test_nothing_is_found_without_the_word(address):
    assert len(address.path) > 20
    wrong = "/" + "A" * (len(address.path) - 2) + "/"
    for path in ("/", "/events", wrong, f"{wrong}events", f"{address.path}../", "/é"):
        assert _ask(address, urllib.parse.quote(path))[0].status == 404
    assert _ask(address, f"{address.path}events")[0].status == 200
    assert _ask(address, verb="POST")[0].status == 501


def test_two_pages_have_two_words():
    hall = page_server.Feed(("hello", {}), frozenset())
    with page_server.serving(hall, "127.0.0.1", 0) as one:
        with page_server.serving(hall, "127.0.0.1", 0) as other:
            assert one.split("/")[3] != other.split("/")[3]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST:{port}", 200),
        ("[::1]:{port}", 200),
        ("127.0.0.1", 421),
        ("127.0.0.1:1", 421),
        ("evil.example:{port}", 421),
        ("localhost.evil.example:{port}", 421),
        ("192.168.1.7:{port}", 421),
        ("127.0.0.1:{port}@evil.example", 421),
        ("", 421),
    ],
)
def test_a_stranger_s_name_that_leads_here_opens_nothing(address, host, status):
    said = host.format(port=address.port)
    for path in (address.path, f"{address.path}events"):
        assert _ask(address, path, Host=said)[0].status == status


def test_other_sites_get_nothing(address):
    for site, status in [("same-origin", 200), ("none", 200), ("cross-site", 403)]:
        path = f"{address.path}events"
        assert _ask(address, path, Sec_Fetch_Site=site)[0].status == status


def test_other_machines_only_when_asked_for():
    hall = page_server.Feed(("hello", {}), frozenset())
    for host in ("0.0.0.0", "192.168.1.7", "", "::"):
        with pytest.raises(
            ValueError, match="to show it to other machines, .*allow_other_hosts"
        ):
            with page_server.serving(hall, host, 0):
                pass
    with page_server.serving(hall, "0.0.0.0", 0, allow_other_hosts=True) as address:
        address = urllib.parse.urlsplit(address.replace("0.0.0.0", "127.0.0.1"))
        for host, status in [
            ("192.168.1.7", 200),
            (socket.gethostname(), 200),
            ("localhost", 200),
            ("evil.example", 421),
        ]:
            said = f"{host}:{address.port}"
            assert _ask(address, Host=said)[0].status == status, host


def test_a_port_in_use_says_what_to_do():
    hall = page_server.Feed(("hello", {}), frozenset())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = f"port {port} of 127.0.0.1 is in use; use another --port, or 0"
        with pytest.raises(OSError, match=said) as caught:
            with page_server.serving(hall, "127.0.0.1", port):
                pass
    assert caught.value.errno == errno.EADDRINUSE
    with page_server.serving(hall, "127.0.0.1", port):
        pass  # Once the port is free, the server starts.
    with pytest.raises(OSError, match="the page cannot be served at 203.0.113.1:80"):
        with page_server.serving(hall, "203.0.113.1", 80, allow_other_hosts=True):
            pass


def test_only_so_many_pages():
    hall = page_server.Feed(("hello", {}), frozenset())
    readers = [hall.subscribe() for _ in range(page_server.MOST_BROWSERS)]
    with page_server.serving(hall, "127.0.0.1", 0) as address:
        parts = urllib.parse.urlsplit(address)
        answer, body = _ask(parts, f"{parts.path}events")
        assert (answer.status, body) == (503, b"Too many pages are open; close one.\n")
        for reader in readers:
            hall.unsubscribe(reader)
        assert _ask(parts, f"{parts.path}events")[0].status == 200
        hall.send("bye", {}, last=True)
