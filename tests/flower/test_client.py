"""Clients that do not trust their server."""

import json
import subprocess
import sys

import jax
import numpy as np
import pytest

from jaxanon import edge, learners
from jaxanon.federated.engine import exchange
from jaxanon.flower import terms
from jaxanon.flower.client import Device
from jaxanon.flower.records import Payload

SMALL = {"filters": (4,), "hidden_sizes": (8,), "local_steps": 1, "batch_size": 4}


@pytest.fixture(scope="module")
def served(data):
    """Returns a two-round state of a private learner, and a payload of terms."""
    private = {"epsilon": 8.0, "max_rounds": 2, "max_examples": 20}
    method = learners.build("fedsgd_ldp", data.spec, **SMALL, **private)
    state = jax.jit(method.init)(jax.random.key(0))
    clients = terms.clients_of(method, data)
    agreed = terms.terms(method, state, clients, 20, 5)
    first = exchange.pack(exchange.initial_own(state))
    return state, Payload({"terms": agreed}, first)


def _asked(state, number=0, accepted=None):
    state = state._replace(round=np.int32(number))
    facts = {"name": f"{number}.0.0", "exchange": 0, "step": 0, "accepted": accepted}
    return Payload(facts, exchange.pack(exchange.broadcast_state(state)))


def _joined(data, payload, budget):
    device = Device(1, data, budget=budget)
    found = device.join(payload).facts
    assert "why" not in found, found
    return device


@pytest.fixture
def budget(tmp_path):
    return tmp_path / "budget.json"


def test_keys_are_drawn_in_full(data, served, budget):
    join = lambda: _joined(data, served[1], budget)
    drawn = [jax.random.key_data(join()._key) for _ in range(4)]
    drawn = np.stack(drawn)  # [devices, words]
    assert len(np.unique(drawn, axis=0)) == 4
    assert (drawn != drawn[0]).any(axis=0).all() and drawn.any(axis=0).all()


def test_the_terms_noise_is_taken_and_no_other(data, served, budget):
    state, payload = served
    device = _joined(data, payload, budget)
    less = state.hyper | {"noise_multiplier": np.float32(0.0)}
    with pytest.raises(ValueError, match="noise_multiplier must be .* but the server"):
        device.work(_asked(state._replace(hyper=less)))
    assert device.work(_asked(state)).facts["weight"] > 0


def test_noise_is_drawn_once_a_round_and_for_as_many_as_are_paid_for(
    data, served, budget
):
    state, payload = served
    device = _joined(data, payload, budget)
    other = state._replace(params=jax.tree.map(lambda w: w + 1, state.params))
    reply = device.work(_asked(state))
    again = device.work(_asked(state))  # A retried round.
    for name, array in reply.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    with pytest.raises(ValueError, match="round must be after 0, .*got 0 with other"):
        device.work(_asked(other))
    assert not all(
        np.array_equal(array, reply.arrays[name])
        for name, array in device.work(_asked(other, 5)).arrays.items()
    )
    with pytest.raises(ValueError, match="round must be after 5"):
        device.work(_asked(state, 1))
    with pytest.raises(ValueError, match="the noise covers 2 rounds"):
        device.work(_asked(state, 6))
    # A changed terms payload does not restart it either.
    changed = payload.facts["terms"] | {"seed": 6}
    why = device.join(payload._replace(facts={"terms": changed})).facts["why"]
    assert "settings changed after this client drew noise" in why


def test_a_client_that_starts_again_goes_on_counting(data, served, budget):
    state, payload = served
    assert _joined(data, payload, budget).work(_asked(state)).facts["weight"] > 0
    told = json.loads(budget.read_text())
    assert (told["unit"], told["epsilon"], told["releases"]) == (
        "rounds", 2.0, {"1.0": 1},
    )  # fmt: skip
    second = _joined(data, payload, budget)
    second.work(_asked(state))  # Its noise is new: one more round with the same number.
    with pytest.raises(ValueError, match="the noise covers 2 rounds"):
        second.work(_asked(state, 1))
    third = Device(1, data, budget=budget)
    facts = third.join(payload).facts
    assert facts["why"] == "its privacy budget does not allow it to take part."
    assert "at most 0, which is left of 2" in third.why and third.failed
    budget.unlink()
    gone = Device(1, data, budget=budget)
    assert "why" in gone.join(payload).facts
    assert "was deleted, so its spent budget is unknown" in gone.why
    assert not budget.exists()


def test_the_count_is_on_the_disk_before_a_reply_leaves(data, served, budget):
    state, payload = served
    device = _joined(data, payload, budget)
    text = budget.read_text()
    for damaged in (text.replace("2.0", "9.0"), text[:-9], ""):
        budget.write_text(damaged)
        with pytest.raises(ValueError, match="nothing can be released"):
            device.work(_asked(state))
        assert budget.read_text() == damaged
    budget.write_text(text)
    assert device.work(_asked(state)).facts["weight"] > 0


def test_a_guarantee_needs_a_budget_of_its_own_noise(data, served, budget):
    _, payload = served
    device = Device(1, data)
    assert "budget" in device.join(payload).facts["why"]
    assert "budget must be a file, " in device.why and "--budget FILE" in device.why
    for other, why in (
        (edge.Budget(budget, 2.0), "must be a budget of rounds, got one of epsilon"),
        (edge.Budget(f"{budget}2", 9.0, "others", unit="rounds"), "do not add up"),
    ):
        device = Device(1, data, budget=other.path)
        told = device.join(payload).facts["why"]
        assert why in device.why and str(other.path) not in told
    with pytest.raises(ValueError, match="must be a budget of epsilon, got one of rou"):
        edge.Budget(f"{budget}2", 9.0, "others")


def test_a_budget_is_read_and_charged_without_jax(data, served, budget):
    state, payload = served
    _joined(data, payload, budget).work(_asked(state))
    code = (
        "import json, sys\n"
        "from jaxanon.edge.budget import Budget\n"
        "kind = json.load(open(sys.argv[1]))['neighbours']\n"
        "budget = Budget(sys.argv[1], None, kind, unit='rounds')\n"
        "print(budget.spent, budget.charge(1), 'jax' in sys.modules)\n"
    )
    words = [sys.executable, "-P", "-c", code, str(budget)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1.0", "0.0", "False"]
    assert "is left" in _refusal(data, payload, budget)


def _refusal(data, payload, budget):
    device = Device(1, data, budget=budget)
    device.join(payload)
    return device.why
