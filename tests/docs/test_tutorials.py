"""Tutorials and guides name their readers, and their links and names exist."""

import ast
import importlib
import inspect
import json
import pathlib
import re

import documents
import pytest

# The build writes these pages.
GENERATED = ("reference/", "commands/", "guide/")


def _written():
    return [*documents.guides(), *documents.tutorials()]


def _id(path):
    return path.stem


@pytest.mark.parametrize("path", _written(), ids=_id)
def test_page_names_its_reader_and_time(path):
    start = " ".join(documents.read(path).split()[:80])
    assert re.search(r"\*\*For\*\*: .+?\. \*\*Time\*\*: .+?\.", start)


@pytest.mark.parametrize("folder", ["how-to", "tutorials"])
def test_index_lists_every_page(folder):
    index = documents.DOCS / folder / "index.md"
    text = documents.read(index)
    written = {path.stem for path in _written() if path.parent == index.parent}
    [tree] = re.findall(r"```\{toctree\}\n(?::\w+:.*\n)*\n(.*?)```", text, re.DOTALL)
    assert set(tree.split()) == written
    linked = {pathlib.Path(target).stem for target in documents.links(text)}
    assert written <= linked


def test_links_are_found():
    text = "[a](b.md#c) ![d](e.png)\n```\n[f](g)\n```\n"
    assert documents.links(text) == ["b.md#c", "e.png"]


def _slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize(
    "path",
    [documents.README, *_written(), *sorted(documents.DOCS.glob("*/index.md"))],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_links_lead_somewhere(path):
    text = documents.read(path)
    for target in documents.links(text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), f"{path.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", documents.read(there), re.MULTILINE)
            assert anchor in map(_slug, headings), f"{path.name} links to {target}"
    for role in re.findall(r"\{doc\}`(?:[^`<]*<)?([^`<>]+)>?`", text):
        base = documents.DOCS if role.startswith("/") else path.parent
        there = (base / role.lstrip("/")).resolve()
        relative = f"{there.relative_to(documents.DOCS)}/"
        exists = any(there.with_suffix(end).exists() for end in (".md", ".ipynb"))
        assert exists or relative.startswith(GENERATED), f"{path.name}: {role}"


@pytest.mark.parametrize("path", documents.tutorials(), ids=_id)
def test_notebook_is_valid_and_holds_no_output(path):
    nbformat = pytest.importorskip("nbformat", reason="install the extra docs")
    documents.read(path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    nbformat.validate(notebook)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 3
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)


def _imported(tree):
    """Returns what the import statements of a tutorial bind, by name."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in ("my_methods", "equinox"):
                    continue
                module = importlib.import_module(alias.name)
                top = importlib.import_module(alias.name.partition(".")[0])
                bound[alias.asname or top.__name__] = module if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            home = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(home, alias.name):  # A submodule, such as flax.nnx.
                    importlib.import_module(f"{node.module}.{alias.name}")
                bound[alias.asname or alias.name] = getattr(home, alias.name)
    return bound


def _dotted(node):
    """Returns ``("a", "b", "c")`` of ``a.b.c``, else an empty tuple."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


@pytest.mark.parametrize("path", documents.tutorials(), ids=_id)
def test_tutorials_use_names_that_exist(path):
    tree = ast.parse("\n".join(documents.cells(path)))
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


@pytest.mark.parametrize("path", documents.tutorials(), ids=_id)
def test_tutorials_name_arguments_that_exist(path):
    tree = ast.parse("\n".join(documents.cells(path)))
    bound = _imported(tree)
    for node in ast.walk(tree):
        dotted = _dotted(node.func) if isinstance(node, ast.Call) else ()
        if not dotted or not getattr(bound.get(dotted[0]), "__name__", "").startswith(
            "jaxanon"
        ):
            continue
        thing = bound[dotted[0]]
        for part in dotted[1:]:
            thing = getattr(thing, part)
        named = {each.arg: None for each in node.keywords if each.arg}
        inspect.signature(thing).bind_partial(**named)
