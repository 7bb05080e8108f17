"""The server's end: Flower's Fleet API on a port, and a grid that needs none."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterable
from typing import Any

import uvicorn
from fastapi import FastAPI
from flwr.app import Message
from flwr.app.message import remove_content_from_message
from flwr.common.constant import (
    HEARTBEAT_DEFAULT_INTERVAL,
    NOOP_ACCOUNT_NAME,
    NOOP_FLWR_AID,
    SUPERLINK_NODE_ID,
)
from flwr.common.serde import message_to_proto
from flwr.proto.runtime_pb2 import PullAppMessagesRequest, PushAppMessagesRequest
from flwr.serverapp import Grid
from flwr.supercore.constant import (
    FLWR_IN_MEMORY_DB_NAME,
    NOOP_FEDERATION_ID,
    TaskType,
)
from flwr.supercore.error import http_error_translator
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.protobuf.translation import ProtobufTranslationMiddleware
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.config_loader import (
    get_federation_manager,
    get_objectstore_linkstate_factories,
)
from flwr.superlink.routers.fleet.node_auth import NodeAuthMiddleware
from flwr.superlink.routers.fleet.router import router
from flwr.superlink.servicer.runtime import runtime_handlers
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware

POLL_S = 0.1
BEAT_S = 10.0  # Flower ends a run that gave no sign of life for 60 s.
STARTED_S = 30.0


class LocalGrid(Grid):
    """Flower's grid, of a link state in this process: no port, and no one to ask.

    A class because Flower's is one.
    """

    def __init__(self, state, run, upload_s: float):
        self._state, self._run, self._upload_s = state, run, upload_s
        # Of replies that are not uploaded yet: what was asked, the reply, its parts,
        # and until when it may take.
        self._announced: dict[str, tuple] = {}

    def set_run(self, run) -> None:
        """Takes another run."""
        self._run = run

    @property
    def run(self):
        """The run."""
        return self._run

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):
        """A message; Flower would rather have ``Message`` called."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def _task(self):
        number = self._run.primary_task_id
        if not self._state.acknowledge_task_heartbeat(number):
            raise ConnectionError(
                "Flower ended this run, for this process gave no sign of life for a "
                "minute; start it again with resume=True (--resume)."
            )
        return self._state.get_tasks(task_ids=[number])[0]

    def get_node_ids(self) -> Iterable[int]:
        """Nodes that are there."""
        return self._state.get_nodes(self._run.run_id)

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Hands messages out; the ids of those that were taken.

        Raises:
          ConnectionError: if Flower ended the run, as with every other call.
        """
        messages, objects = list(messages), {}
        if not messages:
            return []
        with no_object_id_recompute():
            for message in messages:
                message.metadata.__dict__["_message_id"] = message.object_id
                objects |= get_all_nested_objects(message)
            request = PushAppMessagesRequest(
                messages_list=[
                    message_to_proto(remove_content_from_message(one))
                    for one in messages
                ],
                message_object_trees=[get_object_tree(one) for one in messages],
            )
            found = runtime_handlers.push_messages(request, self._state, self._task())
            for name in found.objects_to_push:
                self._state.store_object(
                    self._run.run_id, found.session_id, name, objects[name].deflate()
                )
        return [name for name in found.message_ids if name]

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Replies that are here, whole; waits for none.

        One that is announced is looked for again at each call, until ``upload_s`` have
        passed: somebody's slow line costs nobody else's answer.
        """
        asked, now = set(message_ids), time.monotonic()
        # Flower names a reply once, and later says that there never was a question.
        request = PullAppMessagesRequest(message_ids=[*(asked - set(self._announced))])
        found = runtime_handlers.pull_messages(request, self._state, self._task())
        both = found.messages_list, found.message_object_trees
        for proto, tree in zip(*both, strict=True):
            parts = [part.object_id for part in iterate_object_tree(tree)]
            name = proto.metadata.reply_to_message_id
            until = now + self._upload_s
            self._announced[name] = proto.metadata.message_id, parts, until
        replies = []
        for question, (name, parts, until) in [*self._announced.items()]:
            contents = {part: self._object(part) for part in parts}
            whole = all(contents.values())
            if whole and question in asked:
                with contextlib.suppress(Exception):  # Whatever a stranger uploaded.
                    reply: Any = inflate_object_from_contents(name, contents)
                    # Flower checked these, and not what was uploaded.
                    reply.metadata.__dict__["_message_id"] = name
                    reply.metadata.__dict__["_reply_to_message_id"] = question
                    replies.append(reply)
            elif now < until and None not in contents.values():
                continue
            del self._announced[question]
            self._state.object_store.delete(name)
        return replies

    def _object(self, name):
        """What was uploaded by that name; nothing yet, or None where it never comes."""
        return self._state.get_object(self._run.run_id, name)

    def send_and_receive(self, messages, *, timeout=None) -> list[Message]:
        """Hands messages out and waits for the replies, ``timeout`` seconds at most."""
        waiting, replies = set(self.push_messages(messages)), []
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while waiting and time.monotonic() < end:
            for reply in self.pull_messages(waiting):
                waiting.discard(reply.metadata.reply_to_message_id)
                replies.append(reply)
            if waiting:
                time.sleep(POLL_S)
        return replies


