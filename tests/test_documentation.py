"""The reference has a place for every public name, and tutorials use what there is."""

import ast
import importlib
import inspect
import pathlib
import re
import sys
import tomllib
from typing import NamedTuple

import pytest

import jaxanon

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
TUTORIALS = ("kernels", "sweep", "throughput")
ROOMS = ["", *jaxanon._ROOMS, "edge", "evaluation", "exporting", "report", "sweeps"]
ROOMS += ["training"]


@pytest.fixture(scope="module")
def extensions():
    """Imports a module of ``docs/extensions`` by its name, and forgets it again."""
    if not DOCS.exists():
        pytest.skip("docs/ is not beside the tests; only a checkout has both")
    before = set(sys.modules)
    sys.path.insert(0, str(DOCS / "extensions"))
    yield importlib.import_module
    sys.path.remove(str(DOCS / "extensions"))
    for path in (DOCS / "extensions").glob("*.py"):
        if path.stem not in before:
            sys.modules.pop(path.stem, None)


@pytest.fixture(scope="module")
def rooms(extensions):
    return extensions("pages").plan()


def _members(rooms):
    return [m for room in rooms for page in (room, *room.pages) for m in page.members]


def test_every_public_package_has_a_page(extensions, rooms):
    pages = extensions("pages")
    there = {page.name for room in rooms for page in (room, *room.pages)}
    names = importlib.import_module("jaxanon.datasets").names()
    there |= {f"jaxanon.datasets.{name}" for name in names}
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    packages = set(setuptools["setuptools"]["packages"])
    # A folder of another package has pages of its modules alone.
    above = {".".join(page.split(".")[:end]) for page in there for end in (2, 3)}
    assert packages - there - above == pages.LEFT_OUT


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_has_its_place(rooms, room):
    package = importlib.import_module(f"jaxanon.{room}".rstrip("."))
    shown = {id(_thing(member.name)) for member in _members(rooms)}
    for name in getattr(package, "__all__", ()):
        thing = getattr(package, name)
        if not inspect.ismodule(thing) and name != "__version__":
            assert id(thing) in shown, f"{package.__name__}.{name} is on no page"


def _thing(name):
    package, _, last = name.rpartition(".")
    return getattr(importlib.import_module(package), last)


def test_nothing_has_two_places(rooms):
    names = [member.name for member in _members(rooms)]
    assert len(names) == len(set(names)) > 500
    things = [_thing(m.name) for m in _members(rooms) if m.kind != "data"]
    assert len(things) == len({id(thing) for thing in things})


def test_what_the_readme_imports_has_a_page(rooms):
    there = {page.name for room in rooms for page in (room, *room.pages)}
    lines = re.findall(
        r"^from (jaxanon[\w.]*) import (.*)$", (ROOT / "README.md").read_text(), re.M
    )
    named = (
        (home, part.split(" as ")[0]) for home, w in lines for part in w.split(", ")
    )
    found = {f"{home}.{name}" for home, name in named}
    assert {"jaxanon.core.release", "jaxanon.kernels"} <= found
    modules = {name for name in found if inspect.ismodule(_thing(name))}
    assert len(modules) > 5 and not modules - there


class Sample(NamedTuple):
    """Has words for its fields wherever they may stand."""

    beside: int  # from 0
    # up to *n*
    longer: int  # of ``x``
    # Stands above.
    above: int = 0
    silent: int = 0
    below: int = 0
    """stands below"""


class Listed(NamedTuple):
    """Lists them.

    Attributes:
      one: the first,
        in two lines.
      two: the second.
    """

    one: int
    two: int


def test_words_for_fields_are_found(extensions):
    said = extensions("fields").said_of
    assert said(Sample) == {
        "beside": "from 0 up to \\*n\\*",
        "longer": "of ``x``",
        "above": "Stands above.",
        "silent": "",
        "below": "stands below",
    }
    assert said(Listed) == {"one": "the first, in two lines.", "two": "the second."}
    lines = inspect.getdoc(Listed).splitlines()
    extensions("fields").before_napoleon(None, "class", "", Listed, None, lines)
    assert lines == ["Lists them.", ""]


def test_a_sentence_s_colon_is_no_type_s(extensions):
    fields = extensions("fields")
    lines = ["Args:", "  x: a number.", "", "Returns:", "  A pair: of x."]
    fields.before_napoleon(None, "function", "f", None, None, lines)
    assert lines[1] == "  x: a number." and ":" not in lines[4]
    fields.after_napoleon(None, "function", "f", None, None, lines)
    assert lines[4] == "  A pair: of x."


def test_the_guide_is_the_readme(extensions):
    text = (ROOT / "README.md").read_text()
    cut = extensions("guide").cut(text)
    for line in text.split("\n## ", 1)[1].splitlines():
        if len(line) > 20 and not line.startswith("#") and "](" not in line:
            assert any(line in page for page in cut.values()), line
    for page in cut.values():
        for target in re.findall(r"\]\(([^)\s]+)\)", page):
            file = target.partition("#")[0]
            here = file in cut or (DOCS / "guide" / file).resolve().exists()
            assert "://" in target or here, target


