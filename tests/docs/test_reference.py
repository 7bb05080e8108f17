"""The generated reference is complete, and every page names its reader."""

import dataclasses
import importlib
import inspect
import json
import pathlib
import re
import sys
import tomllib
from typing import NamedTuple

import pytest

import jaxanon
from jaxanon import kernels
from jaxanon.attacks import ATTACKERS
from jaxanon.core import aliases, registry
from jaxanon.evaluation import attackers

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PACKAGES = ["", *jaxanon._ROOMS, "edge", "evaluation", "exporting", "report", "sweeps"]
PACKAGES += ["training"]
WRITTEN = ("explanation", "reference", "results", "project")
INCLUDED = ("changelog", "contributing")  # Pages that include a file of the root.


@pytest.fixture(scope="module")
def extensions():
    """Imports a module of ``docs/extensions`` by name and removes it afterwards."""
    if not DOCS.exists():
        pytest.skip("docs/ is not next to the tests; use a checkout")
    before, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, str(DOCS / "extensions"))
    yield importlib.import_module
    sys.path[:] = path
    for file in (DOCS / "extensions").glob("*.py"):
        if file.stem not in before:
            sys.modules.pop(file.stem, None)
    for name in set(sys.modules) - before:  # Modules of bench.
        if str(ROOT / "bench") in str(getattr(sys.modules[name], "__file__", "")):
            sys.modules.pop(name)


@pytest.fixture(scope="module")
def plan(extensions):
    return extensions("api").plan()


def _thing(name):
    package, _, last = name.rpartition(".")
    return getattr(importlib.import_module(package), last)


def test_every_public_package_has_a_page(extensions, plan):
    pages = {*plan, *(f"jaxanon.datasets.{n}" for n in jaxanon.datasets.names())}
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    packages = set(setuptools["setuptools"]["packages"])
    # A folder inside a package has pages for its modules only.
    parents = {".".join(page.split(".")[:end]) for page in pages for end in (2, 3)}
    assert packages - pages - parents == extensions("api").LEFT_OUT


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_has_a_place(plan, name):
    package = importlib.import_module(f"jaxanon.{name}".rstrip("."))
    shown = {id(_thing(member)) for names in plan.values() for member in names}
    for public in getattr(package, "__all__", ()):
        thing = getattr(package, public)
        if not inspect.ismodule(thing) and public != "__version__":
            assert id(thing) in shown, f"{package.__name__}.{public} is on no page"


def test_no_name_has_two_places(extensions, plan):
    kind_of = extensions("api").kind_of
    names = [member for names in plan.values() for member in names]
    assert len(names) == len(set(names)) > 500
    things = [id(_thing(name)) for name in names if kind_of(_thing(name)) != "data"]
    assert len(things) == len(set(things))


def test_imports_of_the_guides_have_a_page(plan):
    text = "\n".join(path.read_text() for path in (DOCS / "how-to").glob("*.md"))
    lines = re.findall(r"^from (jaxanon[\w.]*) import ([\w, ]+)$", text, re.M)
    named = {f"{home}.{name}" for home, w in lines for name in w.split(", ")}
    named = {name.split(" as ")[0] for name in named}
    modules = {name for name in named if inspect.ismodule(_thing(name))}
    assert not modules - {*plan}


class Sample(NamedTuple):
    """Has comments for its fields in all places."""

    beside: int  # from 0
    # up to *n*
    longer: int  # number of ``x``
    # Stands above.
    above: int = 0
    silent: int = 0
    below: int = 0
    """stands below"""


class Listed(NamedTuple):
    """Lists its fields.

    Attributes:
      one: the first,
        in two lines.
      two: the second.
    """

    one: int
    two: int


def test_comments_of_fields_are_found(extensions):
    documented = extensions("fields").documented
    assert documented(Sample) == {
        "beside": "from 0 up to \\*n\\*",
        "longer": "number of ``x``",
        "above": "Stands above.",
        "silent": "",
        "below": "stands below",
    }
    expected = {"one": "the first, in two lines.", "two": "the second."}
    assert documented(Listed) == expected
    lines = inspect.getdoc(Listed).splitlines()
    extensions("fields").before_napoleon(None, "class", "", Listed, None, lines)
    assert lines == ["Lists its fields.", ""]


