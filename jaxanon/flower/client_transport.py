"""Client side of the transport: Flower's SuperNode, answered by this process."""

import contextlib
import socket
import time
import warnings
from collections.abc import Callable

from jaxanon.flower import programs
from jaxanon.flower.records import Payload

POLL_S = 0.1
LOOK_S = 5.0  # Interval of checks that the server still listens.
LINGER_S = 2.0  # Time for SuperNode to deliver the last reply.


def wait_for_server(host: str, port: int, wait_s: float) -> None:
    """Returns as soon as a server listens at ``host:port``.

    Raises:
      ConnectionError: if none does within ``wait_s`` seconds.
    """
    end = time.monotonic() + wait_s
    while True:
        try:
            socket.create_connection((host, port), timeout=max(1.0, wait_s)).close()
            return
        except OSError as error:
            if time.monotonic() >= end:
                raise ConnectionError(
                    f"no server answers at {host}:{port} ({error}); start jaxanon "
                    "server there first, or give another --server."
                ) from error
            time.sleep(min(1.0, wait_s))


def answer(
    respond: Callable[[str, Payload], Payload],
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
      respond: function from a payload and its kind to the reply. If it raises, the
        server sees only the type of the exception.
      done: function that returns whether the training is over.
      host, port: address of the server.
      root_certificate: path of the PEM that verifies the server's certificate. None
        uses plain HTTP.
      private_key: path of an OpenSSH key. None lets Flower generate one.
      wait_s: seconds without a server after which to give up.

    Raises:
      ConnectionError: if the server rejects the client or disappears.
    """
    heard, over = [], []

    def handle(connection):
        with connection, contextlib.suppress(EOFError, OSError):
            kind, payload = connection.recv()
            heard.append(kind)
            connection.send(_answer(respond, kind, payload))
            connection.recv()  # Closed once Flower's process has passed the reply on.
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
                raise ConnectionError(_gone(server, "nothing listens there"))
            if (name := flower.ended()) is None:
                continue
            why = flower.said(name)
            if heard:
                raise ConnectionError(_gone(server, why))
            if private_key is None or now - began >= wait_s:
                raise ConnectionError(
                    f"the server at {server} rejects this client ({why}). Check that "
                    "both or neither use TLS and --root-certificate verifies its "
                    "certificate. If it has --client-keys, check that they include "
                    "--private-key and that no other process uses the key."
                )
            warnings.warn(
                "the server does not accept this client's key yet: another process may "
                "use it, a killed process may still be registered, or --client-keys "
                "of the server may not include it. Retrying for "
                f"{wait_s - (now - began):.0f} s ...",
                UserWarning,
                stacklevel=2,
            )
            time.sleep(min(2.0, wait_s / 10))
            start()
        time.sleep(LINGER_S)


def _answer(respond, kind, payload):
    """Returns the reply, or the name of the exception's type for the app to relay."""
    try:
        return respond(kind, payload)
    except Exception as error:  # One bad message must not end the client.
        return type(error).__name__


def _gone(server, why):
    return (
        f"the server at {server} is gone ({why}); restart the client when the server "
        "is back."
    )


def _start(flower, server, root_certificate, private_key, wait_s):
    """Starts SuperNode and the program that launches its ClientApps."""
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
