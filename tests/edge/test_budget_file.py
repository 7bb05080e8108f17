"""The file of a budget: torn, changed, removed, locked or somebody else's."""

import fcntl
import hashlib
import json
import os
import threading
import time

import pytest

from jaxanon import edge


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.json"


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
            with pytest.raises(
                ValueError, match="nothing is released from it. Restore"
            ):
                act()
        assert path.read_bytes() == data
    path.write_bytes(whole)
    assert edge.Budget(path, 2.0).left == 0.5


def test_a_file_that_was_removed_is_not_begun_anew(path):
    budget = edge.Budget(path, 1.0)
    budget.charge(1.0)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="was there and is gone, and with it"):
        edge.Budget(path, 1.0)
    with pytest.raises(FileNotFoundError, match="is gone, and with it what was spent"):
        budget.charge(0.5)
    (path.parent / ".budget.json.lock").unlink()  # As the message says.
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
    budget.charge(0.5)  # What was left of the write is in nobody's way.
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
    with pytest.raises(FileNotFoundError, match="holds no budget; make one"):
        edge.Budget(path)
    assert list(path.parent.iterdir()) == []
    (path.parent / ".budget.json.lock").touch()  # As of a process killed early.
    with pytest.raises(FileNotFoundError, match="holds no budget; make one"):
        edge.Budget(path)
    assert edge.Budget(path, 1.0).left == 1.0


def test_another_budget_in_its_place_is_not_taken_for_the_first(path):
    first = edge.Budget(path, 100.0)
    path.unlink()
    (path.parent / ".budget.json.lock").unlink()
    edge.Budget(path, 1.0, "windows that differ in one sample").charge(0.5)
    for act in (lambda: first.charge(0.25), lambda: first.left, lambda: first.spent):
        with pytest.raises(ValueError, match="another budget by now, of 1 in all and"):
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
        {"releases": {"0.5": 5}},  # More than there was.
        {"neighbours": 5},
        {"epsilon": True},
        {"releases": [1]},
    ):
        told = {name: own[name] for name in own if name != "check"} | wrong
        body = json.dumps(told, sort_keys=True).encode()
        path.write_text(json.dumps(told | {"check": hashlib.sha256(body).hexdigest()}))
        with pytest.raises(ValueError, match="is no budget, or damaged"):
            edge.Budget(path)


def test_a_lock_that_was_removed_meanwhile_keeps_nobody_out(path):
    budget = edge.Budget(path, 1.0, wait_s=10.0)
    lock = path.parent / ".budget.json.lock"
    handle = os.open(lock, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    waiter = threading.Thread(target=budget.charge, args=(0.5,))
    waiter.start()
    time.sleep(0.05)  # It holds the old one open, or opens it again and again.
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
    assert lock.exists() and budget.spent == 0.5  # Whoever comes next meets it.


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
