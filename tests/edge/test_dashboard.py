"""The dashboard's events, attackers' inferences, and limits."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import urllib.request

import dashboard_stand_ins as stand_ins
import numpy as np
import pytest

from jaxanon.edge import dashboard, page_server
from jaxanon.edge import stream as edge_stream
from jaxanon.edge.types import Window


def _events(address, until):
    """Returns (kind, data) of a page's events, up to the first of kind ``until``."""
    found = []
    with urllib.request.urlopen(f"{address}events", timeout=20) as answer:
        for line in answer:
            name, _, value = line.decode().strip().partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                found.append((kind, json.loads(value)))
                if kind == until:
                    return found
    return found


def _of(events, kind):
    return [data for name, data in events if name == kind]


def test_both_signals_and_what_is_inferred():
    with stand_ins.served(stand_ins.rows(100), speed=None) as (address, _):
        events = _events(address, "end")
    assert events[0][0] == "hello"
    hello = events[0][1]
    assert hello["model"] == "blinder · smartwatch · float32"
    assert (hello["private"], hello["public"]) == (["side"], "exercise")
    assert (hello["window_s"], hello["hop_s"], hello["rate_hz"]) == (0.4, 0.2, 50.0)
    assert [asked["attribute"] for asked in hello["questions"]] == ["side", "exercise"]
    assert _of(events, "origin") == [{"t": 0.0}]
    times = [t for data in _of(events, "raw") for t in data["t"]]
    raw = [row for data in _of(events, "raw") for row in data["x"]]
    np.testing.assert_allclose(times, np.arange(100) / 50)
    safe = _of(events, "safe")
    assert [block["gap"] for block in safe] == [
        "",
        "",
        "the model was too late",
        "",
        "",
    ]
    assert safe[2]["x"] == []
    for index in (0, 1, 3, 4):
        part = np.float64(raw[20 * index : 20 * index + 20])
        np.testing.assert_allclose(safe[index]["x"], part / 2, atol=1e-6)
    # A page that connects late gets the newest block.
    *_, last = _of(events, "inferences")
    assert (last["windows"], last["failed"], last["trouble"]) == (5, 1, "")
    assert 0 < last["median_ms"] < 1000
    side, exercise = last["answers"]
    np.testing.assert_allclose(side["raw"], [0.97, 0.03], atol=1e-6)
    np.testing.assert_allclose(side["safe"], [0.51, 0.49], atol=1e-6)
    # No attacker was trained on anonymized windows: the raw-data one infers from both.
    np.testing.assert_allclose(exercise["safe"], [0.8, 0.15, 0.05], atol=1e-6)
    assert "".join(text for text, _ in side["sentence"]) == (
        "From the raw signal, the attacker is 97 % sure: left. "
        "From the released signal: 51 %."
    )


def test_the_page_is_told_the_rate_of_the_rows():
    # The page detects gaps by the rate: rows at a tenth of the model's rate are not
    # gaps.
    slow = stand_ins.served(stand_ins.rows(21), speed=None, rate_hz=5.0)
    with slow as (address, _):
        hello = _events(address, "end")[0][1]
    assert (hello["rate_hz"], hello["window_s"]) == (5.0, 0.4)


def test_without_attackers():
    given = stand_ins.rows(40)
    with stand_ins.served(given, speed=None, attackers=None) as (address, _):
        events = _events(address, "end")
    assert events[0][1]["questions"] == []
    assert _of(events, "inferences")[0]["answers"] == []


def test_attackers_that_fail_do_not_end_the_show():
    class Failing(stand_ins.Attackers):
        def __call__(self, window):
            raise RuntimeError("no such node")

    given = stand_ins.rows(100)
    with stand_ins.served(given, speed=None, attackers=Failing()) as (address, _):
        events = _events(address, "end")
    assert (
        _of(events, "inferences")[0]["trouble"] == "The attackers failed: no such node"
    )
    assert len(_of(events, "safe")) == 5


def _question(*classes):
    return dashboard.Question("side", "private", classes, "raw", "safe", True)


