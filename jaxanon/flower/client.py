"""A client, which accepts a server's terms, answers its rounds and keeps its state."""

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
from jaxanon.flower.records import JOIN, LEAVE, WORK, Payload
from jaxanon.flower.settings import local


def split_algorithm(method) -> engine_exchange.Parts:
    """Splits a method's rounds into messages; a guarantee drops clients' losses.

    The noise of a guarantee covers the averaged update and no other statistics.
    """
    parts = engine_exchange.split_algorithm(method.federation.algorithm)
    return parts if method.guarantee is None else _without_losses(parts)


@functools.lru_cache(maxsize=8)  # As ``exchange.split_algorithm``.
def _without_losses(parts):
    def without_losses(exchange):
        def reply(*args):
            (sent, _), weight, own = exchange.reply(*args)
            return (sent, {}), weight, own

        return exchange._replace(reply=reply)

    return parts._replace(exchanges=tuple(map(without_losses, parts.exchanges)))


class _Answered(NamedTuple):
    """Last answer of a client with a privacy guarantee."""

    round: int
    digest: bytes  # of the request
    reply: Payload
    own: Any


class Device:
    """A client and the state that it keeps between messages.

    With a privacy guarantee, it answers each round at most once, in increasing order,
    within the paid number of rounds. A repeated request gets the same reply. A file
    counts the rounds across restarts.

    ``join``, ``work`` and ``leave`` answer payloads of the server. ``why`` is None
    during the training and the reason for its end afterwards. ``failed`` is True if it
    ended with an error.

    Args:
      client: index of the client.
      data: the client's data. Only training windows of subject ``client`` are used,
        unless ``all_rows``.
      all_rows: whether all training windows belong to this client.
      expected: digest that the terms must have. None accepts any terms.
      budget: path of the file that counts answered rounds. Required with a privacy
        guarantee; see ``terms.budget``.
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
        self._waiting: tuple | None = None  # (message name, state after it)
        self._answered: _Answered | None = None

    def join(self, payload: Payload) -> Payload:
        """Accepts the terms, or returns why not."""
        try:
            self._join(payload)
        except (ValueError, TypeError, KeyError, LookupError) as error:
            self._end(str(error), failed=True)
            # The full message may describe the client's windows.
            if isinstance(error, agreements.Unfit):
                why = error.public_message
            else:
                why = str(error)
            return Payload({"why": why, "version": __version__}, {})
        facts = {"client": self.client, "version": __version__}
        digest = agreements.digest(payload.facts["terms"])
        return Payload(facts | {"digest": digest}, {})

    def _join(self, payload):
        terms = payload.facts["terms"]
        method = agreements.agreed(terms, self._data.spec, self._expected)
        number = len(terms["clients"])
        if self.client not in range(number):
            raise ValueError(
                f"--client must be from 0 to {number - 1}, got {self.client}."
            )
        if self._terms == terms:
            return  # Reconnected, with its state intact.
        if self._answered is not None:
            raise ValueError(
                "the server's settings changed after this client drew noise for the "
                "old ones; restart the client to join a new training."
            )
        windows = self._data.train
        if not self._all_rows:
            mine = windows.labels["subject"] == terms["clients"][self.client]
            windows = agreements.of_subject(windows, mine)
        self._rows = agreements.own_windows(method, windows, self.client, terms)
        # The key determines the noise, so under a guarantee it stays on the client.
        self._guarantee: Any = method.guarantee
        self._budget = agreements.budget(self._budget_path, self._guarantee)
        init_key, key = jax.random.split(jax.random.key(terms["seed"]))
        self._key = key if self._guarantee is None else _secret_key(key)
        state = jax.eval_shape(method.init, init_key)
        self._hyper = jax.jit(lambda key: method.init(key).hyper)(init_key)
        self._like = engine_exchange.broadcast_state(state)
        first = jax.eval_shape(engine_exchange.initial_own, state)
        self._own = engine_exchange.unpack(payload.arrays, first)
        self._own = jax.tree.map(jnp.asarray, self._own)
        exchanges = split_algorithm(method).exchanges
        self._programs = [jax.jit(exchange.reply) for exchange in exchanges]
        self._terms, self._waiting = terms, None

    def work(self, payload: Payload) -> Payload:
        """Returns the reply to a round's request.

        Raises:
          ValueError: if arrays or hyper-parameters differ from the terms, or, with a
            guarantee, if the round was answered before or the budget is spent.
        """
        facts = payload.facts
        self._settle(facts["accepted"])
        state = engine_exchange.unpack(payload.arrays, self._like)
        _check_hyper(state.hyper, self._hyper)
        state = state._replace(hyper=self._hyper)
        if self._guarantee is None:
            reply, own = self._reply(facts, state)
        else:
            reply, own = self._reply_once(payload, state)
        self._waiting = facts["name"], own
        return reply

    def _reply(self, facts, state):
        program, step = self._programs[facts["exchange"]], np.int32(facts["step"])
        message, weight, own = program(
            *(self._key, state, step, np.int32(self.client), self._rows, self._own)
        )
        return Payload({"weight": float(weight)}, engine_exchange.pack(message)), own

    def _reply_once(self, payload, state):
        """Replies without reusing noise for different requests."""
        facts, number, last = payload.facts, int(state.round), self._answered
        digest = _digest(facts["exchange"], facts["step"], payload.arrays)
        if last is not None and (number, digest) == (last.round, last.digest):
            return last.reply, last.own
        if number <= (-1 if last is None else last.round):
            raise ValueError(
                f"round must be after {-1 if last is None else last.round}, which this "
                f"client answered, got {number} with other numbers; restart the client "
                "to draw new noise if the server returned to an earlier round."
            )
        try:
            if self._budget is not None:
                self._budget.check(1)
            reply, own = self._reply(facts, state)
            if self._budget is not None:
                self._budget.charge(1)  # On disk before the reply is sent.
        except Exhausted:
            raise ValueError(
                f"the noise covers {self._guarantee.rounds} rounds, all of which this "
                "client answered; agree on more rounds before the training."
            ) from None
        self._answered = _Answered(number, digest, reply, own)
        return reply, own

    def _settle(self, accepted):
        """Commits the client's state after the server has merged its message."""
        if self._waiting is not None and self._waiting[0] == accepted:
            self._own = self._waiting[1]
        self._waiting = None

    def respond(self, kind: str, payload: Payload) -> Payload:
        """Dispatches a payload to ``join``, ``work`` or ``leave`` by its kind.

        Raises:
          KeyError: if the kind is unknown.
        """
        return {JOIN: self.join, WORK: self.work, LEAVE: self.leave}[kind](payload)

    def leave(self, payload: Payload) -> Payload:
        """Ends the training, with the server's reason."""
        self._settle(payload.facts["accepted"])
        self._end(payload.facts["why"], failed=payload.facts["failed"])
        return Payload({}, {})

    def _end(self, why, *, failed):
        self.why, self.failed = why, failed

    @property
    def own(self):
        """State that never leaves the client; None if the method keeps none."""
        return self._own


