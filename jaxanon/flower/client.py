"""A client: it agrees to a server's terms, answers its rounds, and keeps its own."""

import functools
import hashlib
import secrets
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import __version__
from jaxanon.core import checks
from jaxanon.datasets import Data
from jaxanon.edge.budget import Budget, Exhausted
from jaxanon.federated.engine import exchange as engine_exchange
from jaxanon.flower import client_transport, keys
from jaxanon.flower import terms as agreements
from jaxanon.flower.records import JOIN, LEAVE, WORK, Letter
from jaxanon.flower.settings import local


def parts_of(method) -> engine_exchange.Parts:
    """A method's rounds, apart; of those with a guarantee clients tell no losses.

    Noise covers what is averaged, and not what a message says beside it.
    """
    parts = engine_exchange.split_algorithm(method.federation.algorithm)
    return parts if method.guarantee is None else _silent(parts)


@functools.lru_cache(maxsize=8)  # As ``exchange.split_algorithm``.
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


class Device:
    """One client. A class because it keeps something from message to message.

    Where noise is a guarantee's, it answers each round once, each later than the one
    before, and no more than are paid for; the same question gets the same answer. A
    file counts the rounds, so that a client that starts again goes on counting.

    ``join``, ``work`` and ``leave`` answer a letter of the server's by one of its own.
    ``why`` is None while there is more to come, then a sentence, and ``failed`` tells
    whether it went wrong.

    Args:
      client: its number.
      data: of which ``client``'s training windows are its own, if ``all_rows`` is
        False, else all training windows.
      all_rows: the data is this client's alone.
      expected: digest of the terms that it was told to expect; None takes any.
      budget: path of the file that counts the rounds it answers, needed where noise is
        a guarantee's; see ``terms.budget``.
    """

    def __init__(
        self, client: int, data: Data, *, all_rows=False, expected=None, budget=None
    ):
        self.client, self.why, self.failed = client, None, False
        self._data, self._all_rows, self._expected = data, all_rows, expected
        self._budget_path = budget
        self._budget: Budget | None = None
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
        self._guarantee: Any = method.guarantee
        self._budget = agreements.budget(self._budget_path, self._guarantee)
        init_key, key = jax.random.split(jax.random.key(terms["seed"]))
        self._key = key if self._guarantee is None else _secret_key(key)
        state = jax.eval_shape(method.init, init_key)
        self._hyper = jax.jit(lambda key: method.init(key).hyper)(init_key)
        self._like = engine_exchange.broadcast_state(state)
        first = jax.eval_shape(engine_exchange.initial_own, state)
        self._own = engine_exchange.unpack(letter.arrays, first)
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
        state = engine_exchange.unpack(letter.arrays, self._like)
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
        return Letter({"weight": float(weight)}, engine_exchange.pack(message)), own

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
        try:
            if self._budget is not None:
                self._budget.check(1)
            reply, own = self._reply(facts, state)
            if self._budget is not None:
                self._budget.charge(1)  # On the disk before the reply leaves.
        except Exhausted:
            raise ValueError(
                f"the noise is enough for {self._guarantee.rounds} rounds, which this "
                "client answered; agree on more rounds before the training."
            ) from None
        self._answered = _Answered(number, digest, reply, own)
        return reply, own

    def _settle(self, accepted):
        """Keeps what a message left behind once the server has counted it."""
        if self._waiting is not None and self._waiting[0] == accepted:
            self._own = self._waiting[1]
        self._waiting = None

    def respond(self, kind: str, letter: Letter) -> Letter:
        """``join``, ``work`` or ``leave``, by the kind of a message.

        Raises:
          KeyError: for another kind.
        """
        return {JOIN: self.join, WORK: self.work, LEAVE: self.leave}[kind](letter)

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


def join(
    server: str,
    client: int,
    data,
    *,
    all_rows: bool = False,
    expected: str | None = None,
    budget=None,
    **how,
) -> str:
    """Takes part until the server says that it is over.

    Args:
      server: ``HOST:PORT``.
      client: its number.
      data: ``jaxanon.datasets.Data``; see ``Device``.
      all_rows: all training windows are this client's.
      expected: digest that the server printed; None agrees to any settings.
      budget: file that counts the rounds it answers; see ``Device``.
      **how: of ``take_part``.

    Returns:
      What the server said at the end.

    Raises:
      ConnectionError, ValueError: as ``take_part``.
    """
    device = Device(client, data, all_rows=all_rows, expected=expected, budget=budget)
    return take_part(server, device, **how)


def take_part(
    server: str,
    device: Device,
    *,
    root_certificate=None,
    private_key=None,
    insecure: bool = False,
    wait_s: float = 90.0,
) -> str:
    """Answers a server as ``device`` does until it is over.

    Args:
      server: ``HOST:PORT``.
      device: ``Device``.
      root_certificate: path of a PEM file that the server's certificate follows from;
        None is plain HTTP.
      private_key: path of an ECDSA key whose public half the server knows.
      insecure: plain HTTP beyond this machine.
      wait_s: seconds without a server after which to give up.

    Returns:
      What the server said at the end.

    Raises:
      ConnectionError: if nobody answers there, or not for such a client.
      ValueError: if client and server do not agree, or the server gave up.
      FileNotFoundError, ValueError: of ``credentials``.
    """
    host, port = credentials(server, root_certificate, private_key, insecure)
    client_transport.wait_for_server(host, port, wait_s)
    client_transport.answer(
        *(device.respond, lambda: device.why is not None),
        host=host,
        port=port,
        root_certificate=root_certificate,
        private_key=private_key,
        wait_s=wait_s,
    )
    if device.failed:
        raise ValueError(
            f"client {device.client} left the training at {server}: {device.why}"
        )
    return device.why or ""


def credentials(server: str, root_certificate, private_key, insecure: bool):
    """Looks at what a client asks by: ``(host, port)``; arguments of ``take_part``.

    Raises:
      FileNotFoundError: for a file that is not there.
      ValueError: for settings that do not go together, or a file of another kind.
    """
    host, port = checks.host_and_port(server)
    if root_certificate is None:
        if private_key is not None:
            raise ValueError("private_key needs TLS; give --root-certificate too.")
        if not local(host) and not insecure:
            raise ValueError(
                f"{host} is another machine, and without TLS all could read along; "
                "give --root-certificate, or --insecure."
            )
    if private_key is not None:
        keys.private_key(private_key)
    if root_certificate is not None:
        keys.root_certificate(root_certificate)
    return host, port