def test_averages_are_over_the_last_windows():
    answers = iter(np.eye(2)[[0, 0, 1, 1, 0, 1, 0, 1]])
    attackers = lambda window: dict.fromkeys(("raw", "safe"), next(answers))
    averages = dashboard.RunningAverages(
        attackers, [_question("left", "right")], average=2
    )
    nothing = np.zeros((1, 1), np.float32)
    first = averages.add(Window(0.0, nothing, None))[0]
    assert first.raw.tolist() == [1, 0] and first.safe is None
    for raw, safe in [([1, 0], [0, 1]), ([0.5, 0.5], [0.5, 0.5])]:
        (answer,) = averages.add(Window(0.0, nothing, nothing))
        assert (answer.raw.tolist(), answer.safe.tolist()) == (raw, safe)
    with pytest.raises(ValueError, match="average must be > 0 windows, got 0"):
        dashboard.RunningAverages(attackers, [], average=0)


@pytest.mark.parametrize(
    ("raw", "safe", "said"),
    [
        ([0.2, 0.8], [0.1, 0.9], "80 % sure: b. From the released signal: 90 %."),
        ([0.2, 0.8], [0.9, 0.1], "80 % sure: b. From the released signal: 90 %: a."),
        ([0.2, 0.8], [0.6, 0.4], "80 % sure: b. From the released signal: 60 %."),
        (
            [0.2, 0.8],
            None,
            "80 % sure: b. From the released signal: no window yet.",
        ),
        (None, None, "Waiting for the first window."),
    ],
)
def test_sentences(raw, safe, said):
    answer = dashboard.Answer(
        *(None if each is None else np.float64(each) for each in (raw, safe))
    )
    pairs = dashboard.sentence(_question("a", "b"), answer)
    assert "".join(text for text, _ in pairs).endswith(said)
    assert {side for _, side in pairs} <= {"raw", "safe", ""}


def test_rows_are_played_at_their_pace():
    stop, seen = threading.Event(), []
    shown = types.SimpleNamespace(
        raw=lambda times, samples: seen.append((time.monotonic(), times[-1])),
        safe=lambda block: None,
    )
    stream = stand_ins.Stream(stand_ins.Model(), lambda window: None)
    days = np.concatenate([np.arange(100) / 50, 1e6 + np.arange(100) / 50])
    given = [(days, np.zeros((200, 2)))]
    start = time.monotonic()
    dashboard.play(given, stream, shown, 4.0, stop)
    # 4 s of samples at 4 × speed; playback skips the jump of a million seconds.
    assert 0.9 < time.monotonic() - start < 3
    for wall, clock in seen:
        ahead = clock % 1e6 / 4 + (0.475 if clock > 1e5 else 0) - (wall - start)
        assert ahead < 0.1


def test_channels_are_shown_in_the_model_s_order():
    swapped = [(times, samples[:, ::-1]) for times, samples in stand_ins.rows(40)]
    how = {"speed": None, "channels": ("acc y", "acc x"), "reorder": True}
    with stand_ins.served(swapped, **how) as (address, _):
        events = _events(address, "end")
    raw = [row for data in _of(events, "raw") for row in data["x"]]
    wanted = np.concatenate([samples for _, samples in stand_ins.rows(40)])
    np.testing.assert_allclose(raw, wanted)


def test_what_is_not_finite_is_null():
    given = [(np.arange(20) / 50, np.full((20, 2), np.inf))]
    with stand_ins.served(given, speed=None, attackers=None) as (address, _):
        events = _events(address, "end")
    assert _of(events, "raw")[0]["x"][0] == [None, None]


def test_the_page_counts_from_the_first_time_there_is():
    sent = []
    heard = types.SimpleNamespace(send=lambda *event: sent.append(event))
    shown = dashboard.Show(heard, dashboard.Timed(stand_ins.Model()), None, [])
    for times in ([np.nan, np.inf], [np.nan, 0.5], [0.75]):
        shown.raw(np.array(times), np.ones((len(times), 2)))
    assert _of(sent, "raw")[0]["t"] == [None, None]
    assert [kind for kind, _ in sent] == ["raw", "origin", "raw", "raw"]
    assert _of(sent, "origin") == [{"t": 0.5}]


def test_rows_that_fail_end_the_page():
    def failing():
        yield from stand_ins.rows(40)
        raise ValueError("row 41 is no row")

    how = {"speed": None, "port": 0, "open_stream": stand_ins.Stream}
    with pytest.raises(ValueError, match="row 41 is no row"):
        dashboard.serve(stand_ins.Model(), failing(), ready=str, **how)


