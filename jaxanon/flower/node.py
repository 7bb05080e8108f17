"""A client's end: pulls messages from a server, answers them, and knows when to go."""

import contextlib
import socket
import time
from collections.abc import Callable

import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    load_ssh_private_key,
    load_ssh_public_key,
)
from flwr.app import Context, Message, RecordDict
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import (
    inflate_object_from_contents,
    pull_objects,
    push_object_contents_from_iterable,
)
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supernode.fleet_http_connection import http_request_response

POLL_S = 0.1


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
    app: Callable,
    done: Callable[[], bool],
    *,
    server: str,
    root_certificate: bytes | None,
    keys,
    wait_s: float,
) -> None:
    """Answers a server's messages by a Flower ``ClientApp`` until ``done``.

    Args:
      app: ``(Message, Context) -> Message``.
      done: whether there is nothing more to do.
      server: ``HOST:PORT``.
      root_certificate: PEM bytes that the server's certificate follows from; None is
        plain HTTP.
      keys: of ``private_key``; None makes a pair up.
      wait_s: seconds without a server after which to give up.

    Raises:
      ConnectionError: if the server doesn't take the client, or is gone.
    """
    connection = http_request_response(
        *(server, root_certificate is None, root_certificate, keys),
        max_wait_time=wait_s,
    )
    try:
        with connection as conn:
            node_id, receive, send, _, _, pull, push, confirm = conn
            while not done():
                got = receive()
                if got is None:
                    time.sleep(POLL_S)
                    continue
                message = _fetched(*got, pull, confirm)
                context = Context(
                    message.metadata.run_id, node_id, {}, RecordDict(), {}
                )
                # Too late, or the run is over: the server goes on without it.
                with contextlib.suppress(httpx.HTTPStatusError):
                    _send(app(message, context), send, push)
            return
    except SystemExit as error:  # Flower's way to say so; its log has told why.
        raise ConnectionError(
            f"the server at {server} does not take this client: see that both use "
            "TLS or both do not, that --root-certificate is of its certificate, and, "
            "where it has --client-keys, that --private-key is among them."
        ) from error
    except httpx.HTTPError as error:
        raise ConnectionError(
            f"the server at {server} is gone ({error}); start the client again when "
            "it is back."
        ) from error


def _fetched(message, tree, pull, confirm):
    """The message with its content."""
    run_id, name = message.metadata.run_id, message.metadata.message_id
    contents = pull_objects(
        [part.object_id for part in iterate_object_tree(tree)],
        lambda part: pull(run_id, part),
        initial_backoff=POLL_S,
        backoff_cap=1.0,
    )
    confirm(run_id, name)
    whole = inflate_object_from_contents(name, contents)
    whole.metadata.__dict__["_message_id"] = name
    return whole


def _send(reply: Message, send, push):
    with no_object_id_recompute():
        reply.metadata.__dict__["_message_id"] = reply.object_id
        tree, objects = get_object_tree(reply), get_all_nested_objects(reply)
        wanted, session = send(reply, tree, 0.0)
        push_object_contents_from_iterable(
            ((name, objects[name].deflate()) for name in wanted),
            lambda name, content: push(reply.metadata.run_id, session, name, content),
        )


def private_key(path):
    """``(private, public)`` of an OpenSSH file, as ``ssh-keygen -t ecdsa`` writes it.

    Raises:
      FileNotFoundError: if there is none.
      ValueError: if it is no ECDSA key, or has a passphrase.
    """
    try:
        key = load_ssh_private_key(_read(path), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(
            f"{path} is no private key that can be read ({error}); make one by "
            "ssh-keygen -t ecdsa -b 384 -N '' -f FILE."
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(
            f"{path} must be an ECDSA key; make one by ssh-keygen -t ecdsa."
        )
    return key, key.public_key()


def public_keys(path) -> dict[int, bytes]:
    """Each client's public key, of lines that are its number and what is in ``.pub``.

    Raises:
      FileNotFoundError: if there is no such file.
      ValueError: for a line that is none, or a client or a key that comes twice.
    """
    found = {}
    for number, line in enumerate(_read(path).decode().splitlines(), 1):
        if not line.strip():
            continue
        try:
            client, key = line.split(maxsplit=1)
            loaded = load_ssh_public_key(key.encode())
            if not isinstance(loaded, ec.EllipticCurvePublicKey):
                raise ValueError("the key is none of ECDSA")
            pem = public_key_to_bytes(loaded)
            if int(client) in found or pem in found.values():
                raise ValueError("the client, or its key, stands there twice")
            found[int(client)] = pem
        except (ValueError, UnsupportedAlgorithm) as error:
            raise ValueError(
                f"{path}, line {number}, must be a client's number and its ECDSA "
                f"public key ({error})."
            ) from error
    return found


def _read(path) -> bytes:
    with open(path, "rb") as file:
        return file.read()
