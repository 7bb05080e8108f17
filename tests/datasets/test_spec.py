"""A spec rejects inconsistent fields and survives JSON."""

import dataclasses
import json

import pytest

from jaxanon.datasets import Spec
from jaxanon.datasets.targets import Target

GOOD = {
    "name": "toy",
    "preset": "raw",
    "channels": ("x", "y"),
    "units": ("g", "g"),
    "rate_hz": 50.0,
    "time": 128,
    "public": "act",
    "private": ("sex",),
    "classes": {"act": ("a", "b", "c"), "sex": ("f", "m"), "subject": ("1",)},
    "mean": (0.1, 1 / 3),
    "std": (1.0, 2.0),
    "split": "trial",
}


def test_json_gives_the_same_spec_back():
    spec = Spec(**GOOD)
    assert Spec.from_json(spec.to_json()) == spec  # Tuples stay tuples, 1/3 exact.
    assert json.loads(spec.to_json())["channels"] == ["x", "y"]


def test_counts_classes_of_every_attribute():
    spec = Spec(**GOOD)
    assert [spec.num_classes(a) for a in ("act", "sex", "subject")] == [3, 2, 1]
    with pytest.raises(
        ValueError, match=r"attribute must be one of .* for 'toy', got 'age'"
    ):
        spec.num_classes("age")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"units": ("g",)}, "units must have one entry per channel, got 1"),
        ({"mean": (0.0,) * 3}, "mean must have one entry per channel, got 3"),
        ({"rate_hz": 0.0}, "rate_hz must be > 0, got 0.0"),
        ({"time": -1}, "time must be > 0, got -1"),
        (
            {"std": (1.0, 0.0)},
            "channel 'y' must .* got mean .* and std 0.0; drop constant",
        ),
        ({"mean": (float("nan"), 0.0)}, "channel 'x' must .* got mean nan"),
        (
            {"tokens": 7},
            "tokens must be 0, or the number of values of one channel with",
        ),
        (
            {"tokens": -1},
            "tokens must be 0, or the number of values of one channel with",
        ),
        ({"split": "window"}, "split must be one of .*, got 'window'"),
        ({"private": "sex"}, "private must be a tuple with at least one attribute"),
        ({"private": ()}, "private must be a tuple with at least one attribute"),
        ({"private": ("sex", "act")}, "must not repeat an attribute or contain"),
        ({"private": ("sex", "sex")}, "must not repeat an attribute or contain"),
        ({"public": "age"}, "for 'toy', got 'age'"),
        ({"private": ("age",)}, "for 'toy', got 'age'"),
        (
            {"classes": {"act": ("a",), "sex": ("f", "m"), "subject": ("1",)}},
            "at least 2 classes, got 1",
        ),
        ({"classes": {"act": ("a", "b"), "sex": ("f", "m")}}, "got 'subject'"),
    ],
)
def test_says_what_does_not_fit(change, message):
    with pytest.raises(ValueError, match=message):
        Spec(**(GOOD | change))


POWER = Target(unit="W", mean=1 / 3, std=2.0, channel="y", samples=4)
WATTS = GOOD | {"public": "power", "private": ("sex",), "targets": {"power": POWER}}


def test_tokens_survive_json():
    one = {"channels": ("x",), "units": ("1",), "mean": (0.0,), "std": (1.0,)}
    spec = Spec(**GOOD | one | {"tokens": 5})
    assert Spec.from_json(spec.to_json()) == spec


def test_a_number_may_be_public():
    spec = Spec(**WATTS)
    assert spec.target == POWER and Spec(**GOOD).target is None
    assert Spec.from_json(spec.to_json()) == spec
    beside = Spec(**WATTS | {"public": "act"})
    assert beside.target is None and beside.num_classes("act") == 3
    with pytest.raises(ValueError, match=r"target 'power' of 'toy'.*by a learner"):
        spec.num_classes("power")


def test_json_without_targets_is_what_it_was_before_there_were_any():
    told = json.loads(Spec(**GOOD).to_json())
    assert sorted(told) == sorted(GOOD)
    assert Spec.from_json(json.dumps(told)) == Spec(**GOOD)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"private": ("power",), "public": "act"}, "attribute must have classes"),
        ({"targets": {"sex": POWER}}, r"got \['sex'\] for both"),
        (
            {"targets": {"power": dataclasses.replace(POWER, channel="z")}},
            "target 'power' must have a channel in .*, got 'z'",
        ),
    ],
)
def test_says_what_does_not_fit_of_a_number(change, message):
    with pytest.raises(ValueError, match=message):
        Spec(**(WATTS | change))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"std": 0.0}, "got mean 0.3.* and std 0.0; drop constant targets"),
        ({"mean": float("inf")}, "a target must .* got mean inf"),
        ({"samples": 0}, "samples must be at least 1, got 0"),
    ],
)
def test_targets_refuse_what_cannot_be(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(POWER, **change)


def test_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Spec(**GOOD).time = 3
