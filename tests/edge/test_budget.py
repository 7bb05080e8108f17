"""A budget is never undercounted: after kills, torn files or concurrent charges."""

import concurrent.futures
import fcntl
import hashlib
import json
import os
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
    with pytest.raises(
        edge.Exhausted, match="at most 0, which is left of 1 in .*, got 0.1"
    ):
        edge.Budget(path, 1.0).charge(0.1)
    assert edge.Budget(path, 1.0).spent == 1.0


def test_the_refusal_says_how_many_would_do(path):
    budget = edge.Budget(path, 0.3)
    budget.charge(0.1, 2)
    with pytest.raises(edge.Exhausted, match="got 0.2; .* at most 1 windows"):
        budget.charge(0.1, 2)
    budget.charge(0.1)
    assert budget.left == 0.0 and budget.releases == {"0.1": 3}
    budget.charge(0.1, 0)  # Zero windows always fit.


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
            assert budget.releases == releases  # Rejected as a whole.
            assert before + epsilon * count > total * (1 - 1e-12)
        else:
            assert budget.spent == pytest.approx(before + epsilon * count)
        assert budget.spent <= total
        assert budget.left == pytest.approx(total - budget.spent)


def test_another_total_than_the_file_s_is_refused(path):
    edge.Budget(path, 1.0)
    with pytest.raises(ValueError, match="must be 1, as in the file, got 2"):
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
        with pytest.raises(ValueError, match="count must be an integer >= 0, got"):
            budget.charge(0.5, wrong)
    assert budget.spent == 0
    budget.charge(0.25, np.int64(2))
    assert budget.left == 0.5
    with pytest.raises(
        FileNotFoundError, match="the budget's folder .* does not exist"
    ):
        edge.Budget(path.parent / "nowhere" / "budget.json", 1.0)


def test_a_file_that_is_there_says_how_large_it_is_and_of_what(path):
    edge.Budget(path, 2.0, "windows that differ in one sample").charge(0.5)
    again = edge.Budget(path)
    assert (again.epsilon, again.left) == (2.0, 1.5)
    assert again.neighbours == "windows that differ in one sample"
    with pytest.raises(ValueError, match="must hide .*, got any two windows"):
        edge.Budget(path, 2.0, "any two windows")
    with pytest.raises(ValueError, match="their epsilons do not add up"):
        again.check_neighbours("any two windows")


def test_asking_takes_nothing_and_charging_says_what_is_left(path):
    budget = edge.Budget(path, 1.0)
    budget.check(0.25, 4)
    with pytest.raises(edge.Exhausted, match="at most 4 windows"):
        budget.check(0.25, 5)
    assert budget.spent == 0.0
    assert budget.charge(0.25, 3) == 0.25 == budget.left


def test_whoever_keeps_a_budget_needs_no_runtime(path):
    code = "import sys; sys.modules['onnxruntime'] = None; import jaxanon.edge as e; "
    code += f"import jaxanon.core.release; print(e.Budget({str(path)!r}, 1.0).left)"
    words = [sys.executable, "-P", "-W", "error", "-c", code]
    assert subprocess.check_output(words, text=True) == "1.0\n"


def test_threads_that_charge_at_once_charge_nothing_twice(path):
    """Each thread opens the file itself, like a process, and meets the lock."""
    edge.Budget(path, 2.0)  # 16 of the 24 requested charges fit.
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


