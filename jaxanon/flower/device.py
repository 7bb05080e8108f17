"""What a client does: agrees to a server's terms, answers its rounds, keeps its own."""

import functools
import hashlib
import secrets
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import __version__
from jaxanon.datasets import Data
from jaxanon.federated.engine import exchange as engine_exchange
from jaxanon.flower import terms as agreements
from jaxanon.flower.records import Letter


def parts_of(method) -> engine_exchange.Parts:
    """A method's rounds, apart; of those with a guarantee clients tell no losses.

    Noise covers what is averaged, and not what a message says beside it.
    """
    parts = engine_exchange.parts_of(method.algorithm)
    return parts if getattr(method, "guarantee", None) is None else _silent(parts)


@functools.lru_cache(maxsize=8)  # As ``exchange.parts_of``.
def _silent(parts):
    def silent(exchange):
        def reply(*args):
            (sent, _), weight, own = exchange.reply(*args)
            return (sent, {}), weight, own

        return exchange._replace(reply=reply)

    return parts._replace(exchanges=tuple(map(silent, parts.exchanges)))


class _Answered(NamedTuple):
    """What a client whose noise is a guarantee's has said."""

    round: int  # the last
    digest: bytes  # of what it was asked then
    reply: Letter
    own: Any
    count: int  # rounds so far


