"""Every public function of the numeric packages is tested with drawn arguments.

A test file with draws must take it from its package: as an attribute, by an import, or
by ``getattr`` with a table of names. ``tests/methods/test_settings.py`` draws the
settings of all methods and learners.
"""

import ast
import importlib
import inspect
import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).parent
ROOMS = ("attacks", "datasets", "energy", "evaluation", "exporting", "federated")
ROOMS += ("kernels", "metrics", "privacy")
# Functions that train or convert in each call, tested case by case.
LONG = {
    "energy": {"dqn", "pfdrl_method"},
    "evaluation": {
        "evaluate",
        "evaluate_each",
        "evaluate_many",
        "leave_one_out",
        "train_raw_classifiers",
    },
    "exporting": {"export", "export_attackers", "export_choice", "export_members"},
}


def taken(text) -> set[tuple[str, str]]:
    """Returns each ``(package, name)`` that a test file takes from jaxanon."""
    tree = ast.parse(text)
    rooms, found = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "jaxanon"
        ):
            room = node.module.split(".")[1:2]
            for alias in node.names:
                called = alias.asname or alias.name
                rooms[called] = room[0] if room else alias.name
                if room:
                    found.add((room[0], alias.name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in rooms:
                found.add((rooms[node.value.id], node.attr))
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            of = ast.unparse(node.args[0])
            named = {str(word).partition(" ")[0] for word in words}
            found |= {(rooms[of], word) for word in named if of in rooms}
    return found


@pytest.fixture(scope="module")
def drawn():
    """Returns the names taken by all files with draws and their ``tests/support``."""
    draws = re.compile(r"^\s*@(hypothesis\.)?given\(", re.M)
    texts = [path.read_text() for path in TESTS.rglob("*.py")]
    texts = [text for text in texts if draws.search(text)]
    for path in (TESTS / "support").glob("*.py"):
        if any(f"from {path.stem} import" in text for text in texts):
            texts.append(path.read_text())
    return set().union(*map(taken, texts))


def test_words_alone_are_not_taken():
    text = """
from jaxanon import kernels as ours
from jaxanon.energy import cents
from jaxanon.kernels import diffusion

def test_one(match):
    assert ours.dtw(1) == diffusion.ddim_step(2), "smote"
    getattr(ours, TABLE["is_factored_cheaper"])
"""
    assert taken(text) >= {
        *(("kernels", "dtw"), ("kernels", "ddim_step"), ("energy", "cents")),
        ("kernels", "is_factored_cheaper"),
    }
    found = taken(text.replace("getattr", "hasattr"))
    assert {
        ("kernels", "smote"),
        ("kernels", "is_factored_cheaper"),
        ("attacks", "match"),
    } & found == set()


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_function_is_given_what_is_drawn(drawn, room):
    module = importlib.import_module(f"jaxanon.{room}")
    named = {name: getattr(module, name) for name in module.__all__}
    functions = {
        name
        for name, value in named.items()
        if callable(value) and not inspect.isclass(value)
    }
    given = {name for of, name in drawn if of == room}
    assert not functions - given - LONG.get(room, set())
    assert LONG.get(room, set()) <= functions
