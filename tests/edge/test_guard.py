"""A model that raises, hangs or lies causes gaps with a reason.

The stream continues.
"""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from jaxanon import edge
from jaxanon.edge.guard import Guard, Late, Watchdog

WINDOW = np.ones((8, 1), np.float32)


def raising(window):
    raise KeyError(f"with raw samples {window}")


def leaving(window):
    raise SystemExit(0)


def interrupted(window):
    raise KeyboardInterrupt


BROKEN = [
    (raising, "the model raised KeyError", "raised"),
    (leaving, "the model raised SystemExit", "raised"),
    (
        lambda window: window * np.nan,
        "the model returned NaN or infinity",
        "non-finite",
    ),
    (
        lambda window: np.full(window.shape, 1e300),
        "the model returned NaN or infinity",
        "non-finite",
    ),
    (lambda window: window[:7], "the model returned shape (7, 1)", "shape"),
    (lambda window: window[None], "the model returned shape (1, 8, 1)", "shape"),
    (lambda window: "raw", "the model returned no array of numbers", "shape"),
    (lambda window: [[1], [2, 3]], "the model returned no array of numbers", "shape"),
    (lambda window: {}, "the model returned no array of numbers", "shape"),
    (lambda window: None, "the model returned shape ()", "shape"),
    (interrupted, "the model raised KeyboardInterrupt", "raised"),
]


@pytest.mark.parametrize(("function", "reason", "what"), BROKEN)
def test_a_broken_model_gives_gaps(models, function, reason, what):
    stream = edge.Stream(models.Model(function))
    blocks = stream.push(np.arange(20) / 50, np.full((20, 1), 1000.0))
    blocks += stream.close()
    assert {block.gap for block in blocks} == {reason}
    assert np.isnan(models.joined(blocks)).all() and len(models.joined(blocks)) == 20
    assert stream.counts[what] == 4 and stream.counts["released"] == 0


def test_one_failure_is_a_gap_of_its_window_and_no_more(models):
    """Windows of 8 at 0, 4, 8, ...; the third, of samples 8 to 15, fails."""
    calls = []

    def third_fails(window):
        calls.append(window)
        return raising(window) if len(calls) == 3 else -window

    stream = edge.Stream(models.Model(third_fails))
    blocks = stream.push(np.arange(24) / 50, np.arange(24.0)[:, None])
    blocks += stream.close()
    found = models.joined(blocks)[:, 0]
    gone = np.arange(24) // 8 == 1
    assert np.isnan(found[gone]).all()
    np.testing.assert_allclose(found[~gone], -np.arange(24)[~gone], rtol=1e-6)
    assert [block.gap for block in blocks if block.gap] == ["the model raised KeyError"]


def test_a_graph_that_never_ends_is_stopped(models, tmp_path):
    model = edge.load(models.endless(tmp_path / "a.onnx"))
    guard = Guard(model, 0.1, None)
    for _ in range(2):  # The thread is free again.
        begin = time.monotonic()
        assert guard.rewrite(np.ones((8, 2), np.float32)) == (
            None,
            "the model took more than 0.1 s",
        )
        assert time.monotonic() - begin < 5
    guard.close()


def test_a_graph_that_divides_zero_by_zero_gives_gaps(models, tmp_path):
    model = edge.load(models.not_a_number(tmp_path / "a.onnx"))
    safe, reason = Guard(model, 5.0, None).rewrite(np.ones((8, 2), np.float32))
    assert safe is None and reason == "the model returned NaN or infinity"


def test_a_model_that_cannot_be_stopped_hangs_nobody(models):
    free = threading.Event()

    def wait(window):
        free.wait(30)
        return window

    stream = edge.Stream(models.Model(wait), deadline_s=0.05)
    begin = time.monotonic()
    blocks = stream.push(np.arange(400) / 50, np.ones((400, 1)))
    assert time.monotonic() - begin < 5
    assert {block.gap for block in blocks} == {
        "the model took more than 0.05 s",
        "the model still hangs",
    }
    assert stream.counts["late windows"] == 99
    free.set()
    until = time.monotonic() + 10
    while not stream.counts["released"] and time.monotonic() < until:
        time.sleep(0.01)
        stream.push(8 + np.arange(8) / 50, np.ones((8, 1)))
        begin = stream.counts["pushed"]
        stream.push(9 + begin + np.arange(8) / 50, np.ones((8, 1)))
    assert stream.counts["released"]  # It returned, and its old answer was dropped.
    stream.close()


def test_what_a_late_model_returns_goes_nowhere():
    dog, free = Watchdog(0.05), threading.Event()
    with pytest.raises(Late, match="the model took more than 0.05 s"):
        dog.call(lambda x: free.wait(10) and "late", None)
    with pytest.raises(Late, match="the model still hangs"):
        dog.call(lambda x: "second", None)
    free.set()
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            found = dog.call(lambda x: x + 1, 2)
            break
        except Late:
            time.sleep(0.01)
    assert found == 3
    dog.close()


