"""Payloads as Flower records, and the two Flower apps that relay them.

Flower imports this module in its own processes, so it must not load JAX.
"""

import json
import secrets
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from jaxanon.flower import programs

NONCE = 16  # Random bytes that make each record unique.
JOIN, WORK, LEAVE = "query.join", "train", "query.leave"
FAILED = 1000  # Error code of this app, outside Flower's range.


class Payload(NamedTuple):
    """Content of a message in either direction."""

    facts: dict  # JSON values
    arrays: dict[str, np.ndarray]  # see ``federated.engine.exchange``


class Failure(NamedTuple):
    """Reason for a missing payload."""

    why: str
    from_client: bool  # if False, Flower reports that no reply will arrive


def to_record(payload: Payload) -> RecordDict:
    """Converts a payload to a Flower record, with all arrays in one buffer.

    One buffer is faster because each array would cost two calls.

    Example:
      >>> payload = Payload({"round": 1}, {"w": np.ones((2, 3), np.float32)})
      >>> to_payload(to_record(payload)).arrays["w"].shape
      (2, 3)
    """
    arrays = {name: np.ascontiguousarray(a) for name, a in payload.arrays.items()}
    layout = [[name, a.dtype.str, [*a.shape]] for name, a in payload.arrays.items()]
    # Flower deduplicates equal objects, and another receipt could delete a shared one.
    nonce = secrets.token_bytes(NONCE)
    whole = b"".join([nonce, *(a.tobytes() for a in arrays.values())])
    config = ConfigRecord({"facts": json.dumps(payload.facts), "nonce": nonce})
    config["arrays"] = json.dumps(layout)
    record = RecordDict({"header": config})
    record["numbers"] = ArrayRecord({"all": Array(np.frombuffer(whole, np.uint8))})
    return record


def to_payload(record: RecordDict) -> Payload:
    """Converts a record of ``to_record`` from an untrusted sender to a payload.

    Raises:
      ValueError: if the record is malformed.

    Example:
      >>> to_payload(RecordDict())
      Traceback (most recent call last):
      ValueError: it is not a message of jaxanon ('header').
    """
    try:
        config: Any = record["header"]
        facts, layout = json.loads(config["facts"]), json.loads(config["arrays"])
        numbers: Any = record["numbers"]["all"]
        whole = numbers.numpy()
        arrays, start = {}, NONCE
        for name, kind, shape in layout:
            if not isinstance(name, str):
                raise ValueError(f"{name!r} is not a name")
            dtype = np.dtype(kind)
            if dtype.kind not in "fiub" or min(shape, default=0) < 0:
                raise ValueError(f"{name} is {kind}{shape}")
            stop = start + dtype.itemsize * int(np.prod(shape, dtype=object))
            if stop > len(whole):
                raise ValueError(f"{name} ends after {len(whole)} bytes")
            arrays[name] = whole[start:stop].view(dtype).reshape(shape)
            start = stop
    except Exception as error:  # Untrusted input can raise anything.
        why = str(error)[:200]
        raise ValueError(f"it is not a message of jaxanon ({why}).") from error
    if not isinstance(facts, dict) or start != len(whole):
        raise ValueError("it is not a message of jaxanon (wrong length).")
    return Payload(facts, arrays)


client = ClientApp()  # Flower's bundler requires this form of assignment.
server = ServerApp()
_connections = []  # Open until the process ends, after Flower has the reply.


def answer(message: Message, context: Context) -> Message:
    """Relays a message to the process that started this app; returns its reply.

    If that process raises, the server receives an error without data. The client stays.
    """
    del context
    try:
        payload = to_payload(message.content)
    except ValueError as error:
        return Message(Error(FAILED, str(error)), reply_to=message)
    connection = programs.relay()
    _connections.append(connection)
    connection.send((message.metadata.message_type, payload))
    reply = connection.recv()
    if isinstance(reply, str):
        return Message(Error(FAILED, reply), reply_to=message)
    return Message(to_record(reply), reply_to=message)


client.query("join")(answer)
client.train()(answer)
client.query("leave")(answer)


@server.main()
def relay(grid: Grid, context: Context) -> None:
    """Executes calls of the process that started this app on Flower's grid."""
    del context
    with programs.relay() as connection, ThreadPoolExecutor(256) as pool:
        calls = _Calls(grid, pool)
        while (call := connection.recv()) is not None:
            try:
                result = getattr(calls, call[0])(*call[1:])
            except Exception as error:
                result = ConnectionError(str(error))
            connection.send(result)


class _Calls:
    """Calls on a grid, with replies in flight.

    Flower blocks until an announced reply has arrived completely. Each reply is pulled
    separately so that a slow client does not delay the others.
    """

    def __init__(self, grid: Grid, pool: ThreadPoolExecutor):
        self._grid, self._pool = grid, pool
        self._pulled: dict[str, Future] = {}

    def nodes(self):
        return [*self._grid.get_node_ids()]

    def push(self, node, kind, payload, ttl):
        message = Message(to_record(payload), node, kind, ttl=ttl)
        (message_id,) = [*self._grid.push_messages([message])] or [None]
        return message_id or None

    def pull(self, ids):
        replies = {}
        for name in ids:
            future = self._pulled.get(name)
            if future is None:
                pull = lambda name=name: [*self._grid.pull_messages([name])]
                self._pulled[name] = self._pool.submit(pull)
            elif future.done():
                del self._pulled[name]
                for reply in future.result():
                    replies[name] = _read(reply)
        return replies


def _read(reply):
    if reply.has_error():
        return Failure(str(reply.error.reason), reply.error.code == FAILED)
    try:
        return to_payload(reply.content)
    except ValueError as error:
        return Failure(str(error), True)
