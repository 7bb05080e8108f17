"""A client's end: pulls messages from a server, answers them, and knows when to go."""

import contextlib
import socket
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
from flwr.app import Context, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
    RegisterNodeFleetRequest,
    UnregisterNodeFleetRequest,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.error import ApiErrorCode, FlowerError
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_protobuf_utils import (
    make_pull_object_fn_protobuf,
    make_push_object_fn_protobuf,
)
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    ObjectPushError,
    inflate_object_from_contents,
    pull_objects,
    push_object_contents_from_iterable,
)
from flwr.supercore.interceptors.http.runtime_version import (
    RuntimeVersionHttpInterceptor,
)
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

POLL_S = 0.1
LINGER_S = 1.0  # Of a node that has gone Flower hands no reply on.
BEAT_S = 10  # The server takes a client for gone after twice that.
FAREWELL_S = 2.0  # That a sign of life may still take when a client goes.


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
      keys: of ``keys.private_key``; None makes a pair up.
      wait_s: seconds without a server after which to give up.

    Raises:
      ConnectionError: if the server doesn't take the client, or is gone.
    """
    try:
        with _connected(server, root_certificate, keys, wait_s) as (client, node):
            while not done():
                request = PullMessagesRequest(node=node)
                found = _patiently(partial(client.PullMessages, request), wait_s)
                if not found.messages_list:
                    time.sleep(POLL_S)
                    continue
                try:
                    fetched = partial(_fetched, client, node, found)
                    message = _patiently(fetched, wait_s)
                except ObjectPullError:  # The server has given up on an answer.
                    continue
                run_id = message.metadata.run_id
                reply = app(
                    message, Context(run_id, node.node_id, {}, RecordDict(), {})
                )
                # Too late, or the run is over: the server goes on without it.
                with contextlib.suppress(httpx.HTTPStatusError, ObjectPushError):
                    _patiently(partial(_send, client, node, reply), wait_s)
            time.sleep(LINGER_S)
    except httpx.HTTPError as error:
        raise ConnectionError(
            f"the server at {server} is gone ({error}); start the client again when "
            "it is back."
        ) from error


def _patiently(call, wait_s):
    """A call that is tried for so long, though the line be broken."""
    end = time.monotonic() + wait_s
    while True:
        try:
            return call()
        except httpx.TransportError:
            if time.monotonic() >= end:
                raise
            time.sleep(min(1.0, wait_s / 10))


@contextlib.contextmanager
def _connected(server, root_certificate, keys, wait_s):
    """A node of the server's, alive while within: ``(client, node)``."""
    private, public = keys or generate_key_pairs()
    pem = public_key_to_bytes(public)
    interceptors = [
        RuntimeVersionHttpInterceptor(component_name="SuperNode"),
        NodeAuthHttpInterceptor(private, public),
    ]
    insecure = root_certificate is None
    with FleetHttpClient.from_server_address(
        server, insecure, root_certificate, interceptors=interceptors
    ) as client:
        try:
            if keys is None:
                client.RegisterNode(RegisterNodeFleetRequest(public_key=pem))
            node = _activated(client, pem, 0.0 if keys is None else wait_s)
        except httpx.HTTPError as error:
            raise ConnectionError(
                f"the server at {server} does not take this client ({_said(error)}); "
                "see that both use TLS or neither does, that --root-certificate is of "
                "its certificate, and, where it has --client-keys, that --private-key "
                "is given, is among them, and that no other process is there with it."
            ) from error
        over = threading.Event()
        beat = threading.Thread(target=_beat, args=(client, node, over), daemon=True)
        beat.start()
        try:
            yield client, node
        finally:
            over.set()
            beat.join(FAREWELL_S)  # A sign of life that is on its way comes first.
            with contextlib.suppress(httpx.HTTPError):
                client.DeactivateNode(DeactivateNodeRequest(node_id=node.node_id))
                if keys is None:
                    request = UnregisterNodeFleetRequest(node_id=node.node_id)
                    client.UnregisterNode(request)


def _activated(client, pem, wait_s):
    """A node, though the key's last process was killed, and is not yet missed."""
    request = ActivateNodeRequest(public_key=pem, heartbeat_interval=BEAT_S)
    end = time.monotonic() + min(wait_s, 2 * BEAT_S + 1)
    warned = False
    while True:
        try:
            return Node(node_id=client.ActivateNode(request).node_id)
        except httpx.HTTPStatusError as error:
            told = FlowerError.from_json(error.response.text)
            busy = told and told.code == ApiErrorCode.FLEET_NODE_ACTIVATION_FAILED
            if not busy or time.monotonic() >= end:
                raise
        if not warned:
            warned = True
            warnings.warn(
                "the server does not take this client's key yet: another process is "
                "there with it (perhaps it is another client's), or one was killed and "
                "is not yet missed, or the key is not among its --client-keys. Trying "
                f"for {end - time.monotonic():.0f} s more ...",
                UserWarning,
                stacklevel=2,
            )
        time.sleep(min(1.0, wait_s / 10))


def _said(error):
    """What a server said, or why it could not."""
    if isinstance(error, httpx.HTTPStatusError):
        told = FlowerError.from_json(error.response.text)
        if told and told.code == ApiErrorCode.FLEET_SUPERNODE_REGISTRATION_DISABLED:
            return "it asks for keys, and this client has none"
        return told.message if told else f"status {error.response.status_code}"
    return str(error)


def _beat(client, node, over):
    request = SendNodeHeartbeatRequest(node=node, heartbeat_interval=BEAT_S)
    while not over.wait(BEAT_S / 2):
        try:
            client.SendNodeHeartbeat(request)
        except httpx.HTTPError:
            continue
        except RuntimeError:  # So httpx calls a client that was closed meanwhile.
            if not over.is_set():
                raise


def _fetched(client, node, found) -> Message:
    """The message that was found, with its content."""
    bare, tree = (
        message_from_proto(found.messages_list[0]),
        found.message_object_trees[0],
    )
    run_id, name = bare.metadata.run_id, bare.metadata.message_id
    contents = pull_objects(
        [part.object_id for part in iterate_object_tree(tree)],
        make_pull_object_fn_protobuf(client.PullObject, node, run_id),
        initial_backoff=POLL_S,
        backoff_cap=1.0,
    )
    client.ConfirmMessageReceived(
        ConfirmMessageReceivedRequest(node=node, run_id=run_id, message_object_id=name)
    )
    message: Any = inflate_object_from_contents(name, contents)
    message.metadata.__dict__["_message_id"] = name
    return message


def _send(client, node, reply: Message) -> None:
    with no_object_id_recompute():
        reply.metadata.__dict__["_message_id"] = reply.object_id
        objects = get_all_nested_objects(reply)
        request = PushMessagesRequest(
            node=node,
            messages_list=[message_to_proto(remove_content_from_message(reply))],
            message_object_trees=[get_object_tree(reply)],
            clientapp_runtime_list=[0.0],
        )
        found = client.PushMessages(request)
        push_object_contents_from_iterable(
            ((name, objects[name].deflate()) for name in found.objects_to_push),
            make_push_object_fn_protobuf(
                client.PushObject, node, reply.metadata.run_id, found.session_id
            ),
        )
