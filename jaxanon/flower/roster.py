"""Who is there: a server's clients by number, and letters to them and back."""

import time
from collections.abc import Callable

from flwr.app import Message
from flwr.common.constant import ErrorCode

from jaxanon import __version__
from jaxanon.flower.records import Letter, to_letter, to_record

POLL_S = 0.05
JOIN, WORK, LEAVE = "query.join", "train", "query.leave"
EXPIRED = (ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE)


class Roster:
    """A server's clients. A class because they come and go while it waits.

    Args:
      grid: Flower's.
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
        grid,
        terms: Letter,
        digest: str,
        num_clients: int,
        nodes: dict[int, int],
        timeout_s: float,
        refuse: Callable,
        tell: Callable,
    ):
        self._grid, self._terms, self._digest = grid, terms, digest
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
        for reply in self._grid.pull_messages(waiting) if waiting else []:
            node = waiting[reply.metadata.reply_to_message_id]
            if _expired(reply):
                del self._asked[node]  # It is invited anew, if it is there.
                continue
            self._asked[node] = None  # Asked and answered.
            self._heard(node, reply)
        online = set(self._grid.get_node_ids())
        for client, node in [*self._nodes.items()]:
            if node not in online:
                self._gone(client, "went away")
        for node in set(self._asked) - online:
            del self._asked[node]
        # It may be lost on the way; who was slow to answer is quick the second time.
        for node in online - set(self._asked):
            letter = self._to(node, JOIN, self._terms, self._timeout_s)
            ids = self._grid.push_messages([letter])
            self._asked[node] = ids[0] if ids else None

    def _heard(self, node, reply):
        try:
            facts = _letter(reply).facts
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
                message = self._to(self._nodes[client], WORK, letter, self._timeout_s)
                for name in self._grid.push_messages([message]):
                    waiting[name] = client
        replies, end = {}, time.monotonic() + self._timeout_s
        while waiting and time.monotonic() < end:
            for reply in self._grid.pull_messages(waiting):
                if _expired(reply):
                    continue  # Flower's clock runs out a moment before ours.
                client = waiting.pop(reply.metadata.reply_to_message_id, None)
                try:
                    replies[client] = _letter(reply)
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

    def dismiss(self, why: str, *, failed: bool, wait_s: float = 5.0) -> None:
        """Tells all who are there that it is over, and waits until they heard it."""
        names = []
        for client in self.present:
            names += self._dismiss(self._nodes[client], client, why, failed=failed)
        end = time.monotonic() + wait_s
        while names and time.monotonic() < end:
            heard = self._grid.pull_messages(names)
            names = list(set(names) - {r.metadata.reply_to_message_id for r in heard})
            time.sleep(POLL_S)

    def _dismiss(self, node, client, why, *, failed):
        facts = {"why": why, "failed": failed, "accepted": self.accepted.get(client)}
        letter = Letter(facts, {})
        return self._grid.push_messages([self._to(node, LEAVE, letter, 60.0)])

    def _to(self, node, kind, letter, ttl):
        return Message(to_record(letter), node, kind, ttl=ttl)


def _expired(reply):
    """Whether it only says that a question is answered no more."""
    return reply.has_error() and reply.error.code in EXPIRED


def _printable(said) -> str:
    """What somebody said, in a line that does nothing to a terminal."""
    return "".join(filter(str.isprintable, str(said)))[:500]


def _letter(reply):
    """A reply's letter; ValueError if it has none."""
    if reply.has_error():
        raise ValueError(f"it failed ({reply.error.reason}).")
    return to_letter(reply.content)