class Device:
    """One client. A class because it keeps something from message to message.

    Where noise is a guarantee's, it answers each round once, each later than the one
    before, and no more than are paid for; the same question gets the same answer.

    ``join``, ``work`` and ``leave`` answer a letter of the server's by one of its own.
    ``why`` is None while there is more to come, then a sentence, and ``failed`` tells
    whether it went wrong.

    Args:
      client: its number.
      data: of which ``client``'s training windows are its own, if ``all_rows`` is
        False, else all training windows.
      all_rows: the data is this client's alone.
      expected: digest of the terms that it was told to expect; None takes any.
    """

    def __init__(self, client: int, data: Data, *, all_rows=False, expected=None):
        self.client, self.why, self.failed = client, None, False
        self._data, self._all_rows, self._expected = data, all_rows, expected
        self._terms: dict | None = None
        self._own: Any = None
        self._waiting: tuple | None = None  # a message's name, and what it leaves
        self._answered: _Answered | None = None

    def join(self, letter: Letter) -> Letter:
        """Says yes to terms, or why not."""
        try:
            self._join(letter)
        except (ValueError, TypeError, KeyError, LookupError) as error:
            self._end(str(error), failed=True)
            # What its own windows are is nobody's business.
            told = error.told if isinstance(error, agreements.Unfit) else str(error)
            return Letter({"why": told, "version": __version__}, {})
        facts = {"client": self.client, "version": __version__}
        digest = agreements.digest(letter.facts["terms"])
        return Letter(facts | {"digest": digest}, {})

    def _join(self, letter):
        terms = letter.facts["terms"]
        method = agreements.agreed(terms, self._data.spec, self._expected)
        number = len(terms["clients"])
        if self.client not in range(number):
            raise ValueError(
                f"--client must be from 0 to {number - 1}, got {self.client}."
            )
        if self._terms == terms:
            return  # It was away, and has all that it had.
        if self._answered is not None:
            raise ValueError(
                "the server's settings changed after this client's noise was drawn for "
                "others; start the client again to take part in a new training."
            )
        windows = self._data.train
        if not self._all_rows:
            mine = windows.labels["subject"] == terms["clients"][self.client]
            windows = agreements.of_subject(windows, mine)
        self._rows = agreements.own_windows(method, windows, self.client, terms)
        # Who knows the key knows the noise: that of a guarantee is the client's alone.
        self._guarantee: Any = getattr(method, "guarantee", None)
        init_key, key = jax.random.split(jax.random.key(terms["seed"]))
        self._key = key if self._guarantee is None else _secret_key(key)
        state = jax.eval_shape(method.init, init_key)
        self._hyper = jax.jit(lambda key: method.init(key).hyper)(init_key)
        self._like = engine_exchange.sent_out(state)
        first = jax.eval_shape(engine_exchange.first_own, state)
        self._own = engine_exchange.unpacked(letter.arrays, first)
        self._own = jax.tree.map(jnp.asarray, self._own)
        exchanges = parts_of(method).exchanges
        self._programs = [jax.jit(exchange.reply) for exchange in exchanges]
        self._terms, self._waiting = terms, None

    def work(self, letter: Letter) -> Letter:
        """Its message of a round.

        Raises:
          ValueError: for arrays that are none of the terms' state, hyper-parameters
            that are not the terms', and where noise is a guarantee's, for a round that
            was, or more than are paid for.
        """
        facts = letter.facts
        self._settle(facts["accepted"])
        state = engine_exchange.unpacked(letter.arrays, self._like)
        _check_hyper(state.hyper, self._hyper)
        state = state._replace(hyper=self._hyper)
        if self._guarantee is None:
            reply, own = self._reply(facts, state)
        else:
            reply, own = self._reply_once(letter, state)
        self._waiting = facts["name"], own
        return reply

    def _reply(self, facts, state):
        program, step = self._programs[facts["exchange"]], np.int32(facts["step"])
        message, weight, own = program(
            *(self._key, state, step, np.int32(self.client), self._rows, self._own)
        )
        return Letter({"weight": float(weight)}, engine_exchange.packed(message)), own

    def _reply_once(self, letter, state):
        """As ``_reply``, but no noise hides two things: it would hide neither."""
        facts, number, last = letter.facts, int(state.round), self._answered
        digest = _digest(facts["exchange"], facts["step"], letter.arrays)
        if last is not None and (number, digest) == (last.round, last.digest):
            return last.reply, last.own
        if number <= (-1 if last is None else last.round):
            raise ValueError(
                f"round must be after {-1 if last is None else last.round}, which this "
                f"client answered, got {number} with other numbers; start the client "
                "again, with noise of its own, if the server went back."
            )
        count, most = 1 if last is None else last.count + 1, self._guarantee.rounds
        if most is not None and count > most:
            raise ValueError(
                f"the noise is enough for {most} rounds, which this client answered; "
                "agree on more rounds before the training."
            )
        reply, own = self._reply(facts, state)
        self._answered = _Answered(number, digest, reply, own, count)
        return reply, own

    def _settle(self, accepted):
        """Keeps what a message left behind once the server has counted it."""
        if self._waiting is not None and self._waiting[0] == accepted:
            self._own = self._waiting[1]
        self._waiting = None

    def leave(self, letter: Letter) -> Letter:
        """Hears that it is over, and why."""
        self._settle(letter.facts["accepted"])
        self._end(letter.facts["why"], failed=letter.facts["failed"])
        return Letter({}, {})

    def _end(self, why, *, failed):
        self.why, self.failed = why, failed

    @property
    def own(self):
        """What it keeps, which nobody else ever sees; None where clients keep none."""
        return self._own


def _secret_key(like):
    """A key that nobody else has, all of its words drawn."""
    data = jax.eval_shape(jax.random.key_data, like)
    drawn = secrets.token_bytes(data.size * data.dtype.itemsize)
    return jax.random.wrap_key_data(jnp.asarray(np.frombuffer(drawn, data.dtype)))


def _check_hyper(found, agreed):
    """Refuses a server that asks for less noise, say, than it told."""
    for name, value in agreed.items():
        if not np.array_equal(found[name], value):
            raise ValueError(
                f"{name} must be {np.asarray(value)}, as the terms say, and the server "
                f"sent {np.asarray(found[name])}; settings change by new terms only."
            )


def _digest(exchange, step, arrays):
    sha = hashlib.sha256(f"{exchange}.{step}".encode())
    for name in sorted(arrays):
        sha.update(name.encode() + arrays[name].tobytes())
    return sha.digest()