def listen(host: str, port: int) -> socket.socket:
    """A port that is this process's from now on.

    Raises:
      OSError: if it is another's, or the host is not this machine.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(
            f"{host}:{port} is not to be had ({error.strerror}); another program has "
            "it, or the address is not this machine's: choose another --address."
        ) from error
    return found


@contextlib.contextmanager
def serving(port: socket.socket, *, certificate, private_key, public_keys, upload_s):
    """Serves Flower's Fleet API, and nothing else of Flower's, while within.

    Args:
      port: of ``listen``.
      certificate, private_key: paths of PEM files, of TLS; None is plain HTTP.
      public_keys: PEM bytes of each client's public key, by client; None lets everybody
        in who speaks Flower.
      upload_s: seconds that a reply may take from its announcement to its last byte.

    Yields:
      ``(grid, nodes)``: Flower's grid, and the client of each node where there are
      keys.

    Raises:
      OSError: if the server does not start.
      ValueError: if two clients have the same key.
    """
    _, factory = get_objectstore_linkstate_factories(
        FLWR_IN_MEMORY_DB_NAME, get_federation_manager()
    )
    state, nodes = factory.state(), {}
    _one_at_a_time(state.object_store)
    for client, key in (public_keys or {}).items():
        who = NOOP_FLWR_AID, NOOP_ACCOUNT_NAME, key, HEARTBEAT_DEFAULT_INTERVAL
        nodes[state.create_node(*who)] = client
    # No other way in: Flower's Control API would register anybody's key.
    app = FastAPI(
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=http_error_translator),
            Middleware(ProtobufTranslationMiddleware),
            Middleware(NodeAuthMiddleware),
        ],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.state.linkstate_factory = factory
    app.state.enable_supernode_auth = public_keys is not None
    app.include_router(router)
    config = uvicorn.Config(
        app,
        log_config=None,  # Logging is whose process it is.
        log_level="critical",
        ws="none",
        lifespan="off",
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
    )
    server = uvicorn.Server(config)
    run = _started_run(state)
    target = lambda: server.run(sockets=[port])
    thread = threading.Thread(target=target, name="fleet", daemon=True)
    thread.start()
    over = threading.Event()
    beat = lambda: _beat(state, run.primary_task_id, over)
    threading.Thread(target=beat, name="beat", daemon=True).start()
    try:
        _wait_for(server, thread)
        yield LocalGrid(state, run, upload_s), nodes
    finally:
        over.set()
        server.should_exit = True
        thread.join(5)
        port.close()


def _one_at_a_time(store):
    """Lets nobody delete parts of a message while another's are registered.

    Equal parts of several messages are one object, and Flower looks at them one by one:
    a part that was there is gone when what holds it is registered, and the message is
    lost.
    """
    lock = threading.RLock()  # Deleting calls itself.

    def alone(call):
        def held(*given):
            with lock:
                return call(*given)

        return held

    for name in ("preregister", "delete", "delete_objects_in_run"):
        setattr(store, name, alone(getattr(store, name)))


def _started_run(state):
    """Flower's record of a run whose server app is this process."""
    nobody = "jaxanon", "", None, {}, NOOP_FEDERATION_ID, None, NOOP_FLWR_AID
    run_id = state.create_run(*nobody, TaskType.SERVER_APP)
    run = state.get_run_info(run_ids=[run_id])[0]
    state.claim_task(run.primary_task_id)
    state.activate_task(run.primary_task_id)
    TaskIdentity.run_id, TaskIdentity.task_id = run_id, run.primary_task_id
    TaskIdentity.node_id = SUPERLINK_NODE_ID
    return run


def _beat(state, task, over):
    """Gives Flower a sign of life from time to time, whatever else goes on."""
    while not over.wait(BEAT_S):
        state.acknowledge_task_heartbeat(task)


def _wait_for(server, thread):
    end = time.monotonic() + STARTED_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise OSError(
                "the server did not start; see whether this machine lets it listen, or "
                "choose another --address."
            )
        time.sleep(POLL_S / 2)
