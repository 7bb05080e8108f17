"""What a client does that does not trust its server."""

import jax
import numpy as np
import pytest

from jaxanon import learners
from jaxanon.federated.engine import exchange
from jaxanon.flower import terms
from jaxanon.flower.client import Device
from jaxanon.flower.records import Letter

SMALL = {"filters": (4,), "hidden": (8,), "local_steps": 1, "batch": 4}


@pytest.fixture(scope="module")
def served(data):
    """A state of a private learner of two rounds, and a server's letter of terms."""
    private = {"epsilon": 8.0, "rounds": 2, "records": 20}
    method = learners.build("fedsgd_ldp", data.spec, **SMALL, **private)
    state = jax.jit(method.init)(jax.random.key(0))
    clients = terms.clients_of(method, data)
    agreed = terms.terms(method, state, clients, 20, 5)
    first = exchange.packed(exchange.first_own(state))
    return state, Letter({"terms": agreed}, first)


def _asked(state, number=0, accepted=None):
    state = state._replace(round=np.int32(number))
    facts = {"name": f"{number}.0.0", "exchange": 0, "step": 0, "accepted": accepted}
    return Letter(facts, exchange.packed(exchange.sent_out(state)))


def _joined(data, letter):
    device = Device(1, data)
    found = device.join(letter).facts
    assert "why" not in found, found
    return device


def test_keys_are_drawn_in_full(data, served):
    drawn = [jax.random.key_data(_joined(data, served[1])._key) for _ in range(4)]
    drawn = np.stack(drawn)  # [devices, words]
    assert len(np.unique(drawn, axis=0)) == 4
    assert (drawn != drawn[0]).any(axis=0).all() and drawn.any(axis=0).all()


def test_the_terms_noise_is_taken_and_no_other(data, served):
    state, letter = served
    device = _joined(data, letter)
    less = state.hyper | {"noise_multiplier": np.float32(0.0)}
    with pytest.raises(ValueError, match="noise_multiplier must be .* and the server"):
        device.work(_asked(state._replace(hyper=less)))
    assert device.work(_asked(state)).facts["weight"] > 0


def test_noise_is_drawn_once_a_round_and_for_as_many_as_are_paid_for(data, served):
    state, letter = served
    device = _joined(data, letter)
    other = state._replace(params=jax.tree.map(lambda w: w + 1, state.params))
    reply = device.work(_asked(state))
    again = device.work(_asked(state))  # A round that is tried again.
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
    with pytest.raises(ValueError, match="the noise is enough for 2 rounds"):
        device.work(_asked(state, 6))
    # Nor does it begin anew for somebody who changes a letter of the terms.
    changed = letter.facts["terms"] | {"seed": 6}
    why = device.join(letter._replace(facts={"terms": changed})).facts["why"]
    assert "settings changed after this client's noise was drawn" in why
