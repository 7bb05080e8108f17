"""The server's end of Flower: how long a run is alive, and who waits for whom."""

import concurrent.futures
import contextlib
import hashlib
import sys
import time
from unittest import mock

import numpy as np
import pytest

HOW = {"certificate": None, "private_key": None, "public_keys": None, "upload_s": 1.0}


@pytest.mark.parametrize("beat_s", [0.1, 100.0])
def test_a_server_is_alive_as_long_as_it_beats(port, monkeypatch, beat_s):
    from flwr.supercore.corestate import in_memory_corestate

    from jaxanon.flower import link

    monkeypatch.setattr(in_memory_corestate, "HEARTBEAT_PATIENCE", 1)
    monkeypatch.setattr(in_memory_corestate, "HEARTBEAT_DEFAULT_INTERVAL", 0.5)
    monkeypatch.setattr(link, "BEAT_S", beat_s)
    with link.serving(link.listen("127.0.0.1", port), **HOW) as (grid, _):
        grid.pull_messages([])  # From here on it has half a second.
        time.sleep(1.0)
        if beat_s < 1:
            assert list(grid.pull_messages([])) == []
        else:
            with pytest.raises(ConnectionError, match="Flower ended this run.*--resum"):
                grid.pull_messages([])


def _answered(grid, address):
    """Two nodes answer, of which the first uploads its answer at the next step."""
    from flwr.app import Message
    from flwr.proto.fleet_pb2 import PullMessagesRequest

    from jaxanon.flower import node
    from jaxanon.flower.records import Letter, to_record

    uploads = []
    with contextlib.ExitStack() as stack:
        ends = [
            stack.enter_context(node._connected(address, None, None, 1.0)) for _ in "ab"
        ]
        letter = lambda n: to_record(Letter({"n": n}, {"x": np.arange(n)}))
        ids = grid.push_messages(
            [Message(letter(1), end.node_id, "train", ttl=60.0) for _, end in ends]
        )
        later = lambda *given: uploads.append(given)
        for number, (client, end) in enumerate(ends):
            found = client.PullMessages(PullMessagesRequest(node=end))
            reply = Message(letter(5), reply_to=node._fetched(client, end, found))
            with mock.patch.object(
                node,
                "push_object_contents_from_iterable",
                node.push_object_contents_from_iterable if number else later,
            ):
                node._send(client, end, reply)
        yield ids
        node.push_object_contents_from_iterable(*uploads[0])
        yield ids


@pytest.mark.parametrize("late_s", [0.0, 1.2])
def test_a_slow_upload_costs_nobody_elses_answer(port, late_s):
    """One that announced its answer has a second to bring it."""
    from jaxanon.flower import link

    with link.serving(link.listen("127.0.0.1", port), **HOW) as (grid, _):
        steps = _answered(grid, f"127.0.0.1:{port}")
        slow, quick = next(steps)
        start = time.monotonic()
        asked_by = lambda found: [r.metadata.reply_to_message_id for r in found]
        assert asked_by(grid.pull_messages([slow, quick])) == [quick]
        assert time.monotonic() - start < 0.5
        assert grid.pull_messages([slow]) == []
        time.sleep(late_s)
        if late_s:
            assert grid.pull_messages([slow]) == []
            return
        next(steps)
        assert asked_by(grid.pull_messages([slow])) == [slow]


def test_the_machine_s_own_address_may_be_a_new_one():
    from jaxanon.flower import link

    try:
        found = link.listen("::1", 0)
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with found:
        assert found.getsockname()[0] == "::1"


def test_messages_that_share_a_part_come_and_go_at_the_same_time(port):
    """Without the lock a sixth of them fails, and what they held stays for ever."""
    from flwr.proto.message_pb2 import ObjectTree

    from jaxanon.flower import link

    tree = lambda name, *parts: ObjectTree(
        object_id=hashlib.sha256(name.encode()).hexdigest(), children=parts
    )
    shared = tree("shared")

    def come_and_go(who):
        for number in range(1000):
            message = tree(f"{who}.{number}", shared)
            store.preregister(grid.run.run_id, message)
            store.delete(message.object_id)

    usual = sys.getswitchinterval()
    with link.serving(link.listen("127.0.0.1", port), **HOW) as (grid, _):
        store = grid._state.object_store
        sys.setswitchinterval(1e-6)
        try:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                assert [*pool.map(come_and_go, range(4))] == [None] * 4
        finally:
            sys.setswitchinterval(usual)
        assert len(store) == 0
