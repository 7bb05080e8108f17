"""What travels: names, numbers and arrays, as Flower's records."""

import json
import secrets
from typing import Any, NamedTuple

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

NONCE = 16  # Bytes that make a letter unlike all others.


class Letter(NamedTuple):
    """Content of a message either way."""

    facts: dict  # what JSON can say
    arrays: dict[str, np.ndarray]  # see ``federated.engine.exchange``


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