def _secret_key(like):
    """Returns a key of the same type as ``like`` from the operating system."""
    data = jax.eval_shape(jax.random.key_data, like)
    drawn = secrets.token_bytes(data.size * data.dtype.itemsize)
    return jax.random.wrap_key_data(jnp.asarray(np.frombuffer(drawn, data.dtype)))


def _check_hyper(received, agreed):
    """Raises ValueError if the server changes hyper-parameters after joining."""
    for name, value in agreed.items():
        if not np.array_equal(received[name], value):
            raise ValueError(
                f"{name} must be {np.asarray(value)}, as in the terms, but the server "
                f"sent {np.asarray(received[name])}; settings change only by new terms."
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
    """Takes part in a training until the server ends it.

    Args:
      server: ``HOST:PORT``.
      client: index of the client.
      data: ``jaxanon.datasets.Data``; see ``Device``.
      all_rows: whether all training windows belong to this client.
      expected: digest that the server printed. None accepts any settings.
      budget: path of the file that counts answered rounds; see ``Device``.
      **how: keyword arguments of ``take_part``.

    Returns:
      The server's final message.

    Raises:
      ConnectionError, ValueError: see ``take_part``.
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
    """Answers a server's messages with ``device`` until the server ends the training.

    Args:
      server: ``HOST:PORT``.
      device: ``Device``.
      root_certificate: path of a PEM file that verifies the server's certificate. None
        uses plain HTTP.
      private_key: path of an ECDSA key whose public key the server has.
      insecure: whether to allow plain HTTP to another machine.
      wait_s: seconds without a server after which to give up.

    Returns:
      The server's final message.

    Raises:
      ConnectionError: if no server answers, or it rejects the client.
      ValueError: if client and server disagree, or the server failed.
      FileNotFoundError, ValueError: see ``credentials``.
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
    """Checks a client's address, certificate and key; returns ``(host, port)``.

    Raises:
      FileNotFoundError: if a file is missing.
      ValueError: if the arguments are inconsistent, or a file is invalid.
    """
    host, port = checks.host_and_port(server)
    if root_certificate is None:
        if private_key is not None:
            raise ValueError("private_key requires TLS; give --root-certificate too.")
        if not local(host) and not insecure:
            raise ValueError(
                f"server {host} is another machine and the connection is not "
                "encrypted; give --root-certificate, or --insecure."
            )
    if private_key is not None:
        keys.private_key(private_key)
    if root_certificate is not None:
        keys.root_certificate(root_certificate)
    return host, port
