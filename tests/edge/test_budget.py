"""A budget is never undercounted: not by kills, torn files or two who charge it."""

import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import threading
import time

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from jaxanon import edge


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.json"


def test_charges_add_up_across_restarts_as_decimals(path):
    for number in range(10):
        budget = edge.Budget(path, 1)
        assert budget.spent == pytest.approx(number / 10)
        budget.charge(0.1)
    assert budget.left == 0.0 and budget.spent == 1.0
    with pytest.raises(edge.Exhausted, match="0.1 is asked for, and 0 of 1 is left"):
        edge.Budget(path, 1.0).charge(0.1)
    assert edge.Budget(path, 1.0).spent == 1.0


def test_the_refusal_says_how_many_would_do(path):
    budget = edge.Budget(path, 0.3)
    budget.charge(0.1, 2)
    with pytest.raises(edge.Exhausted, match="0.2 is asked .* or 1 windows at most"):
        budget.charge(0.1, 2)
    budget.charge(0.1)
    assert budget.left == 0.0 and budget.releases == {"0.1": 3}
    budget.charge(0.1, 0)  # Of nothing there is enough.


@hypothesis.given(
    total=st.floats(0.1, 10.0),
    charges=st.lists(st.tuples(st.floats(1e-3, 4.0), st.integers(0, 20)), max_size=8),
)
@hypothesis.settings(max_examples=30)
def test_what_is_spent_never_passes_the_total(tmp_path_factory, total, charges):
    budget = edge.Budget(tmp_path_factory.mktemp("budget") / "budget.json", total)
    for epsilon, count in charges:
        before, releases = budget.spent, budget.releases
        try:
            budget.charge(epsilon, count)
        except edge.Exhausted:
            assert budget.releases == releases  # Refused whole.
            assert before + epsilon * count > total * (1 - 1e-12)
        else:
            assert budget.spent == pytest.approx(before + epsilon * count)
        assert budget.spent <= total
        assert budget.left == pytest.approx(total - budget.spent)


def test_another_total_than_the_file_s_is_refused(path):
    edge.Budget(path, 1.0)
    with pytest.raises(ValueError, match="a budget of 1 in all, not 2, and keeps that"):
        edge.Budget(path, 2.0)


@pytest.mark.parametrize("epsilon", [0, -1.0, float("inf"), float("nan")])
def test_arguments_are_checked(path, epsilon):
    with pytest.raises(ValueError, match="epsilon of a budget must be > 0 and finite"):
        edge.Budget(path, epsilon)
    assert not path.exists()
    budget = edge.Budget(path, 1.0)
    with pytest.raises(ValueError, match="epsilon must be > 0 and finite"):
        budget.charge(epsilon)
    for wrong in (-1, 1.9, float("nan"), "two"):
        with pytest.raises(ValueError, match="count must be whole and >= 0, got"):
            budget.charge(0.5, wrong)
    assert budget.spent == 0
    budget.charge(0.25, np.int64(2))
    assert budget.left == 0.5
    with pytest.raises(
        FileNotFoundError, match="is no folder that a budget could be in"
    ):
        edge.Budget(path.parent / "nowhere" / "budget.json", 1.0)


def test_a_file_that_is_there_says_how_large_it_is_and_of_what(path):
    edge.Budget(path, 2.0, "windows that differ in one sample").charge(0.5)
    again = edge.Budget(path)
    assert (again.epsilon, again.left) == (2.0, 1.5)
    assert again.neighbours == "windows that differ in one sample"
    with pytest.raises(ValueError, match="these releases hide any two windows"):
        edge.Budget(path, 2.0, "any two windows")
    with pytest.raises(ValueError, match="what they cost does not add up"):
        again.check_neighbours("any two windows")


def test_asking_takes_nothing_and_charging_says_what_is_left(path):
    budget = edge.Budget(path, 1.0)
    budget.check(0.25, 4)
    with pytest.raises(edge.Exhausted, match="or 4 windows at most"):
        budget.check(0.25, 5)
    assert budget.spent == 0.0
    assert budget.charge(0.25, 3) == 0.25 == budget.left


def test_whoever_keeps_a_budget_needs_no_runtime(path):
    code = "import sys; sys.modules['onnxruntime'] = None; import jaxanon.edge as e; "
    code += f"import jaxanon.core.release; print(e.Budget({str(path)!r}, 1.0).left)"
    words = [sys.executable, "-P", "-W", "error", "-c", code]
    assert subprocess.check_output(words, text=True) == "1.0\n"


def test_threads_that_charge_at_once_charge_nothing_twice(path):
    """Each opens the file by itself, as a process does, and meets the others' lock."""
    edge.Budget(path, 2.0)  # For 16 of the 24 that are asked for.
    together = threading.Barrier(3)

    def charge(_):
        budget, refused = edge.Budget(path, wait_s=60.0), 0
        together.wait()
        for _ in range(8):
            try:
                budget.charge(0.125)
            except edge.Exhausted:
                refused += 1
        return refused

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        refused = sum(pool.map(charge, range(3)))
    assert edge.Budget(path).releases == {"0.125": 16} and refused == 8


SPENDER = """
import pathlib, sys
from jaxanon.edge.budget import Budget, Exhausted
budget, done = Budget(sys.argv[1], 10.0), 0
try:
    while True:
        budget.charge(0.1)
        done += 1
except Exhausted:
    print(done)
"""


def test_two_processes_share_one_budget(path):
    start = lambda: subprocess.Popen(
        [sys.executable, "-P", "-c", SPENDER, str(path)], stdout=subprocess.PIPE
    )
    both = [start(), start()]
    done = [int(process.communicate(timeout=120)[0]) for process in both]
    assert sum(done) == 100
    assert json.loads(path.read_text())["releases"] == {"0.1": 100}


STREAMER = """
import os, sys
import numpy as np
from jaxanon import edge

class Model:
    signature, epsilon = edge.Signature(8, ("x",), ("g",), 50.0), 0.001
    anonymize = staticmethod(lambda window: -window)

out = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
stream = edge.Stream(Model(), hop=8, budget=edge.Budget(sys.argv[1], 1e6))
print("ready", flush=True)
for second in range(10**6):
    times = (48 * second + np.arange(48)) / 50  # Six windows at a time.
    for block in stream.push(times, np.full((48, 1), 1000.0)):
        os.write(out, block.samples.tobytes())
"""


@pytest.mark.long
def test_a_kill_at_any_moment_undercounts_nothing_and_leaks_nothing(tmp_path):
    """Six windows of 32 bytes are charged, then written at once, again and again."""
    path, out = tmp_path / "budget.json", tmp_path / "out"
    rng, before = random.Random(0), (0, 0)
    for _ in range(6):
        words = [sys.executable, "-P", "-c", STREAMER, str(path), str(out)]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(rng.uniform(0.0, 0.1))
            process.kill()
        charged = round(edge.Budget(path, 1e6).spent / 0.001)
        left = out.stat().st_size // 32
        # Of each kill at most six windows were charged and did not leave.
        assert 0 <= (charged - before[0]) - (left - before[1]) <= 6
        before = charged, left
    assert before[1] > 0
    data = pathlib.Path(out).read_bytes()
    assert data == b"\x00\x00\x7a\xc4" * (len(data) // 4)  # -1000, and never 1000.