def test_a_colon_in_a_sentence_is_not_a_type(extensions):
    fields = extensions("fields")
    lines = ["Args:", "  x: a number.", "", "Returns:", "  A pair: of x."]
    fields.before_napoleon(None, "function", "f", None, None, lines)
    assert lines[1] == "  x: a number." and ":" not in lines[4]
    fields.after_napoleon(None, "function", "f", None, None, lines)
    assert lines[4] == "  A pair: of x."


def test_names_in_backticks_are_resolved_nearby_first(extensions):
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    find = extensions("crossings").find
    names = ("jaxanon.load", "jaxanon.edge.load", "jaxanon.edge.Model", "jaxanon.a.b_c")
    objects = {name: _Object() for name in names}
    at = lambda scope, *arguments: (scope, set(arguments))
    assert find("load", at("jaxanon.edge.Model"), objects) == "jaxanon.edge.load"
    assert find("load", at("jaxanon.kernels.f"), objects) == "jaxanon.load"
    assert find("load", at("jaxanon.kernels.f", "load"), objects) is None
    assert find("load", at(""), objects) is None
    assert find("ja.load", at(""), objects) == "jaxanon.load"
    assert find("Model", at("jaxanon.kernels.f"), objects) == "jaxanon.edge.Model"
    assert find("Model", at("jaxanon.edge.Model"), objects) is None
    assert find("x.T @ x", at("jaxanon.edge.Model"), objects) is None


class _Object:
    objtype, aliased = "function", False


def test_every_command_has_a_section(extensions):
    cli = extensions("cli")
    pages = {name: cli.page(name, main) for name, main in cli.PROGRAMS.items()}
    for name, commands in (
        ("jaxanon", ("demo", "train", "sweep", "datasets export", "privacy")),
        ("jaxanon-edge", ("run", "card")),
    ):
        for command in commands:
            usage = f"$ {name} {command} --help\nusage: {name} {command} [-h]"
            assert f"\n## {command}\n" in pages[name] and usage in pages[name]


def test_every_kernel_has_a_cost(extensions):
    functions = (name for name in kernels.__all__ if callable(getattr(kernels, name)))
    names = {n for n in functions if not inspect.isclass(getattr(kernels, n))}
    costs = extensions("kernel_cards").costs()
    assert {*costs} == names
    assert all(operations and memory for operations, memory in costs.values())


def test_every_measured_kernel_exists(extensions):
    lines = extensions("kernel_cards").measured()
    assert {machine for machine, *_ in lines} == {"CPU", "GPU"} and len(lines) > 50
    for _, kernel, *_ in lines:
        assert {*re.findall(r"`(\w+)`", kernel)} <= {*kernels.__all__}, kernel


def test_kernel_cards_hold_all_parts(extensions):
    page = extensions("kernel_cards").pages()["warping.md"]
    assert "| `dtw` | `pairs · time_x · time_y · channels` |" in page
    assert "## Measured speed" in page and "| CPU | 10000 pairs, 128 x 6 |" in page
    assert ".. autofunction:: jaxanon.kernels.dtw\n" in page


KINDS = ("anonymizer", "learner")
NAMES = [name for kind in KINDS for name in registry.names(kind)]


@pytest.mark.parametrize("name", NAMES)
def test_every_method_has_a_card(extensions, name):
    card = extensions("method_cards").card(name)
    assert card.startswith(f"# {name}\n") and f"jaxanon train {name} --help" in card
    for field in dataclasses.fields(registry.entry(name).config):
        assert f"\n| `{field.name}` | `" in card
    assert "$" not in card  # Would start mathematics.


def test_cards_hold_bounds_results_and_sources(extensions):
    cards = extensions("method_cards").pages("anonymizer")
    assert re.search(
        r"\| `beta` \| `\S+` \| >= 0 \| weight of the KL", cards["blinder.md"]
    )
    assert "**Source.** " in cards["blinder.md"]
    assert "| MotionSense, unseen subjects | Blinder, guided |" in cards["blinder.md"]
    learners = extensions("method_cards").pages("learner")
    assert (
        "| UCI HAPT | FedPer, local fine-tuning | no noise | 94.1 % |"
        in (learners["fedper.md"])
    )


def test_every_data_set_has_a_card(extensions):
    pages = extensions("dataset_cards").pages()
    assert {*pages} == {f"{name}.md" for name in jaxanon.datasets.names()}
    for text in pages.values():
        assert "```bibtex\n@" in text and "| default public attribute | `" in text


