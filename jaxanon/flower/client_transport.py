"""A client's end: Flower's SuperNode, whose messages are answered in this process."""

import contextlib
import socket
import time
import warnings
from collections.abc import Callable

from jaxanon.flower import programs
from jaxanon.flower.records import Letter

POLL_S = 0.1
LOOK_S = 5.0  # Between two looks whether the server is still there.
LINGER_S = 2.0  # That SuperNode may take to hand the last answer on.


def wait_for_server(host: str, port: int, wait_s: float) -> None:
    """Returns once somebody listens there.

    Raises:
      ConnectionError: if nobody does in ``wait_s`` seconds.
    """
    end = time.monotonic() + wait_s
    while True:
        try:
            socket.create_connection((host, port), timeout=max(1.0, wait_s)).close()
            return
        except OSError as error:
            if time.monotonic() >= end:
                raise ConnectionError(
                    f"nobody answers at {host}:{port} ({error}); start jaxanon serve "
                    "there first, or give another --server."
                ) from error
            time.sleep(min(1.0, wait_s))


def answer(
    respond: Callable[[str, Letter], Letter],
    done: Callable[[], bool],
    *,
    host: str,
    port: int,
    root_certificate,
    private_key,
    wait_s: float,
) -> None:
    """Answers a server's messages until ``done``.

    Args:
      respond: the answer to a letter, given its kind; what it raises is told to the
        server by its type alone.
      done: whether there is nothing more to do.
      host, port: the server's.
      root_certificate: path of the PEM that its certificate follows from; None is
        plain HTTP.
      private_key: path of an OpenSSH key; None makes one up.
      wait_s: seconds without a server after which to give up.

    Raises:
      ConnectionError: if the server doesn't take the client, or is gone.
    """
    heard, over = [], []

    def handle(connection):
        with connection, contextlib.suppress(EOFError, OSError):
            kind, letter = connection.recv()
            heard.append(kind)
            connection.send(_answer(respond, kind, letter))
            connection.recv()  # Its end: Flower's process has passed the answer on.
        if done():
            over.append(True)

    server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    with programs.running(guarded=True) as flower:
        flower.serve(handle)
        start = lambda: _start(flower, server, root_certificate, private_key, wait_s)
        start()
        seen = began = looked = time.monotonic()
        while not over:
            time.sleep(POLL_S)
            now = time.monotonic()
            if now - looked > LOOK_S:
                looked = now
                with contextlib.suppress(OSError):
                    socket.create_connection((host, port), timeout=LOOK_S).close()
                    seen = now
            if now - seen > max(wait_s, 2 * LOOK_S):
                raise ConnectionError(_gone(server, "nobody listens there"))
            if (name := flower.ended()) is None:
                continue
            why = flower.said(name)
            if heard:
                raise ConnectionError(_gone(server, why))
            if private_key is None or now - began >= wait_s:
                raise ConnectionError(
                    f"the server at {server} does not take this client ({why}); see "
                    "that both use TLS or neither does, that --root-certificate is of "
                    "its certificate, and, where it has --client-keys, that "
                    "--private-key is given, is among them, and that no other process "
                    "is there with it."
                )
            warnings.warn(
                "the server does not take this client's key yet: another process is "
                "there with it (perhaps it is another client's), or one was killed and "
                "is not yet missed, or the key is not among its --client-keys. Trying "
                f"for {wait_s - (now - began):.0f} s more ...",
                UserWarning,
                stacklevel=2,
            )
            time.sleep(min(2.0, wait_s / 10))
            start()
        time.sleep(LINGER_S)


def _answer(respond, kind, letter):
    """A letter, or a string of what went wrong, for the app to pass on."""
    try:
        return respond(kind, letter)
    except Exception as error:  # A client that stays is worth more.
        return type(error).__name__


def _gone(server, why):
    return (
        f"the server at {server} is gone ({why}); start the client again when it is "
        "back."
    )


def _start(flower, server, root_certificate, private_key, wait_s):
    """Starts SuperNode, and what starts ClientApps for it."""
    runtime = f"127.0.0.1:{programs.free_port()}"
    secret = "--superexec-auth-secret-file", flower.secret
    tls = ("--root-certificates", root_certificate) if root_certificate else ()
    flower.stop()
    flower.start(
        "flower-supernode",
        *("--superlink", server, "--max-wait-time", wait_s),
        *(tls or ("--insecure",)),
        *(("--auth-supernode-private-key", private_key) if private_key else ()),
        *("--host", "127.0.0.1", "--port", runtime.rpartition(":")[2]),
        *("--isolation", "process", *secret),
    )
    flower.start(
        "flower-superexec",
        *("--runtime-api-address", runtime, "--insecure", *secret),
    )
