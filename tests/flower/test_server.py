"""Privacy spending in the folder of a served run, however its rounds end."""

import types
from typing import NamedTuple

import jax.numpy as jnp
import pytest

from jaxanon.flower import server
from jaxanon.flower.server import Folder
from jaxanon.privacy import ledger


class State(NamedTuple):
    """State as needed for a checkpoint."""

    round: jnp.ndarray
    hyper: tuple = ()


def guaranteed(told=lambda rounds, accountant="pld": {"epsilon": float(rounds)}):
    """Returns a method whose ε is its number of rounds."""
    own = types.SimpleNamespace(report=told)
    own.trained_with = lambda state: own
    return types.SimpleNamespace(guarantee=own)


@pytest.fixture
def opened(tmp_path):
    """Returns ``opened(method, done)``: the folder after that many rounds."""
    made = []

    def open_(method, done=0):
        found = Folder(tmp_path, method, 9, 9, print)
        made.append(found)
        found.begin(State(jnp.int32(done)))
        return found

    yield open_
    for each in made:
        each.close()


def test_rounds_are_spent_before_they_are_asked(opened, tmp_path):
    one = opened(guaranteed())
    for begun in (1, 2):  # A round that was tried twice.
        one.asking()
        found = ledger.read(tmp_path)
        assert found["rounds"] == {"done": 0, "begun": begun, "asked": 9}
        assert found["epsilon"] == begun
    one.state = State(jnp.int32(1))
    one.close()
    assert ledger.read(tmp_path)["rounds"] == {"done": 1, "begun": 2, "asked": 9}
    # A folder with an older checkpoint keeps counting.
    other = opened(guaranteed(), done=0)
    other.asking()
    assert ledger.read(tmp_path)["rounds"]["begun"] == 3


def test_a_ledger_that_is_ahead_of_its_checkpoint_counts(tmp_path):
    told = {"epsilon": 5.0, "rounds": {"done": 5, "asked": 9}}
    ledger.write_report(tmp_path, told)
    assert ledger.rounds_spent(tmp_path, State(jnp.int32(3))) == 5
    assert ledger.rounds_spent(tmp_path, State(jnp.int32(7))) == 7
    assert ledger.rounds_spent(None, State(jnp.int32(3))) == 3


def test_what_takes_long_to_reckon_is_reckoned_of_more_rounds_at_once(
    opened, tmp_path, monkeypatch
):
    monkeypatch.setattr(server, "SLOW_S", -1.0)
    reckoned = []

    def told(rounds, accountant="pld"):
        reckoned.append(rounds)
        return {"epsilon": float(rounds), "accountant": accountant}

    one = opened(guaranteed(told))
    for begun in range(1, 9):
        one.asking()
        found = ledger.read(tmp_path)
        # Never less than the spent ε; the report gives the exact number of rounds.
        assert found["epsilon"] >= begun == found["rounds"]["begun"]
    assert reckoned == [1, 3, 6, 9]  # Not beyond the end of training.
    one.state = State(jnp.int32(8))
    one.close()
    assert ledger.read(tmp_path)["epsilon"] == 8.0


def test_without_a_guarantee_nothing_is_written(opened, tmp_path):
    one = opened(types.SimpleNamespace(guarantee=None))
    one.asking()
    one.close()
    assert not (tmp_path / ledger.FILE).exists()
