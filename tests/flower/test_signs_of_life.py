"""A client's signs of life, and that none comes once it went."""

import contextlib
import threading
import time
from unittest import mock

import pytest
from flwr.proto.fleet_pb2 import ActivateNodeResponse

from jaxanon.flower import node


def test_a_sign_of_life_on_its_way_comes_before_the_farewell(monkeypatch):
    server, sent = mock.MagicMock(), []
    server.__enter__.return_value = server
    server.ActivateNode.return_value = ActivateNodeResponse(node_id=7)
    going = threading.Event()

    def heartbeat(request):
        going.set()
        time.sleep(0.2)
        sent.append("alive")

    server.SendNodeHeartbeat = heartbeat
    server.DeactivateNode = lambda request: sent.append("gone")
    address = lambda *_, **__: server
    monkeypatch.setattr(node.FleetHttpClient, "from_server_address", address)
    monkeypatch.setattr(node, "BEAT_S", 0.02)
    with node._connected("here:1", None, None, 1.0):
        assert going.wait(5.0)
    assert sent[-2:] == ["alive", "gone"]


@pytest.mark.parametrize("over", [True, False])
def test_a_client_that_was_closed_sends_no_sign_of_life(over):
    """It is an error but for one that goes at that very moment."""
    told = mock.Mock()
    told.wait.side_effect = [False, True]
    told.is_set.return_value = over
    closed = mock.Mock()
    closed.SendNodeHeartbeat.side_effect = RuntimeError("the client has been closed")
    with contextlib.nullcontext() if over else pytest.raises(RuntimeError):
        node._beat(closed, node.Node(node_id=7), told)
    assert closed.SendNodeHeartbeat.call_count == 1
