"""Rounds of the server, of letters that nobody carried."""

import jax
import numpy as np
import pytest

from jaxanon import learners
from jaxanon.flower import terms
from jaxanon.flower.device import Device
from jaxanon.flower.records import Letter
from jaxanon.flower.rounds import Bounds, TooFew, rounds

SMALL = {"filters": (4,), "hidden": (8,), "local_steps": 1, "batch": 4}


def _served(data, name, bounds=Bounds(), **settings):  # noqa: B008
    method = learners.build(name, data.spec, **SMALL, **settings)
    clients = terms.clients_of(method, data)
    state = method.init(jax.random.key(0))
    agreed = terms.terms(method, state, clients, 20, 5)
    mine = data.train.labels["subject"] == 0
    rows = terms.own_windows(method, terms.of_subject(data.train, mine), 0, agreed)
    key = jax.random.key(1)
    return state, agreed, rounds(method, key, clients, rows, bounds)


@pytest.mark.parametrize("name", ["feddl", "fedmask", "clusterfl"])
def test_servers_that_read_what_clients_keep_are_refused_at_once(name, data):
    with pytest.raises(ValueError, match="reads what clients keep, which never leaves"):
        _served(data, name)


def test_a_round_asks_its_cohort_and_needs_answers(data):
    state, _, parts = _served(data, "fedavg", Bounds(2), cohort=0.5)
    ids, asked = parts.cohort(state), []

    def ask(ids, facts, arrays):
        asked.append((ids, facts))
        return {}

    with pytest.raises(TooFew, match="round 1 needs 2 good answers and got 0"):
        parts.update(state, ask, None)
    facts = {"name": "0.0.0", "exchange": 0, "step": 0}
    assert len(ids) == 2 and asked == [(ids, facts)]


def test_a_client_keeps_of_a_round_only_what_was_counted(data):
    state, agreed, parts = _served(data, "fedper", shared_layers=1)
    device = Device(1, data)
    first = {"terms": agreed}, _packed(jax.tree.map(lambda x: x[0], state.own))
    assert "why" not in device.join(Letter(*first)).facts
    begun, letters = device.own, []

    def ask(ids, facts, arrays):
        letters.append(Letter(facts | {"accepted": accepted.get(1)}, arrays))
        return {1: device.work(letters[-1])}

    accepted = {}
    after, info, counted = parts.update(state, ask, None)
    assert counted == {1: "0.0.0"} and info["loss"] > 0
    assert _same(device.own, begun)  # It has not heard yet.
    accepted.update(counted)
    parts.update(after, ask, None)
    trained = device.own
    assert not _same(trained, begun)
    # The second was not counted, so the third begins where the second did.
    parts.update(after, ask, None)
    assert _same(device.own, trained)
    device.leave(
        Letter({"accepted": "1.0.0", "why": "it is over", "failed": False}, {})
    )
    assert not _same(device.own, trained)  # Now it was.
    assert (device.why, device.failed) == ("it is over", False)


def _packed(tree):
    from jaxanon.federated.messages import packed

    return packed(tree)


def _same(a, b):
    return all(map(np.array_equal, jax.tree.leaves(a), jax.tree.leaves(b)))


def test_what_is_no_longer_finite_ends_it(data):
    state, agreed, parts = _served(data, "fedavg", Bounds(max_norm=1e30))
    device = Device(1, data)
    device.join(Letter({"terms": agreed}, {}))

    def ask(ids, facts, arrays):
        letter = device.work(Letter(facts | {"accepted": None}, arrays))
        huge = {name: 1e25 * array for name, array in letter.arrays.items()}
        return {1: letter._replace(arrays=huge)}

    with pytest.raises(FloatingPointError, match="no longer finite in round 1; lower"):
        parts.update(state, ask, None)


SERVED = "fedavg fedprox scaffold fedper fedrep ditto pfedme perfedavg fedsgd_ldp ldpfl"


@pytest.mark.parametrize("name", [*SERVED.split(), "atlas"])
def test_learners_that_the_readme_names_can_be_served(name, data):
    more = {"shared_layers": 1} if name in ("fedper", "fedrep") else {}
    _, agreed, parts = _served(data, name, **more)
    terms.check_method(terms.agreed(agreed, data.spec, None))
    assert parts.update is not None
