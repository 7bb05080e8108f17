"""A budget in a file: nothing is spent twice, nothing is spent for nothing."""

import concurrent.futures
import json
import os
import threading

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from jaxanon import budget


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.json"


@hypothesis.given(
    st.floats(0.1, 20.0),
    st.lists(st.tuples(st.floats(0.01, 5.0), st.integers(0, 20)), max_size=8),
)
def test_what_is_spent_never_passes_the_total(tmp_path_factory, total, asked):
    path = tmp_path_factory.mktemp("budget") / "budget.json"
    budget.create(path, total)
    taken = 0.0
    for epsilon, count in asked:
        before = budget.read(path)
        try:
            after = budget.spend(path, epsilon, count)
        except budget.Spent:
            assert budget.read(path) == before  # Refused whole.
            assert taken + epsilon * count > total * (1 - 1e-12)
            continue
        taken += epsilon * count
        assert after == budget.read(path)
        assert after.spent == pytest.approx(taken)
        assert after.spent <= total and after.left == total - after.spent


def test_a_budget_may_be_spent_to_the_last_window(path):
    budget.create(path, 1.0)
    for left in (0.75, 0.5, 0.25, 0.0):
        assert budget.spend(path, 0.25).left == left
    with pytest.raises(
        budget.Spent, match="need 0.25, and 0 of 1 is left .* 0 windows"
    ):
        budget.spend(path, 0.25)
    assert budget.spend(path, 0.25, 0).left == 0.0


def test_three_tenths_are_spent_in_tenths(path):
    budget.create(path, 0.3)
    assert budget.spend(path, 0.1, 2).left == pytest.approx(0.1)
    with pytest.raises(budget.Spent, match="0.1 of 0.3 is left .* or 1 windows"):
        budget.spend(path, 0.1, 2)
    assert budget.spend(path, 0.1).left == 0.0


def test_the_refusal_says_how_many_would_do(path):
    budget.create(path, 2.0)
    with pytest.raises(budget.Spent, match="9 windows at epsilon 0.3 .* or 6 windows"):
        budget.spend(path, 0.3, 9)
    assert budget.spend(path, 0.3, 6).releases == {0.3: 6}


def test_who_spend_at_once_do_not_spend_twice(path):
    """Each opens the file by itself, as a process does, and meets the others' lock."""
    budget.create(path, 2.0)  # For 16 of the 24 that are asked for.
    together = threading.Barrier(3)

    def spender(_):
        together.wait()
        refused = 0
        for _ in range(8):
            try:
                budget.spend(path, 0.125)
            except budget.Spent:
                refused += 1
        return refused

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        refused = sum(pool.map(spender, range(3)))
    assert budget.read(path).releases == {0.125: 16} and refused == 8


def test_a_write_that_is_cut_short_leaves_the_last_budget(path, monkeypatch):
    budget.create(path, 2.0)
    budget.spend(path, 0.5)

    def full(handle):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        budget.spend(path, 0.5)
    assert budget.read(path).releases == {0.5: 1}


def test_a_second_budget_does_not_replace_the_first(path):
    budget.create(path, 2.0)
    budget.spend(path, 2.0)
    with pytest.raises(FileExistsError, match="holds a budget already"):
        budget.create(path, 100.0)
    assert budget.read(path).left == 0.0


def test_there_is_none(path):
    for fails in (budget.read, lambda path: budget.spend(path, 0.1)):
        with pytest.raises(FileNotFoundError, match="holds no budget"):
            fails(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"total": 1.0, "releases": []}',
        '{"total": -1.0, "releases": {}}',
        '{"total": NaN, "releases": {}}',
        '{"total": 1.0, "releases": {"0.5": -3}}',
        '{"total": 1.0, "releases": {"0.5": 1.5}}',
        '{"total": 1.0, "releases": {"none": 1}}',
        '{"total": 1.0, "releases": {"0.5": 1}',
    ],
)
def test_a_damaged_file_releases_nothing(path, text):
    path.write_text(text)
    for fails in (budget.read, lambda path: budget.spend(path, 1e-9)):
        with pytest.raises(ValueError, match="is no budget, or damaged"):
            fails(path)
    assert path.read_text() == text


@pytest.mark.parametrize("epsilon", [0.0, -0.5, float("inf"), float("nan")])
def test_what_is_no_epsilon(path, epsilon):
    with pytest.raises(ValueError, match="total must be a finite number > 0"):
        budget.create(path, epsilon)
    budget.create(path, 1.0)
    with pytest.raises(ValueError, match="epsilon must be a finite number > 0"):
        budget.spend(path, epsilon)
    assert json.loads(path.read_text())["releases"] == {}


def test_nothing_is_given_back(path):
    budget.create(path, 2.0)
    budget.spend(path, 0.5, np.int64(4))
    with pytest.raises(ValueError, match="count must be .* got -3"):
        budget.spend(path, 0.5, -3)
    with pytest.raises(TypeError, match="count"):
        budget.spend(path, 0.5, 0.5)
    assert budget.read(path).left == 0.0


def test_guarantees_of_different_kinds_do_not_add_up(path):
    budget.create(path, 2.0, "windows that differ in one sample")
    with pytest.raises(ValueError, match="these releases hide any two windows"):
        budget.spend(path, 0.5)
    assert budget.read(path).left == 2.0
    alike = {"neighbours": "windows that differ in one sample"}
    assert budget.spend(path, 0.5, **alike).left == 1.5


def test_no_lock_beside_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no budget"):
        budget.spend(tmp_path / "none.json", 0.5)
    with pytest.raises(FileNotFoundError, match="no folder that a budget"):
        budget.create(tmp_path / "nowhere" / "b.json", 1.0)
    assert list(tmp_path.iterdir()) == []


def test_a_link_and_what_it_leads_to_are_one_budget(path):
    budget.create(path, 2.0)
    link = path.with_name("link.json")
    link.symlink_to(path)
    budget.spend(link, 0.5)
    assert budget.read(path).left == 1.5 and link.is_symlink()
