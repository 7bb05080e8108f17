"""What travels, as Flower's records, and the two apps of Flower that pass it on.

Flower imports this in processes of its own, so it loads no JAX.
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

NONCE = 16  # Bytes that make a letter unlike all others.
JOIN, WORK, LEAVE = "query.join", "train", "query.leave"
FAILED = 1000  # An app's own code of an error, beyond Flower's.


class Letter(NamedTuple):
    """Content of a message either way."""

    facts: dict  # what JSON can say
    arrays: dict[str, np.ndarray]  # see ``federated.engine.exchange``


class Failure(NamedTuple):
    """What came in place of a letter."""

    why: str
    told: bool  # by the client; else Flower says that none is to come


def to_record(letter: Letter) -> RecordDict:
    """A letter as Flower sends it: its arrays end to end, for each costs two calls.

    Example:
      >>> letter = Letter({"round": 1}, {"w": np.ones((2, 3), np.float32)})
      >>> to_letter(to_record(letter)).arrays["w"].shape
      (2, 3)
    """
    arrays = {name: np.ascontiguousarray(a) for name, a in letter.arrays.items()}
    told = [[name, a.dtype.str, [*a.shape]] for name, a in letter.arrays.items()]
    # Flower keeps equal parts once, and who confirms one may take it from another.
    nonce = secrets.token_bytes(NONCE)
    whole = b"".join([nonce, *(a.tobytes() for a in arrays.values())])
    config = ConfigRecord({"facts": json.dumps(letter.facts), "nonce": nonce})
    config["arrays"] = json.dumps(told)
    record = RecordDict({"told": config})
    record["numbers"] = ArrayRecord({"all": Array(np.frombuffer(whole, np.uint8))})
    return record


def to_letter(record: RecordDict) -> Letter:
    """The letter that ``to_record`` made, from somebody who need not be trusted.

    Raises:
      ValueError: if it is none.

    Example:
      >>> to_letter(RecordDict())
      Traceback (most recent call last):
      ValueError: it is no message of jaxanon's ('told').
    """
    try:
        config: Any = record["told"]
        facts, told = json.loads(config["facts"]), json.loads(config["arrays"])
        numbers: Any = record["numbers"]["all"]
        whole = numbers.numpy()
        arrays, start = {}, NONCE
        for name, kind, shape in told:
            if not isinstance(name, str):
                raise ValueError(f"{name!r} is no name")
            dtype = np.dtype(kind)
            if dtype.kind not in "fiub" or min(shape, default=0) < 0:
                raise ValueError(f"{name} is {kind}{shape}")
            stop = start + dtype.itemsize * int(np.prod(shape, dtype=object))
            if stop > len(whole):
                raise ValueError(f"{name} ends after {len(whole)} bytes")
            arrays[name] = whole[start:stop].view(dtype).reshape(shape)
            start = stop
    except Exception as error:  # A stranger may think of any.
        why = str(error)[:200]
        raise ValueError(f"it is no message of jaxanon's ({why}).") from error
    if not isinstance(facts, dict) or start != len(whole):
        raise ValueError("it is no message of jaxanon's (its length is another).")
    return Letter(facts, arrays)


client = ClientApp()  # Flower looks for such lines when it bundles.
server = ServerApp()
_kept = []  # Open until Flower has the answer, for the process ends then.


def answer(message: Message, context: Context) -> Message:
    """What the process that started this app answers, see ``client_transport``.

    What goes wrong there is told to the server, without data; the client stays.
    """
    del context
    try:
        letter = to_letter(message.content)
    except ValueError as error:
        return Message(Error(FAILED, str(error)), reply_to=message)
    connection = programs.relay()
    _kept.append(connection)
    connection.send((message.metadata.message_type, letter))
    found = connection.recv()
    if isinstance(found, str):
        return Message(Error(FAILED, found), reply_to=message)
    return Message(to_record(found), reply_to=message)


client.query("join")(answer)
client.train()(answer)
client.query("leave")(answer)


@server.main()
def relay(grid: Grid, context: Context) -> None:
    """Does by Flower's grid what the process that started it asks."""
    del context
    with programs.relay() as connection, ThreadPoolExecutor(256) as pool:
        calls = _Calls(grid, pool)
        while (asked := connection.recv()) is not None:
            try:
                found = getattr(calls, asked[0])(*asked[1:])
            except Exception as error:
                found = ConnectionError(str(error))
            connection.send(found)


class _Calls:
    """What may be asked of a grid. A class because replies are on their way.

    Flower waits for a reply's last byte once it is announced, so each is pulled by
    itself: a slow line costs nobody else's answer.
    """

    def __init__(self, grid: Grid, pool: ThreadPoolExecutor):
        self._grid, self._pool = grid, pool
        self._pulled: dict[str, Future] = {}

    def nodes(self):
        return [*self._grid.get_node_ids()]

    def push(self, node, kind, letter, ttl):
        message = Message(to_record(letter), node, kind, ttl=ttl)
        (found,) = [*self._grid.push_messages([message])] or [None]
        return found or None

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
        return to_letter(reply.content)
    except ValueError as error:
        return Failure(str(error), True)