def test_a_stream_that_was_interrupted_is_closed(models):
    def inspect(window):
        raise KeyboardInterrupt  # Like Ctrl-C, at any point.

    stream = edge.Stream(models.Model(), inspect=inspect)
    with pytest.raises(KeyboardInterrupt):
        stream.push(np.arange(9) / 50, np.ones((9, 1)))
    assert stream.close() == []
    with pytest.raises(ValueError, match="the stream is closed; open a new one"):
        stream.push([1.0], [[1.0]])


@pytest.mark.parametrize("end", [lambda dog: dog.close(), lambda dog: None])
def test_the_thread_ends_with_its_watchdog(end):
    dog = Watchdog(5.0)
    thread = dog.call(lambda _: threading.current_thread(), None)
    assert thread.is_alive() and thread.daemon
    end(dog)
    del dog
    thread.join(10)
    assert not thread.is_alive()


FORKS = """
import os
import numpy as np
from jaxanon.edge.guard import Guard
guard = Guard(type("M", (), {"anonymize": staticmethod(lambda x: -x)}), 5.0, None)
window = np.ones((4, 2), np.float32)
assert guard.rewrite(window)[1] == ""
if not (child := os.fork()):
    os._exit(0 if guard.rewrite(window)[1] == "" else 1)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_has_a_thread_of_its_own():
    # In a process without JAX, whose threads would not survive a fork.
    subprocess.run([sys.executable, "-P", "-c", FORKS], check=True)


def test_a_model_that_keeps_its_answer_cannot_change_it(models):
    kept = []

    def keep(window):
        kept.append(-window)
        return kept[-1]

    guard = Guard(models.Model(keep), 5.0, None)
    safe, _ = guard.rewrite(WINDOW)
    kept[0][:] = 1000
    assert (safe == -1).all()
    guard.close()


@pytest.fixture
def budget(tmp_path):
    return edge.Budget(tmp_path / "budget.json", 1.0)


def test_a_model_of_epsilon_needs_a_budget(models, budget):
    model = models.Model(epsilon=0.25)
    with pytest.raises(ValueError, match="spends epsilon 0.25; give budget=edge.Bud"):
        edge.Stream(model)
    edge.Stream(model, budget=edge.UNBOUNDED)
    edge.Stream(model, budget=budget)
    assert repr(edge.UNBOUNDED) == "UNBOUNDED"
    assert edge.UNBOUNDED.charge(0.25) == np.inf
    named = edge.Budget(budget.path.with_name("b.json"), 1.0, "windows named alike")
    with pytest.raises(ValueError, match="must hide .*, got any two windows: their"):
        edge.Stream(model, budget=named)


def test_a_stream_ends_in_a_gap_when_its_budget_does(models, budget):
    """Four windows of 0.25 at a hop of 4: the fifth, samples 16 to 23, is missing."""
    model = models.Model(lambda x: -x, epsilon=0.25)
    stream = edge.Stream(model, budget=budget)
    blocks = stream.push(np.arange(24) / 50, np.arange(24.0)[:, None] + 1)
    blocks += stream.close()
    found = models.joined(blocks)[:, 0]
    np.testing.assert_allclose(found[:16], -1 - np.arange(16), rtol=1e-6)
    assert np.isnan(found[16:]).all()
    assert blocks[-1].gap == "the privacy budget is exhausted"
    assert stream.counts["released"] == 4 and stream.counts["exhausted"] == 1
    assert budget.left == 0.0
    seen = []
    model.anonymize = lambda x: seen.append(x) or x  # Never called.
    stream = edge.Stream(model, budget=budget)
    blocks = stream.push(np.arange(80) / 50, np.ones((80, 1))) + stream.close()
    assert not seen
    assert {block.gap for block in blocks} == {"the privacy budget is exhausted"}


def test_windows_are_charged_before_anybody_knows_whether_they_fail(models, budget):
    seen = []
    model = models.Model(lambda x: x if len(seen) else raising(x), epsilon=0.25)
    inspect = lambda window: seen.append((window.safe is None, budget.spent))
    stream = edge.Stream(model, budget=budget, inspect=inspect)
    stream.push(np.arange(16) / 50, np.ones((16, 1)))
    stream.close()
    assert seen == [(True, 0.25), (False, 0.5), (False, 0.75)]


def test_a_budget_that_cannot_be_charged_lets_nothing_through(models, budget):
    stream = edge.Stream(models.Model(epsilon=0.25), budget=budget)
    budget.path.write_text("{")
    blocks = stream.push(np.arange(16) / 50, np.ones((16, 1))) + stream.close()
    assert {b.gap for b in blocks} == {
        "the privacy budget cannot be charged (ValueError)"
    }
    assert stream.counts["uncharged"] == 3
