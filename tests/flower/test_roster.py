"""The roster of clients, over a fake link."""

import numpy as np
import pytest

from jaxanon import __version__
from jaxanon.flower import records
from jaxanon.flower.records import WORK, Failure, Payload
from jaxanon.flower.roster import Roster

FACTS = {"client": 3, "version": __version__, "digest": "same"}


class Link:
    """Link to one node, 7, that joins at once, and whose work ``work`` answers."""

    def __init__(self, work=None, joins=None):
        self.work, self.joins = work, iter(joins or [])
        self.kinds, self.ttls = [], []

    def nodes(self):
        return [7]

    def push(self, node, kind, payload, ttl):
        self.kinds.append(kind)
        self.ttls.append(ttl)
        return str(len(self.kinds) - 1)

    def pull(self, names):
        found = {name: self._reply(self.kinds[int(name)]) for name in names}
        return {name: reply for name, reply in found.items() if reply}

    def _reply(self, kind):
        return self.work if kind == WORK else next(self.joins, Payload(FACTS, {}))


@pytest.fixture
def roster():
    """Returns ``roster(link)``: the roster, and its rejections."""

    def made(link, nodes=None):
        refused = []
        refuse = lambda *row: refused.append(row)
        terms, log = Payload({}, {}), lambda said: None
        return Roster(link, terms, "same", 4, nodes or {}, 0.2, refuse, log), refused

    return made


@pytest.mark.parametrize(
    ("work", "why", "present"),
    [
        (None, "it did not reply within 0.2 s.", []),
        (Failure("OSError", True), "it failed (OSError).", [3]),
        (Failure("its process ended", False), "it failed (its process ended).", [3]),
    ],
)
def test_why_work_that_failed_is_refused(roster, work, why, present):
    found, refused = roster(link := Link(work))
    found.poll()
    found.poll()
    assert found.present == [3]
    assert found.ask([3], {}, {}) == {}
    assert refused == [(3, why)] and found.present == present
    # Flower's timeout, which reports less, ends after ours.
    assert link.ttls[link.kinds.index(WORK)] > 0.2


def test_who_could_not_bring_its_yes_is_asked_again(roster):
    found, refused = roster(link := Link(joins=[Failure("no such message", False)]))
    for _ in range(3):  # Invited, given up, invited again, answered.
        found.poll()
    assert found.present == [3] and not refused and len(link.kinds) == 2


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ({7: 1}, "a process with the key of client 1 says that it is client 3."),
        # Any other process that Flower admits lacks a key that the server knows.
        ({8: 3}, "a process with the key of client None says that it is client 3."),
    ],
)
def test_a_client_has_the_key_of_its_number(roster, nodes, why):
    found, refused = roster(link := Link(), nodes)
    found.poll()
    found.poll()
    assert refused == [(nodes.get(7), why)] and found.present == []
    assert link.kinds[-1] == "query.leave"


def test_letters_share_no_part():
    """Flower stores equal parts once, and deletes them with their first owner."""
    payload = Payload({"a": 1}, {"x": np.zeros(3)})
    first, second = (records.to_record(payload) for _ in range(2))
    for name in ("header", "numbers"):
        assert first[name].object_id != second[name].object_id
    assert records.to_payload(first).facts == records.to_payload(second).facts
