"""Rounds of the server, with payloads passed directly."""

import functools
import re

import chex
import jax
import numpy as np
import pytest

from jaxanon import datasets, learners, methods
from jaxanon.flower import terms
from jaxanon.flower.client import Device
from jaxanon.flower.records import Payload
from jaxanon.flower.rounds import Bounds, TooFew, rounds

SMALL = {"filters": (4,), "hidden_sizes": (8,), "local_steps": 1, "batch_size": 4}


@pytest.fixture
def served(data, hand_out):
    """Returns ``served(name, ...)``: a learner's state, terms and rounds.

    Clients share the server's learner, so that it compiles once.
    """

    def built(name, bounds=Bounds(), **settings):  # noqa: B008
        method = learners.build(name, data.spec, **SMALL, **settings)
        hand_out(method)
        state = jax.jit(method.init)(jax.random.key(0))
        return state, *_rounds(data, method, state, jax.random.key(1), bounds)

    return built


def _rounds(data, method, state, key, bounds):
    """Returns the server's terms, and its rounds."""
    clients = terms.clients_of(method, data)
    agreed = terms.terms(method, state, clients, 20, 5)
    mine = data.train.labels["subject"] == 0
    rows = terms.own_windows(method, terms.of_subject(data.train, mine), 0, agreed)
    return agreed, rounds(method, key, clients, rows, bounds)


def _foreseen(data, name, **settings):
    """Returns the same for a state known only by its shapes."""
    method = learners.build(name, data.spec, **SMALL, **settings)
    key = jax.random.key(1)
    state = jax.eval_shape(method.init, key)
    return _rounds(data, method, state, key, Bounds())


@pytest.mark.parametrize("name", ["feddl", "fedmask", "clusterfl"])
def test_servers_that_read_what_clients_keep_are_refused_at_once(name, data):
    with pytest.raises(ValueError, match="must not use personal states on the server"):
        _foreseen(data, name)


def test_a_round_asks_its_cohort_and_needs_answers(served):
    state, _, parts = served("fedavg", Bounds(2), client_fraction=0.5)
    ids, asked = parts.cohort(state), []

    def ask(ids, facts, arrays):
        asked.append((ids, facts))
        return {}

    with pytest.raises(TooFew, match="round 1 needs 2 valid replies, got 0"):
        parts.update(state, ask, None)
    facts = {"name": "0.0.0", "exchange": 0, "step": 0}
    assert len(ids) == 2 and asked == [(ids, facts)]


def test_a_client_keeps_of_a_round_only_what_was_counted(data, served):
    state, agreed, parts = served("fedper", shared_layers=1)
    device = Device(1, data)
    first = {"terms": agreed}, _packed(jax.tree.map(lambda x: x[0], state.own))
    assert "why" not in device.join(Payload(*first)).facts
    begun, payloads = device.own, []

    def ask(ids, facts, arrays):
        payloads.append(Payload(facts | {"accepted": accepted.get(1)}, arrays))
        return {1: device.work(payloads[-1])}

    accepted = {}
    after, info, counted = parts.update(state, ask, None)
    assert counted == {1: "0.0.0"} and info["loss"] > 0
    assert _same(device.own, begun)  # It has not received a payload yet.
    accepted.update(counted)
    parts.update(after, ask, None)
    trained = device.own
    assert not _same(trained, begun)
    # The second round was not counted, so the third begins at the second's state.
    parts.update(after, ask, None)
    assert _same(device.own, trained)
    device.leave(
        Payload({"accepted": "1.0.0", "why": "it is over", "failed": False}, {})
    )
    assert not _same(device.own, trained)  # This time it was counted.
    assert (device.why, device.failed) == ("it is over", False)


def _packed(tree):
    from jaxanon.federated.engine.exchange import pack

    return pack(tree)


def _same(a, b):
    return all(map(np.array_equal, jax.tree.leaves(a), jax.tree.leaves(b)))


def test_what_is_no_longer_finite_ends_it(data, served):
    state, agreed, parts = served("fedavg", Bounds(max_message_norm=1e30))
    device = Device(1, data)
    device.join(Payload({"terms": agreed}, {}))

    def ask(ids, facts, arrays):
        payload = device.work(Payload(facts | {"accepted": None}, arrays))
        huge = {name: 1e25 * array for name, array in payload.arrays.items()}
        return {1: payload._replace(arrays=huge)}

    with pytest.raises(FloatingPointError, match="NaN or infinity in round 1; lower"):
        parts.update(state, ask, None)


