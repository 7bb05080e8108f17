"""Who is there: a server's clients by number, and letters to them and back."""

import time
from collections.abc import Callable

from jaxanon import __version__
from jaxanon.flower.records import JOIN, LEAVE, WORK, Failure, Letter

POLL_S = 0.2
FAREWELL_S = 30.0  # For Flower to hand out and bring back a last message.


class Roster:
    """A server's clients. A class because they come and go while it waits.

    Args:
      link: ``server_transport.Link``.
      terms: letter that says what clients must agree to.
      digest: of the terms.
      num_clients: that there may be.
      nodes: client of each node that has a key; empty where nobody has.
      timeout_s: seconds that a client has to answer; then it is invited anew.
      refuse: told of clients that are not taken, ``(client or None, why)``.
      tell: told of clients that come and go, in a sentence.
    """

    def __init__(
        self,
        link,
        terms: Letter,
        digest: str,
        num_clients: int,
        nodes: dict[int, int],
        timeout_s: float,
        refuse: Callable,
        tell: Callable,
    ):
        self._link, self._terms, self._digest = link, terms, digest
        self._num_clients, self._keyed, self._timeout_s = num_clients, nodes, timeout_s
        self._refuse, self._tell = refuse, tell
        self._nodes, self._asked = {}, {}  # client: node; node: id of its invitation
        self.accepted = {}  # client: name of its last message that counted

    @property
    def present(self) -> list[int]:
        """Numbers of the clients that are there."""
        return sorted(self._nodes)

    def poll(self) -> None:
        """Invites who came, hears who agrees, forgets who went."""
        waiting = {asked: node for node, asked in self._asked.items() if asked}
        for name, reply in (self._link.pull(waiting) if waiting else {}).items():
            node = waiting[name]
            if isinstance(reply, Failure) and not reply.told:
                del self._asked[node]  # It is invited anew, if it is there.
                continue
            self._asked[node] = None  # Asked and answered.
            self._heard(node, reply)
        online = set(self._link.nodes())
        for client, node in [*self._nodes.items()]:
            if node not in online:
                self._gone(client, "went away")
        for node in set(self._asked) - online:
            del self._asked[node]
        # It may be lost on the way; who was slow to answer is quick the second time.
        for node in online - set(self._asked):
            self._asked[node] = self._link.push(
                node, JOIN, self._terms, self._timeout_s
            )

    def _heard(self, node, reply):
        try:
            facts = _read(reply).facts
            client, version = facts.get("client"), facts.get("version")
            if "why" in facts:
                return self._refuse(self._keyed.get(node), _printable(facts["why"]))
            if version != __version__ or facts.get("digest") != self._digest:
                raise ValueError(
                    f"it is jaxanon {version} and the server {__version__}, or its "
                    "settings are others; install the same on both."
                )
            if not isinstance(client, int) or client not in range(self._num_clients):
                raise ValueError(f"there is no client number {client!r}.")
            if self._keyed and self._keyed.get(node) != client:
                raise ValueError(
                    f"a process with the key of client {self._keyed.get(node)} says "
                    f"that it is client {client}."
                )
        except Exception as error:  # Whatever a stranger thought of.
            why = _printable(error)
            self._refuse(self._keyed.get(node), why)
            return self._dismiss(node, None, why, failed=True)
        before = self._nodes.get(client)
        if before not in (None, node):
            why = f"another process joined as client {client}."
            self._dismiss(before, client, why, failed=True)
        self._nodes[client] = node
        self._tell(f"Client {client} is there; {len(self._nodes)} in all.")
        return None

    def ask(self, ids: list[int], facts: dict, arrays: dict) -> dict[int, Letter]:
        """A letter to those of ``ids`` who are there; the replies that come in time.

        Who does not answer is not asked again before it says that it is there.
        """
        waiting = {}
        for client in ids:
            if client in self._nodes:
                own = facts | {"accepted": self.accepted.get(client)}
                letter = Letter(own, arrays)
                node, later = self._nodes[client], self._timeout_s + FAREWELL_S
                # Beyond our own clock, so that Flower's does not run out before.
                if name := self._link.push(node, WORK, letter, later):
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
                self._refuse(waiting.pop(name), "it went away.")
            if waiting:
                time.sleep(POLL_S)
        for client in waiting.values():
            self._refuse(client, f"it did not answer in {self._timeout_s:g} s.")
            self._gone(client, "does not answer")
        return replies

    def _gone(self, client, how):
        node = self._nodes.pop(client)
        self._asked.pop(node, None)  # It is invited anew, if it is there.
        self._tell(f"Client {client} {how}; {len(self._nodes)} are there.")

    def dismiss(self, why: str, *, failed: bool, wait_s: float = FAREWELL_S) -> None:
        """Tells all who are there that it is over, and waits until they heard it."""
        names = []
        for client in self.present:
            names += self._dismiss(self._nodes[client], client, why, failed=failed)
        end = time.monotonic() + wait_s
        while names and time.monotonic() < end:
            names = list(set(names) - set(self._link.pull(names)))
            time.sleep(POLL_S)

    def _dismiss(self, node, client, why, *, failed):
        facts = {"why": why, "failed": failed, "accepted": self.accepted.get(client)}
        name = self._link.push(node, LEAVE, Letter(facts, {}), 60.0)
        return [name] if name else []


def _printable(said) -> str:
    """What somebody said, in a line that does nothing to a terminal."""
    return "".join(filter(str.isprintable, str(said)))[:500]


def _read(reply: Letter | Failure) -> Letter:
    """A reply's letter; ValueError if it has none."""
    if isinstance(reply, Failure):
        raise ValueError(f"it failed ({reply.why}).")
    return reply
