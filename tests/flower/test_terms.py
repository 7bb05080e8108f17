"""Terms of server and clients, and the payloads between them."""

import dataclasses
import inspect
import json

import chex
import jax
import numpy as np
import pytest

from jaxanon import datasets, learners, methods
from jaxanon.cli import serve
from jaxanon.cli.data import DataOptions
from jaxanon.core import registry
from jaxanon.datasets.targets import Target
from jaxanon.flower import terms
from jaxanon.flower.records import Payload, to_payload, to_record

SMALL = {"filters": (4,), "hidden_sizes": (8,), "local_steps": 1, "batch_size": 4}


@pytest.fixture(scope="module")
def method(data):
    return learners.build("fedavg", data.spec, **SMALL)


@pytest.fixture(scope="module")
def agreed(method, data):
    state = method.init(jax.random.key(0))
    return terms.terms(method, state, terms.clients_of(method, data), 24, 5)


def test_a_client_builds_the_servers_method(agreed, method, data):
    found = terms.agreed(agreed, data.spec, terms.digest(agreed))
    assert found.config == method.config and found.spec == method.spec
    # Statistics and splits are the server's, independent of the client's windows.
    own = dataclasses.replace(data.spec, mean=(9.0, 9.0), split="subject")
    assert terms.agreed(agreed, own, None).spec == data.spec
    # Each side fills in the other's open fields, and clocks are not exact.
    own = dataclasses.replace(data.spec, units=("g", ""), rate_hz=50.0)
    assert terms.agreed(agreed, own, None).spec == data.spec
    known = agreed | {"spec": agreed["spec"] | {"units": ["g", "g"], "rate_hz": 49.9}}
    assert terms.agreed(known, own, None).spec.rate_hz == 49.9


def test_numbers_of_a_file_that_says_little_of_them_are_the_servers(data):
    in_watts = lambda **more: dataclasses.replace(
        data.spec,
        public="load",
        targets={"load": Target(unit="W", mean=1.0, std=1.0, **more)},
    )
    method = learners.build("fedavg", in_watts(channel="0", samples=4), **SMALL)
    state = method.init(jax.random.key(0))
    told = terms.terms(method, state, [0, 1], 24, 5)
    assert terms.agreed(told, in_watts(), None).spec.target.samples == 4
    with pytest.raises(ValueError, match="samples of load must be .*'4'.* have .*'9'"):
        terms.agreed(told, in_watts(channel="0", samples=9), None)


def test_what_differs_is_named(agreed, data):
    refused = lambda changed, spec=data.spec: pytest.raises(ValueError, match=changed)
    with refused(r"the server runs jaxanon 9.9 \(protocol 3\) and this client"):
        terms.agreed(agreed | {"version": "9.9"}, data.spec, None)
    with refused(r"\(protocol 9\)"):
        terms.agreed(agreed | {"protocol": 9}, data.spec, None)
    with refused(
        "the server's source code of jaxanon differs from this client's, though"
    ):
        terms.agreed(agreed | {"code": "0" * 64}, data.spec, None)
    with refused("has other arrays here than at the server"):
        wider = agreed["settings"] | {"hidden_sizes": [9]}
        terms.agreed(agreed | {"settings": wider}, data.spec, None)
    with refused("has no 'nothing'; it has"):
        more = agreed["settings"] | {"nothing": 1}
        try:
            terms.agreed(agreed | {"settings": more}, data.spec, None)
        except TypeError as error:
            raise ValueError(str(error)) from error
    with refused("time must be 8, as at the server, but this client's windows have 9"):
        terms.agreed(agreed, dataclasses.replace(data.spec, time=9), None)
    known = agreed | {"spec": agreed["spec"] | {"units": ["g", ""], "rate_hz": 50.0}}
    with refused(
        r"units must be \('g', ''\), as at the server, .*; convert its windows"
    ):
        own = dataclasses.replace(data.spec, units=("m/s^2", ""), rate_hz=50.0)
        terms.agreed(known, own, None)
    with refused("rate_hz must be 50.0, as .* have 100.0; resample its windows"):
        own = dataclasses.replace(data.spec, units=("g", "g"), rate_hz=100.0)
        terms.agreed(known, own, None)
    in_unit = lambda unit: dataclasses.replace(
        data.spec,
        public="load",
        targets={"load": Target(unit=unit, mean=1.0, std=1.0)},
    )
    known = agreed | {"spec": json.loads(in_unit("W").to_json())}
    with refused(r"unit, channel and samples of load must be \('W', .*; convert it"):
        terms.agreed(known, in_unit("kW"), None)
    with refused("classes of gender must be"):
        classes = data.spec.classes | {"gender": ("a", "b", "c")}
        terms.agreed(agreed, dataclasses.replace(data.spec, classes=classes), None)


