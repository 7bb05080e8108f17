"""The server's side of Flower: admission, and waiting."""

import asyncio
import socket
import threading
import time

import httpx
import pytest
from flwr.app import Error, Message, Metadata
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from jaxanon.flower import programs, records, server_transport
from jaxanon.flower.records import Failure, Payload, to_record


def test_the_machine_s_own_address_may_be_a_new_one():
    try:
        found = server_transport.listen("::1", 0)
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with found:
        assert found.getsockname()[0] == "::1"


def test_a_port_of_another_program_is_refused(port):
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(OSError, match=f"cannot bind 127.0.0.1:{port} .*choose"):
            server_transport.listen("127.0.0.1", port)


@pytest.fixture
def asked():
    """Returns ``asked(paths)``.

    The gate's statuses and bodies, and forwarded requests.
    """

    def ask(paths, status=200, said=None):
        through = []

        async def superlink(request):
            body = await request.body()
            through.append((request.url.path, body, request.headers.get("signed")))
            return Response(body[::-1], status)

        app = Starlette(routes=[Route("/{path:path}", superlink, methods=["POST"])])
        inner = httpx.ASGITransport(app)
        log = (said if said is not None else []).append
        gate = server_transport.gate("https://inner", True, log, inner)

        async def all_of_them():
            outside = httpx.ASGITransport(gate)
            async with httpx.AsyncClient(
                transport=outside, base_url="http://here"
            ) as http:
                post = lambda path: http.post(
                    path, content=b"abc", headers={"signed": "yes"}
                )
                found = [await post(path) for path in paths]
                return [(each.status_code, each.content) for each in found]

        return asyncio.run(all_of_them()), through

    return ask


def test_the_gate_lets_what_supernodes_ask_through_and_nothing_else(asked):
    """Flower's other interfaces would run any code and accept any key."""
    good = ["/v1/fleet/pull-messages", "/v2/fleet/push-object"]
    bad = ["/v1/control/register-node", "/v1/control/start-run", "/docs", "/"]
    bad += ["/v1/runtime/acquire-task", "/v1/fleet/../control/start-run"]
    bad += ["/v1/fleet/%2e%2e/control/start-run", "/v1/fleet/a/b", "/x/v1/fleet/a"]
    found, through = asked(good + bad)
    assert found == [(200, b"cba")] * 2 + [(404, b"")] * len(bad)
    assert through == [(path, b"abc", "yes") for path in good]


def test_clients_that_flower_refuses_are_told_once_a_minute(asked):
    said = []
    found, _ = asked(["/v1/fleet/activate-node"] * 3, status=400, said=said)
    assert [status for status, _ in found] == [400] * 3
    (line,) = said
    assert line.startswith("Rejected a client whose key is not in --client-keys")
    asked(["/v1/fleet/pull-messages"], status=404, said=said)  # The run is over.
    assert len(said) == 1


class Grid:
    """Grid that replies to ``quick`` and ``lost``; ``slow`` waits for its release."""

    def __init__(self):
        self.go = threading.Event()

    def get_node_ids(self):
        return [7]

    def push_messages(self, messages):
        self.sent = [*messages]
        return ["quick"]

    def pull_messages(self, names):
        (name,) = names
        if name == "slow":
            assert self.go.wait(20)
        times = {"created_at": time.time(), "ttl": 60.0}
        metadata = Metadata(1, "a", 7, 1, name, "", message_type="train", **times)
        if name == "lost":
            return [Message(error=Error(5, "expired"), metadata=metadata)]
        payload = to_record(Payload({"of": name}, {}))
        return [Message(content=payload, metadata=metadata)]


def _come(link, *names):
    """Returns the replies with these names that arrive within 10 s."""
    found, end = {}, time.monotonic() + 10
    while set(found) != set(names) and time.monotonic() < end:
        found |= link.pull(set(names) - set(found))
    return found


@pytest.fixture
def relayed(monkeypatch):
    """Returns a grid, and a link to the ServerApp that has it."""
    grid = Grid()
    with programs.running() as flower:
        for name in (programs.ADDRESS, programs.KEY):
            monkeypatch.setenv(name, flower.env[name])
        came, ready = [], threading.Event()
        flower.serve(lambda connection: (came.append(connection), ready.set()))
        app = threading.Thread(target=records.relay, args=(grid, None), daemon=True)
        app.start()
        assert ready.wait(10)
        with came[0] as connection:
            yield grid, server_transport.Link(connection)
            grid.go.set()
            connection.send(None)
            app.join(10)
        assert not app.is_alive()


def test_a_slow_upload_costs_nobody_elses_answer(relayed):
    grid, link = relayed
    assert link.nodes() == [7]
    assert link.pull(["slow", "quick", "lost"]) == {}
    found = _come(link, "quick", "lost")
    assert found["quick"] == Payload({"of": "quick"}, {})
    assert found["lost"] == Failure("expired", False)
    assert link.pull(["slow"]) == {}
    grid.go.set()
    assert _come(link, "slow") == {"slow": Payload({"of": "slow"}, {})}


def test_a_run_that_flower_ended_is_told(relayed):
    _, link = relayed
    link._connection.send(None)
    with pytest.raises(ConnectionError, match="Flower ended this run.*--resume"):
        link.nodes()
        link.nodes()
    link._connection.send = lambda _: None  # It has already ended.
