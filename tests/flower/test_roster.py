"""Who is there, heard through a grid that is made up."""

import pytest

pytest.importorskip("flwr", reason="needs the extra `flower`")

from flwr.app import Error, Message
from flwr.common.constant import ErrorCode
from flwr.supercore.task_identity import TaskIdentity

from jaxanon import __version__
from jaxanon.flower.records import Letter, to_record
from jaxanon.flower.roster import WORK, Roster

FACTS = {"client": 3, "version": __version__, "digest": "same"}


class Grid:
    """One node; its replies to work are errors, ``code``."""

    def __init__(self, code):
        self.code, self.sent = code, []

    def get_node_ids(self):
        return [7]

    def push_messages(self, messages):
        self.sent += messages
        for message in messages:  # Flower's link does so.
            message.metadata.__dict__["_message_id"] = str(len(self.sent))
        return [message.metadata.message_id for message in messages]

    def pull_messages(self, ids):
        asked = [message for message in self.sent if message.metadata.message_id in ids]
        return [self._reply(message) for message in asked]

    def _reply(self, message):
        if message.metadata.message_type == WORK:
            return Message(Error(self.code, "so it is"), reply_to=message)
        return Message(to_record(Letter(FACTS, {})), reply_to=message)


@pytest.mark.parametrize(
    ("code", "why", "present"),
    [
        (ErrorCode.MESSAGE_UNAVAILABLE, "it did not answer in 0.2 s.", []),
        (ErrorCode.REPLY_MESSAGE_UNAVAILABLE, "it did not answer in 0.2 s.", []),
        (ErrorCode.CLIENT_APP_RAISED_EXCEPTION, "it failed (so it is).", [3]),
    ],
)
def test_why_work_that_failed_is_refused(code, why, present, monkeypatch):
    for name in ("_run_id", "_task_id", "_node_id"):  # As if a server ran.
        monkeypatch.setattr(TaskIdentity, name, 1)
    refused, said = [], []
    roster = Roster(
        Grid(code),
        Letter({}, {}),
        "same",
        4,
        {},
        0.2,
        lambda *row: refused.append(row),
        said.append,
    )
    roster.poll()
    roster.poll()
    assert roster.present == [3]
    answers = roster.ask([3], {}, {})
    assert answers == {}
    assert refused == [(3, why)]
    assert roster.present == present


class Late(Grid):
    """Its first reply never arrives whole, of which Flower says that there is none."""

    def _reply(self, message):
        if len(self.sent) == 1:
            code = ErrorCode.MESSAGE_UNAVAILABLE
            return Message(Error(code, "no such message"), reply_to=message)
        return super()._reply(message)


def test_who_could_not_bring_its_yes_is_asked_again(monkeypatch):
    for name in ("_run_id", "_task_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    refused, grid = [], Late(0)
    ends = lambda *row: refused.append(row), lambda said: None
    roster = Roster(grid, Letter({}, {}), "same", 4, {}, 0.2, *ends)
    for _ in range(3):  # Invited, given up and invited anew, heard.
        roster.poll()
    assert roster.present == [3] and not refused and len(grid.sent) == 2