@pytest.mark.parametrize("name", ["fedavg", "blinder"])
def test_a_clients_windows_are_its_rows_of_the_simulation(name, data):
    method = registry.build(name, data.spec)
    clients, rows = terms.clients_of(method, data), 20  # 20, 17, 20 and 15 to train on
    agreed = {"clients": clients, "max_windows": rows}
    whole = method.prepare(datasets.by_client(data.train))
    mine = data.train.labels["subject"] == 1
    found = terms.own_windows(method, terms.of_subject(data.train, mine), 1, agreed)
    chex.assert_trees_all_close(found, jax.tree.map(lambda leaf: leaf[1:2], whole))
    why = "client 1 must have 1 to 20 windows, got 72"
    with pytest.raises(terms.Unfit, match=why) as caught:
        terms.own_windows(method, data.train, 1, agreed)
    # Other parties do not see these numbers.
    assert "72" not in caught.value.public_message


def test_methods_without_messages_of_clients_are_refused(data):
    for name, reason in (
        ("dp_fedavg", "because its rounds do not consist"),
        ("cvae", "because it trains on all windows"),
    ):
        method = registry.build(name, data.spec)
        match = f"{name} cannot train over Flower {reason}"
        with pytest.raises(ValueError, match=match):
            terms.check_method(method)
    with pytest.raises(ValueError, match="centralized has no clients; use fedavg"):
        terms.check_method(learners.build("centralized", data.spec))
    with pytest.raises(ValueError, match="localized has clients that send nothing"):
        terms.check_method(learners.build("localized", data.spec))
    terms.check_method(methods.blinder(data.spec))


def test_letters_come_through_as_they_were():
    arrays = {
        "['a']": np.arange(6, dtype=np.float32).reshape(2, 3),
        "['b']": np.array(True),
        "['c']": np.zeros((0, 4), np.int32),
        "['d']": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    }
    found = to_payload(to_record(Payload({"round": 3, "why": None}, arrays)))
    assert found.facts == {"round": 3, "why": None}
    assert found.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype


@pytest.mark.parametrize(
    ("facts", "arrays", "size"),
    [
        ("{", "[]", 0),
        ("[]", "[]", 0),
        ("{}", '[["w", "<f4", [2]]]', 4),  # Ends too early,
        ("{}", '[["w", "<f4", [2]]]', 12),  # or late.
        ("{}", '[["w", "<f4", [-2]]]', 8),
        ("{}", '[["w", "O", [1]]]', 8),  # Python objects.
        ("{}", '[["w", "<f4", [99999999999, 99999999999]]]', 8),
        ("{}", '[["w"]]', 8),
        ("{}", "3", 8),
        ("{}", '[["w", "<f4", [1e999]]]', 8),  # Overflows,
        ("{}", '[["w", "{", [1]]]', 8),  # not a type's syntax,
        ("{}", "[" * 100_000, 8),  # too deep,
        ("{}", '[[["w"], "<f4", [2]]]', 8),  # or not a name.
    ],
)
def test_a_malformed_record_is_refused(facts, arrays, size):
    from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict  # Silent by now.

    record = RecordDict({"header": ConfigRecord({"facts": facts, "arrays": arrays})})
    record["numbers"] = ArrayRecord({"all": Array(np.zeros(16 + size, np.uint8))})
    with pytest.raises(ValueError, match="it is not a message of jaxanon"):
        to_payload(record)


def test_no_setting_of_a_method_has_the_name_of_an_option_of_serve():
    options = set(inspect.signature(serve.command(None)).parameters)
    options |= {field.name for field in dataclasses.fields(DataOptions)}
    assert "max_message_norm" in options
    for name in (*learners.NAMES, *methods.NAMES):
        settings = registry.entry(name).config
        assert not {field.name for field in dataclasses.fields(settings)} & options