def test_generated_pages_are_rewritten_only_if_they_change(extensions, tmp_path):
    generated = extensions("generated")
    generated.FOLDERS = {"cli": lambda: {"a.md": "# a\n"}}
    folder = tmp_path / "reference" / "cli"
    folder.mkdir(parents=True)
    (folder / "old.md").touch()
    generated.write(tmp_path)
    before = (folder / "a.md").stat().st_mtime_ns
    generated.write(tmp_path)
    assert [path.name for path in folder.iterdir()] == ["a.md"]
    assert (folder / "a.md").stat().st_mtime_ns == before


def _written():
    folders = [DOCS / folder for folder in WRITTEN]
    pages = sorted(path for folder in folders for path in folder.glob("*.md"))
    return [path for path in pages if path.stem not in INCLUDED]


@pytest.mark.parametrize(
    "path", _written(), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_pages_name_their_reader(path):
    title, _, reader, *_ = path.read_text().split("\n")
    assert title.startswith("# ") and re.match(r"\*(For|Terms)\b", reader), reader


def test_options_and_attacks_exist(extensions):
    cli = extensions("cli")
    help = "".join(cli.page(name, main) for name, main in cli.PROGRAMS.items())
    options = {*re.findall(r"--[a-z][a-z-]+", help), "--help", "--plugin"}
    for kind in (*KINDS, "controller"):
        for name in registry.names(kind):
            fields = dataclasses.fields(registry.entry(name).config)
            options |= {f"--{field.name.replace('_', '-')}" for field in fields}
    options |= {"--seed", "--resume", "--profile", "--epochs", "--dataset", "--split"}
    for path in _written():
        lines = [line for line in path.read_text().splitlines() if "bench" not in line]
        text = "\n".join(lines)
        assert {*re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)} <= options, path.name
        for name in re.findall(r"--attacks ([a-z_-]+)", text):
            assert name in {*ATTACKERS, *attackers.ATTACKS}, path.name


def test_recipes_are_listed(extensions):
    class Recipe(NamedTuple):
        purpose: str
        settings: dict
        epochs: int | None

    recipes = extensions("recipe_cards")
    found = {"fast": Recipe("A first look.", {"beta": 2.0}, 2)}
    assert recipes.listed(found) == [("`fast`", "A first look.", "2", "`beta=2.0`")]
    assert recipes.pages()["index.md"].startswith("# Recipes\n")


@pytest.mark.parametrize("folder", WRITTEN)
def test_indexes_list_every_page(folder):
    text = (DOCS / folder / "index.md").read_text()
    names = {path.stem for path in (DOCS / folder).glob("*.md")} - {"index"}
    assert names and all(f"{{doc}}`{name}`" in text for name in names)
    toctree = text.split("```{toctree}")[1]
    assert all(f"\n{name}\n" in toctree for name in names)


def test_every_table_of_results_is_on_one_page(bench_tables):
    pages = sorted((DOCS / "results").glob("*.md"))
    text = "".join(path.read_text() for path in pages)
    names = re.findall(r"<!-- table: (.+?) -->", text)
    assert sorted(names) == sorted({*bench_tables} - {"front door"})
    assert text.count("\nMeasured on ") == len(names)


@pytest.fixture
def bench_tables(extensions):
    extensions("kernel_cards").measured()  # Makes bench importable.
    return importlib.import_module("readme.command").TABLES


def test_stored_rows_name_the_device(bench_tables):
    for path in (ROOT / "bench" / "results").glob("*.json"):
        rows = json.loads(path.read_text())
        assert all(row.get("device") for row in rows), path.name


def test_the_changelog_lists_renamed_settings():
    log = (ROOT / "CHANGELOG.md").read_text()
    for old, new in aliases.SETTINGS.items():
        assert f"| `{old}` | {', '.join(f'`{each}`' for each in new)} |" in log
    for (name, old), new in aliases.VALUES.items():
        assert f'| `{name}="{old}"` | `{name}="{new}"` |' in log


def test_entries_of_the_changelog_start_with_a_verb():
    log = (ROOT / "CHANGELOG.md").read_text()
    for heading, verb in (("Added", "Add"), ("Changed", "Change"), ("Fixed", "Fix")):
        for part in re.findall(rf"^### {heading}\n\n(.*?)(?=^#)", log, re.M | re.S):
            entries = re.findall(r"^- (\w+)", part, re.M)
            assert entries and {*entries} == {verb}
