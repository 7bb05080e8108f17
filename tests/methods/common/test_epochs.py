"""Tests of phase start epochs, and of warnings for phases that never start."""

import importlib
import pkgutil
import warnings

import pytest

from jaxanon import datasets, methods
from jaxanon.core.method import warn_of_epochs
from jaxanon.methods.common.alternating import during

SPEC = datasets.load("smartwatch", public="exercise", private=["side"]).spec
FIRST, SECOND = SPEC.classes["exercise"][:1], SPEC.classes["exercise"][1:2]
REPLACED = {"black": FIRST, "gray": SECOND}
NEEDED = {
    "occupancy_gan": {"classes_to_hide": FIRST},
    "rae": REPLACED,
    "rae_aae": REPLACED,
}
ASKED = {
    "aae": {"pretraining": 3},
    "deeprotect": {"training": "fine-tuned", "epochs_per_layer": 2},
    "gen": {"pretraining": 4},
    "msda": {"warm_up": 2, "turn": 3},
    "rae_aae": {"replacing": 2, "pretraining": 3},
}
LEAST = {"aae": 4, "deeprotect": 5, "gen": 5, "msda": 6, "rae_aae": 6}


def build(name, **settings):
    return methods.build(name, SPEC, **NEEDED.get(name, {}), **settings)


@pytest.fixture
def begun(monkeypatch):
    """Records the epochs in which phases of new methods begin."""
    found = []

    def seen(rounds, first, end=None):
        found.append(first)
        return during(rounds, first, end)

    for info in pkgutil.walk_packages(methods.__path__, "jaxanon.methods."):
        module = importlib.import_module(info.name)
        if hasattr(module, "during") and not info.name.endswith(".common.alternating"):
            monkeypatch.setattr(module, "during", seen)
    return found


@pytest.mark.parametrize("name", methods.NAMES)
def test_the_last_phase_begins_in_the_least_number_of_epochs(name, begun):
    method = build(name)
    assert method.schedule.min_epochs == 1 + max(begun, default=0)
    assert (method.schedule.phases != ()) == (
        method.schedule.min_epochs > 1 or method.schedule.min_rounds > 0
    )
    assert set(method.schedule.phases) <= set(vars(method.config))


@pytest.mark.parametrize(("name", "least"), LEAST.items())
def test_longer_phases_ask_for_more_epochs(name, least):
    method = build(name, **ASKED[name])
    assert method.schedule.min_epochs == least
    with pytest.warns(
        UserWarning, match=f"got 3: .* begins, after epoch {least - 1}; "
    ) as told:
        warn_of_epochs(method, 3)
    names = ", ".join(setting for setting in ASKED[name] if setting != "training")
    assert str(told[0].message).endswith(f"phases ({names}).")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_epochs(method, least)


def test_phases_in_rounds_ask_for_as_many_epochs_as_hold_them():
    method = build("dysan_gen", pretraining=10)
    with pytest.warns(UserWarning, match="got 3: .* after epoch 3; "):
        warn_of_epochs(method, 3, 3)  # Nine rounds, in which its sanitizer waits.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_epochs(method, 4, 3)
        warn_of_epochs(method, 1)  # The rounds per epoch are not known yet.


@pytest.mark.parametrize(
    ("name", "settings", "refused"),
    [
        (
            "aae",
            {"pretraining": 0},
            "pretraining must be >= 1 if frozen is True, got 0",
        ),
        (
            "rae_aae",
            {"pretraining": 0},
            "pretraining must be >= 1 if frozen is True, got 0",
        ),
    ],
)
def test_frozen_classifiers_need_pretraining(name, settings, refused):
    with pytest.raises(ValueError, match=refused):
        build(name, **settings)


def test_unfrozen_classifiers_need_no_pretraining():
    assert build("aae", pretraining=0, frozen=False).schedule.min_epochs == 1