@pytest.mark.slow
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
        # Each kill loses at most six windows that were charged and not written.
        assert 0 <= (charged - before[0]) - (left - before[1]) <= 6
        before = charged, left
    assert before[1] > 0
    data = pathlib.Path(out).read_bytes()
    assert data == b"\x00\x00\x7a\xc4" * (len(data) // 4)  # -1000, but not 1000.


def test_every_torn_or_changed_file_is_refused(path):
    budget = edge.Budget(path, 2.0)
    budget.charge(0.5, 3)
    whole = path.read_bytes()
    torn = [whole[:size] for size in range(len(whole) - 2)]
    less = whole.replace(b'"0.5": 3', b'"0.5": 1')
    more = whole.replace(b'"epsilon": 2.0', b'"epsilon": 9.0')
    assert len({whole, less, more}) == 3
    for data in [*torn, less, more, b"[]", b"null", whole.replace(b"1", b"2", 1)]:
        path.write_bytes(data)
        for act in (lambda: edge.Budget(path, 2.0), lambda: budget.charge(0.5)):
            with pytest.raises(ValueError, match="nothing can be released; restore"):
                act()
        assert path.read_bytes() == data
    path.write_bytes(whole)
    assert edge.Budget(path, 2.0).left == 0.5


def test_a_file_that_was_removed_is_not_begun_anew(path):
    budget = edge.Budget(path, 1.0)
    budget.charge(1.0)
    path.unlink()
    with pytest.raises(
        FileNotFoundError, match="was deleted, so its spent budget is unknown"
    ):
        edge.Budget(path, 1.0)
    with pytest.raises(
        FileNotFoundError, match="was deleted, so its spent budget is unknown"
    ):
        budget.charge(0.5)
    (path.parent / ".budget.json.lock").unlink()  # As the message suggests.
    assert edge.Budget(path, 1.0).left == 1.0


def test_a_write_that_fails_charges_nothing_and_is_told(path, monkeypatch):
    budget = edge.Budget(path, 1.0)

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        budget.charge(0.5)
    monkeypatch.undo()
    assert budget.spent == 0.0
    budget.charge(0.5)  # The partial write does no harm.
    assert budget.spent == 0.5


def test_who_waits_too_long_for_another_is_refused(path):
    budget = edge.Budget(path, 1.0, wait_s=0.05)
    handle = os.open(path.parent / ".budget.json.lock", os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(TimeoutError, match="another process holds .*budget.json.lock"):
        budget.charge(0.5)
    os.close(handle)
    budget.charge(0.5)


def test_without_a_size_none_is_made_and_no_lock_is_left(path):
    with pytest.raises(FileNotFoundError, match="holds no budget; give its size"):
        edge.Budget(path)
    assert list(path.parent.iterdir()) == []
    (path.parent / ".budget.json.lock").touch()  # As after a process was killed early.
    with pytest.raises(FileNotFoundError, match="holds no budget; give its size"):
        edge.Budget(path)
    assert edge.Budget(path, 1.0).left == 1.0


def test_another_budget_in_its_place_is_not_taken_for_the_first(path):
    first = edge.Budget(path, 100.0)
    path.unlink()
    (path.parent / ".budget.json.lock").unlink()
    edge.Budget(path, 1.0, "windows that differ in one sample").charge(0.5)
    for act in (lambda: first.charge(0.25), lambda: first.left, lambda: first.spent):
        with pytest.raises(ValueError, match="replaced by another budget, of 1 for"):
            act()
    assert edge.Budget(path).releases == {"0.5": 1}


def test_files_of_other_versions_are_told_as_such(path):
    edge.Budget(path, 2.0)
    own = json.loads(path.read_text())
    first = {"total": 2.0, "releases": {}, "neighbours": "any two windows"}
    second = {"format": 1, "epsilon": 2.0, "releases": {}}
    third = {name: own[name] for name in ("epsilon", "neighbours", "releases")}
    for told in (first, second, third | {"format": 3}):
        body = json.dumps(told, sort_keys=True).encode()
        path.write_text(json.dumps(told | {"check": hashlib.sha256(body).hexdigest()}))
        with pytest.raises(ValueError, match="damaged .of another version, format"):
            edge.Budget(path)


def test_a_budget_of_version_0_1_continues(path):
    """Directions have the same checksum, but 0.1 describes them in other words."""
    old = "windows that differ along what tells gender, weight (0badf00d)"
    told = {"format": 2, "epsilon": 2.0, "neighbours": old, "releases": {"0.5": 3}}
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(told | {"check": digest}, indent=1) + "\n")
    new = "windows that differ only in predictors of gender, weight (0badf00d)"
    budget = edge.Budget(path, None, new)
    assert budget.neighbours == new and budget.left == 0.5
    assert edge.Budget(path, 2.0, old).charge(0.25) == 0.25
    assert budget.left == 0.25
    assert json.loads(path.read_text())["neighbours"] == new
    for other in ("gender, weight (00000000)", "gender (0badf00d)"):
        with pytest.raises(ValueError, match="their epsilons do not add up"):
            edge.Budget(path, 2.0, f"windows that differ only in predictors of {other}")
    with pytest.raises(edge.Exhausted):
        edge.Budget(path, 2.0, new).charge(0.5)


def test_nonsense_under_a_right_check_is_damage(path):
    edge.Budget(path, 2.0)
    own = json.loads(path.read_text())
    for wrong in (
        {"epsilon": "much"},
        {"epsilon": -1.0},
        {"releases": {"0.5": -3}},
        {"releases": {"0.5": 1.5}},
        {"releases": {"half": 1}},
        {"releases": {"-0.5": 1}},
        {"releases": {"0.5": 10**400}},
        {"releases": {"0.5": 5}},  # More than before.
        {"k_neighbors": 5},
        {"epsilon": True},
        {"releases": [1]},
    ):
        told = {name: own[name] for name in own if name != "check"} | wrong
        body = json.dumps(told, sort_keys=True).encode()
        path.write_text(json.dumps(told | {"check": hashlib.sha256(body).hexdigest()}))
        with pytest.raises(ValueError, match="is not a budget or is damaged"):
            edge.Budget(path)


def test_a_lock_that_was_removed_meanwhile_keeps_nobody_out(path):
    budget = edge.Budget(path, 1.0, wait_s=10.0)
    lock = path.parent / ".budget.json.lock"
    handle = os.open(lock, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    waiter = threading.Thread(target=budget.charge, args=(0.5,))
    waiter.start()
    time.sleep(0.05)  # It holds the old file open, or opens it repeatedly.
    lock.unlink()
    waiter.join(5)
    assert not waiter.is_alive() and budget.spent == 0.5
    os.close(handle)


def test_a_lock_that_goes_while_it_is_taken_is_taken_anew(path, monkeypatch):
    budget, lock = edge.Budget(path, 1.0), path.parent / ".budget.json.lock"
    take, first = fcntl.flock, iter([True])

    def removed(handle, how):
        take(handle, how)
        if next(first, False):
            lock.unlink()

    monkeypatch.setattr(fcntl, "flock", removed)
    budget.charge(0.5)
    assert lock.exists() and budget.spent == 0.5  # The next process meets the lock.


def test_a_folder_is_no_budget_and_gets_no_lock(tmp_path):
    (tmp_path / "place").mkdir()
    with pytest.raises(IsADirectoryError, match="place is a folder; name a file"):
        edge.Budget(tmp_path / "place", 1.0)
    assert [entry.name for entry in tmp_path.iterdir()] == ["place"]
    with pytest.raises(ValueError, match="wait_s must be >= 0, got nan"):
        edge.Budget(tmp_path / "b.json", 1.0, wait_s=float("nan"))


def test_a_link_and_what_it_leads_to_are_one_budget(path):
    budget = edge.Budget(path, 2.0)
    link = path.with_name("link.json")
    link.symlink_to(path)
    edge.Budget(link).charge(0.5)
    assert budget.left == 1.5 and link.is_symlink()