PROGRAM = """
import signal, sys
sys.path.append(sys.argv[1])
import dashboard_stand_ins as stand_ins
signal.signal(signal.SIGINT, signal.default_int_handler)
stand_ins.dashboard.serve(
    stand_ins.Model(), stand_ins.rows(10**6), port=0, attackers=stand_ins.Attackers(),
    open_stream=stand_ins.Stream, ready=lambda address: print(address, flush=True))
print("ended")
"""


def test_ctrl_c_is_the_end(tmp_path):
    words = [sys.executable, "-P", "-c", PROGRAM, os.path.dirname(stand_ins.__file__)]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=tmp_path, **both) as child:
        address = child.stdout.readline().strip()
        threading.Timer(0.5, child.send_signal, (signal.SIGINT,)).start()
        events = _events(address, "bye")
        assert events[-1] == ("bye", {"text": "The dashboard has stopped."})
        out, said = child.communicate(timeout=30)
    assert (out, said, child.returncode) == ("ended\n", "", 0)


def test_a_slow_reader_holds_up_nobody():
    hall = page_server.Feed(("hello", {}), frozenset({"raw"}))
    slow, fast = hall.subscribe(), hall.subscribe()
    taken = [fast.take(0)]
    for number in range(2000):
        hall.send("raw", {"number": number})
        taken.append(fast.take(0))
    assert b"".join(taken).count(b"event: raw") == 2000
    left = slow.take(0)
    assert left.count(b"event:") == page_server.MOST_WAITING
    assert b'"number": 1999}' in left and b'"number": 1743}' not in left
    hall.send("bye", {}, last=True)
    assert slow.take(0).startswith(b"event: bye")
    assert slow.take(5) is None
    # A late subscriber gets the beginning, the last seconds and the end.
    late = hall.subscribe()
    late.put(b"event: more")  # Before the first event is taken; no event is dropped.
    late, after = late.take(0), late.take(0)
    assert after is None
    assert late.startswith(b"event: hello") and b'"number": 1999}' in late


def test_a_browser_that_takes_nothing_is_left_alone(monkeypatch):
    from jaxanon.edge import page_server

    monkeypatch.setattr(page_server._Handler, "timeout", 0.3)
    hall = page_server.Feed(("hello", {}), frozenset())
    with page_server.serving(hall, "127.0.0.1", 0) as address:
        _, _, host, word, _ = address.split("/")
        name, port = host.split(":")
        with socket.create_connection((name, int(port))) as stuck:
            request = f"GET /{word}/events HTTP/1.1\r\nHost: {host}\r\n\r\n"
            stuck.sendall(request.encode())
            deadline = time.monotonic() + 10
            while not hall._subscribers and time.monotonic() < deadline:
                time.sleep(0.01)
            assert hall._subscribers
            while hall._subscribers and time.monotonic() < deadline:
                hall.send("raw", {"padding": "x" * 500_000})
                time.sleep(0.02)
            assert not hall._subscribers


def test_the_stream_is_edge_s_own_unless_told():
    how = {"open_stream": edge_stream.Stream, "speed": None, "hop": 5}
    with stand_ins.served(stand_ins.rows(40), **how) as (address, _):
        events = _events(address, "end")
    assert events[0][1]["hop_s"] == 0.1
    assert _of(events, "inferences")[-1]["windows"] == 5  # At 0, 5, ..., 20.
    halves = [row for data in _of(events, "safe") for row in data["x"]]
    wanted = np.concatenate([samples for _, samples in stand_ins.rows(40)]) / 2
    np.testing.assert_allclose(halves, wanted, atol=1e-6)


def test_settings_that_are_none():
    model = stand_ins.Model()
    with pytest.raises(ValueError, match="speed must be > 0, or None, got 0"):
        dashboard.serve(model, [], speed=0)
    other = stand_ins.Attackers()
    other.signature = stand_ins.SIGNATURE._replace(rate_hz=20.0)
    with pytest.raises(ValueError, match="as the model's, got .* with one preset"):
        dashboard.serve(model, [], attackers=other, open_stream=stand_ins.Stream)
