"""The clients of a server, and the exchange of payloads with them."""

import time
from collections.abc import Callable

from jaxanon import __version__
from jaxanon.flower.records import JOIN, LEAVE, WORK, Failure, Payload

POLL_S = 0.2
FAREWELL_S = 30.0  # Time for Flower to deliver a last message and its reply.


class Roster:
    """Clients of a server, which may join and leave at any time.

    Args:
      link: ``server_transport.Link``.
      terms: payload with the terms that clients must accept.
      digest: digest of the terms.
      num_clients: maximum number of clients.
      nodes: client index of each node that has a key. Empty without keys.
      timeout_s: seconds to wait for a reply. Then the client is invited again.
      refuse: callback for rejected clients and messages, ``(client or None, why)``.
      log: callback for lines about clients that join and leave.
    """

    def __init__(
        self,
        link,
        terms: Payload,
        digest: str,
        num_clients: int,
        nodes: dict[int, int],
        timeout_s: float,
        refuse: Callable,
        log: Callable,
    ):
        self._link, self._terms, self._digest = link, terms, digest
        self._num_clients, self._keyed, self._timeout_s = num_clients, nodes, timeout_s
        self._refuse, self._log = refuse, log
        self._nodes, self._asked = {}, {}  # client: node; node: id of its invitation
        self.accepted = {}  # client: name of its last message that was merged

    @property
    def present(self) -> list[int]:
        """Indices of the connected clients."""
        return sorted(self._nodes)

    def poll(self) -> None:
        """Invites new nodes, admits clients that accept, removes those that left."""
        waiting = {asked: node for node, asked in self._asked.items() if asked}
        for name, reply in (self._link.pull(waiting) if waiting else {}).items():
            node = waiting[name]
            if isinstance(reply, Failure) and not reply.from_client:
                del self._asked[node]  # Invited again while it is online.
                continue
            self._asked[node] = None  # It has replied.
            self._admit(node, reply)
        online = set(self._link.nodes())
        for client, node in [*self._nodes.items()]:
            if node not in online:
                self._remove(client, "left")
        for node in set(self._asked) - online:
            del self._asked[node]
        # Invitations can be lost; a client that already compiled replies quickly.
        for node in online - set(self._asked):
            self._asked[node] = self._link.push(
                node, JOIN, self._terms, self._timeout_s
            )

    def _admit(self, node, reply):
        try:
            facts = _read(reply).facts
            client, version = facts.get("client"), facts.get("version")
            if "why" in facts:
                return self._refuse(self._keyed.get(node), _printable(facts["why"]))
            if version != __version__ or facts.get("digest") != self._digest:
                raise ValueError(
                    f"it is jaxanon {version} and the server {__version__}, or their "
                    "settings differ; install the same version on both."
                )
            if not isinstance(client, int) or client not in range(self._num_clients):
                raise ValueError(f"client must be an index, got {client!r}.")
            if self._keyed and self._keyed.get(node) != client:
                raise ValueError(
                    f"a process with the key of client {self._keyed.get(node)} says "
                    f"that it is client {client}."
                )
        except Exception as error:  # Untrusted input can raise anything.
            why = _printable(error)
            self._refuse(self._keyed.get(node), why)
            return self._dismiss(node, None, why, failed=True)
        before = self._nodes.get(client)
        if before not in (None, node):
            why = f"another process joined as client {client}."
            self._dismiss(before, client, why, failed=True)
        self._nodes[client] = node
        self._log(f"Client {client} joined; {len(self._nodes)} in total.")
        return None

    def ask(self, ids: list[int], facts: dict, arrays: dict) -> dict[int, Payload]:
        """Sends a payload to the connected clients in ``ids``; returns timely replies.

        A client that misses the deadline must join again before it is asked again.
        """
        waiting = {}
        for client in ids:
            if client in self._nodes:
                with_accepted = facts | {"accepted": self.accepted.get(client)}
                payload = Payload(with_accepted, arrays)
                node, later = self._nodes[client], self._timeout_s + FAREWELL_S
                # Flower's time to live must not end before our own timeout.
                if name := self._link.push(node, WORK, payload, later):
                    waiting[name] = client
        replies, end = {}, time.monotonic() + self._timeout_s
        while waiting and time.monotonic() < end:
            for name, reply in self._link.pull(waiting).items():
                client = waiting.pop(name)
                try:
                    replies[client] = _read(reply)
                except ValueError as error:
                    self._refuse(client, _printable(error))
            self.poll()
            here = {name for name, client in waiting.items() if client in self._nodes}
            for name in set(waiting) - here:
                self._refuse(waiting.pop(name), "it left.")
            if waiting:
                time.sleep(POLL_S)
        for client in waiting.values():
            self._refuse(client, f"it did not reply within {self._timeout_s:g} s.")
            self._remove(client, "does not reply")
        return replies

    def _remove(self, client, reason):
        node = self._nodes.pop(client)
        self._asked.pop(node, None)  # Invited again while it is online.
        self._log(f"Client {client} {reason}; {len(self._nodes)} remain.")

    def dismiss(self, why: str, *, failed: bool, wait_s: float = FAREWELL_S) -> None:
        """Sends all clients the reason for the end; waits until they confirm it."""
        names = []
        for client in self.present:
            names += self._dismiss(self._nodes[client], client, why, failed=failed)
        end = time.monotonic() + wait_s
        while names and time.monotonic() < end:
            names = list(set(names) - set(self._link.pull(names)))
            time.sleep(POLL_S)

    def _dismiss(self, node, client, why, *, failed):
        facts = {"why": why, "failed": failed, "accepted": self.accepted.get(client)}
        name = self._link.push(node, LEAVE, Payload(facts, {}), 60.0)
        return [name] if name else []


def _printable(message) -> str:
    """Returns an untrusted message as one line without control characters."""
    return "".join(filter(str.isprintable, str(message)))[:500]


def _read(reply: Payload | Failure) -> Payload:
    """Returns a reply's payload; raises ValueError if there was a failure."""
    if isinstance(reply, Failure):
        raise ValueError(f"it failed ({reply.why}).")
    return reply