SERVED = (
    "fedavg fedprox scaffold fedper fedrep ditto pfedme per_fedavg fedsgd_ldp ldp_fl"
)


@pytest.mark.parametrize("name", [*SERVED.split(), "atlas"])
def test_learners_that_the_readme_names_can_be_served(name, data):
    more = {"shared_layers": 1} if name in ("fedper", "fedrep") else {}
    agreed, parts = _foreseen(data, name, **more)
    terms.check_method(terms.agreed(agreed, data.spec, None))
    assert parts.update is not None


def _layers(flag, layers):
    """Changes the layers that an Atlas client claims and those that it sends."""

    def change(payload):
        arrays = dict(payload.arrays)
        for name, array in arrays.items():
            if name.startswith("[0][1]"):
                arrays[name] = np.full_like(array, flag)
            elif name.startswith("[0][0]"):
                arrays[name] = np.full_like(array, layers)
        return payload._replace(arrays=arrays)

    return change


def _info(payload):
    return payload._replace(
        arrays=payload.arrays | {"[1]['loss']": np.asarray(3e38, np.float32)}
    )


def _facts(weight):
    return lambda payload: payload._replace(facts={"weight": weight})


CHANGES = [
    (_layers(0, 1e20), "its flags must be 0 or 1, and its arrays must be 0"),
    (_layers(1e-6, 1.0), "its flags must be 0 or 1"),
    (_layers(-1, 1.0), "its flags must be 0 or 1"),
    (_info, r"its \['loss'\] must be within 1e\+30 of 0, got 3"),
    (_facts(10**400), r"it cannot be read \(OverflowError\)"),
    (_facts("1"), "its weight must be a number, got '1'"),
    (
        lambda payload: payload._replace(arrays={0: payload.arrays, "a": 0}),
        r"it cannot be read \(TypeError\)",
    ),
]


def test_what_no_honest_client_says_is_refused(data, served):
    state, agreed, parts = served("atlas", epsilon=0.0)
    device, refused = Device(1, data), {}
    first = _packed(jax.tree.map(lambda x: x[0], state.own))
    assert "why" not in device.join(Payload({"terms": agreed}, first)).facts

    def answering(change):
        """Runs a round that only client 1 answers, with a changed payload."""

        def ask(ids, facts, arrays):
            return {1: change(device.work(Payload(facts | {"accepted": None}, arrays)))}

        return ask

    for change, why in CHANGES:
        with pytest.raises(TooFew):
            parts.update(state, answering(change), refused.__setitem__)
        assert re.search(why, refused.pop(1))
        after, *_ = parts.update(
            state, answering(lambda payload: payload), refused.__setitem__
        )
        assert int(after.round) == 1 and not refused


@pytest.mark.slow
def test_rounds_of_an_anonymizer_are_those_of_train(data, hand_out):
    settings = {
        "latent_dim": 3,
        "hidden_sizes": (8,),
        "client_fraction": 0.5,
        "discriminator_hidden_sizes": (4,),
    }
    settings |= {"local_rounds": 1, "batch_size": 4}
    method = methods.build("kd_blinder", data.spec, **settings)
    hand_out(method)
    begun = jax.jit(method.init)(jax.random.key(0))
    key = jax.random.split(jax.random.key(5))[1]
    agreed, parts = _rounds(data, method, begun, key, Bounds(2))
    asked = {client: Device(client, data) for client in parts.cohort(begun)}
    assert len(asked) == 2
    for device in asked.values():
        assert "why" not in device.join(Payload({"terms": agreed}, {})).facts

    def ask(ids, facts, arrays):
        payload = Payload(facts | {"accepted": None}, arrays)
        return {client: asked[client].work(payload) for client in ids}

    found, info, _ = parts.update(begun, ask, None)
    whole = method.prepare(datasets.by_client(data.train))
    wanted, told = jax.jit(method.update)(key, begun, whole)
    close = functools.partial(chex.assert_trees_all_close, rtol=2e-4, atol=2e-5)
    close(found.params, wanted.params)
    close(info, {name: float(value) for name, value in told.items()})
