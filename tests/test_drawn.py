"""Every public function of the rooms that compute is given what is drawn.

By name: a function is looked for in the files of tests that draw something. Methods and
learners are made by settings, all of which ``tests/methods/test_settings.py`` draws.
"""

import importlib
import inspect
import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).parent
ROOMS = ("attacks", "datasets", "energy", "evaluation", "exporting", "federated")
ROOMS += ("kernels", "metrics", "privacy")
# What takes a training or a conversion a call, tried case by case.
LONG = {
    "evaluation": {"evaluate", "evaluate_each", "evaluate_many", "raw_judges"},
    "exporting": {"export", "export_attackers"},
}


@pytest.fixture(scope="module")
def drawn():
    """The words of all files of tests that draw what they give."""
    texts = (path.read_text() for path in TESTS.rglob("*.py"))
    return {
        word
        for text in texts
        if re.search(r"^\s*@given\(", text, re.M)
        for word in re.findall(r"\w+", text)
    }


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_function_is_given_what_is_drawn(drawn, room):
    module = importlib.import_module(f"jaxanon.{room}")
    named = {name: getattr(module, name) for name in module.__all__}
    functions = {
        name
        for name, value in named.items()
        if callable(value) and not inspect.isclass(value)
    }
    assert not functions - drawn - LONG.get(room, set())
    assert LONG.get(room, set()) <= functions
