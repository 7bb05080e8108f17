"""Every example in a docstring runs as printed."""

import doctest
import importlib
import pkgutil

import pytest
from hasty import hasty

import jaxanon


def _modules():
    """Dotted names of all modules: by folder, an editable install knows no other."""
    rooms = ("kernels", "federated", "datasets", "models", "methods", "attacks")
    names = {"jaxanon"}
    rooms += ("metrics", "recordings")
    for room in ("jaxanon", *(f"jaxanon.{name}" for name in rooms)):
        package = importlib.import_module(room)
        names.add(room)
        names.update(
            info.name for info in pkgutil.walk_packages(package.__path__, f"{room}.")
        )
    return sorted(name for name in names if not name.endswith("__main__"))


# Modules whose examples train, audit or reconstruct.
SLOW = ("jaxanon.attacks.auditing", "jaxanon.attacks.inversion", "jaxanon.core.run")


def _marked(name):
    return pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())


@pytest.mark.parametrize("name", [_marked(name) for name in _modules()])
def test_docstring_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    with hasty():
        result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("room", ["kernels", "federated", "attacks", "metrics"])
def test_public_functions_show_an_example(room):
    package = getattr(jaxanon, room)
    for name in package.__all__:
        thing = getattr(package, name)
        if not isinstance(thing, type) and callable(thing):
            assert ">>> " in (thing.__doc__ or ""), f"{room}.{name} has no example"