def test_the_first_example_is_the_readme_s():
    """Which ``docs/test_readme.py`` runs."""
    if not DOCS.exists():
        pytest.skip("docs/ is not beside the tests; only a checkout has both")
    block = r"^```python\n(.*?)^```$"
    [shown] = re.findall(block, (DOCS / "index.md").read_text(), re.DOTALL | re.M)
    assert shown in re.findall(block, (ROOT / "README.md").read_text(), re.S | re.M)


def test_what_looks_like_a_heading_in_code_is_none(extensions):
    text = (
        "# t\n\n## One\n\n### In it\n\n```bash\n## not\n```\n[x](#two)\n\n## Two\nend\n"
    )
    cut = extensions("guide").cut(text)
    assert cut == {
        "one.md": "# One\n\n## In it\n\n```bash\n## not\n```\n[x](two.md)\n\n",
        "two.md": "# Two\nend\n",
    }


def test_every_verb_is_asked(extensions):
    commands = extensions("commands")
    pages = {
        name: commands.page(name, main) for name, main in commands.PROGRAMS.items()
    }
    for name, verbs in (
        ("jaxanon", ("demo", "train", "sweep", "datasets export", "privacy")),
        ("jaxanon-edge", ("run", "card", "dashboard")),
    ):
        for verb in verbs:
            assert f"\n## {verb}\n" in pages[name]
            assert f"$ {name} {verb} --help\nusage: {name} {verb} [-h]" in pages[name]


def test_names_in_backticks_are_looked_up_near_by(extensions):
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    found = extensions("crossings").found
    names = ("jaxanon.load", "jaxanon.edge.load", "jaxanon.edge.Model", "jaxanon.a.b_c")
    objects = {name: _Object() for name in names}
    at = lambda scope, *taken: (scope, set(taken))
    assert found("load", at("jaxanon.edge.Model"), objects) == "jaxanon.edge.load"
    assert found("load", at("jaxanon.kernels.f"), objects) == "jaxanon.load"
    assert found("load", at("jaxanon.kernels.f", "load"), objects) is None
    assert found("load", at(""), objects) is None
    assert found("ja.load", at(""), objects) == "jaxanon.load"
    assert found("Model", at("jaxanon.kernels.f"), objects) == "jaxanon.edge.Model"
    assert found("Model", at("jaxanon.edge.Model"), objects) is None
    assert found("x.T @ x", at("jaxanon.edge.Model"), objects) is None


class _Object:
    objtype, aliased = "function", False


def _cells(name):
    path = DOCS / "tutorials" / f"{name}.md"
    if not path.exists():
        pytest.skip("docs/ is not beside the tests; only a checkout has both")
    cells = re.findall(
        r"^```\{code-cell\} python\n(?::[^\n]*\n)*(.*?)^```$",
        path.read_text(),
        re.DOTALL | re.MULTILINE,
    )
    assert len(cells) == path.read_text().count("```{code-cell}") > 3
    return cells


def _imported(tree):
    """What the import statements of a tutorial bind, by name."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module = importlib.import_module(alias.name)
                top = importlib.import_module(alias.name.partition(".")[0])
                bound[alias.asname or top.__name__] = module if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            home = importlib.import_module(node.module)
            for alias in node.names:
                bound[alias.asname or alias.name] = getattr(home, alias.name)
    return bound


def _dotted(node):
    """``("a", "b", "c")`` of ``a.b.c``; empty where it starts with something else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorials_use_names_that_exist(name):
    tree = ast.parse("\n".join(_cells(name)))
    bound = _imported(tree)
    checked = 0
    for node in ast.walk(tree):
        first, *rest = _dotted(node) or ("",)
        thing = bound.get(first)
        for part in rest if first in bound else ():
            assert hasattr(thing, part), f"{first}.{'.'.join(rest)}"
            thing = getattr(thing, part)
            checked += 1
    assert checked > 5


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorials_name_arguments_that_exist(name):
    tree = ast.parse("\n".join(_cells(name)))
    bound = _imported(tree)
    for node in ast.walk(tree):
        path = _dotted(node.func) if isinstance(node, ast.Call) else ()
        if not path or not getattr(bound.get(path[0]), "__name__", "").startswith(
            "jaxanon"
        ):
            continue
        thing = bound[path[0]]
        for part in path[1:]:
            thing = getattr(thing, part)
        named = {each.arg: None for each in node.keywords if each.arg}
        inspect.signature(thing).bind_partial(**named)


def test_every_tutorial_is_checked_and_listed():
    if not DOCS.exists():
        pytest.skip("docs/ is not beside the tests; only a checkout has both")
    there = {path.stem for path in (DOCS / "tutorials").glob("*.md")} - {"index"}
    assert there == set(TUTORIALS)
    listed = (DOCS / "tutorials" / "index.md").read_text()
    assert all(f"{{doc}}`{name}`" in listed for name in TUTORIALS)
