"""The code of every how-to page runs, and the pages are complete."""

import ast
import re

import documents
import pytest
from hasty import hasty

import jaxanon
from jaxanon.attacks import ATTACKERS
from jaxanon.evaluation import attackers

FAST = ("hold-out-people", "load-data")  # Pages whose blocks do not train.
KERNELS = documents.DOCS / "how-to" / "kernels.md"
MODULES = "plugins"  # Its blocks are modules, which ``test_plugins`` imports.


def _pages():
    marked = lambda path: () if path.stem in FAST else pytest.mark.slow
    return [
        pytest.param(path, marks=marked(path), id=path.stem)
        for path in documents.guides()
        if path.stem != MODULES
        and any(what == "python" for what, _ in documents.blocks(documents.read(path)))
    ]


def _sections(text):
    """Returns (heading, Python blocks) of the introduction and of each section."""
    bare = documents.BLOCK.sub(
        lambda match: re.sub("^#", "\0", match[0], flags=re.M), text
    )
    parts = re.split(r"^(?=## )", bare, flags=re.M)
    code = lambda part: [
        code
        for what, code in documents.blocks(part.replace("\0", "#"))
        if what == "python"
    ]
    return [(part.partition("\n")[0], code(part)) for part in parts]


def test_sections_are_found():
    python = "```python\n## no heading\n```\n"
    text = f"# t\n## a\n{python}words\n## c\n{python}{python}"
    block = "## no heading\n"
    found = [("# t", []), ("## a", [block]), ("## c", [block, block])]
    assert _sections(text) == found


@pytest.mark.parametrize("path", _pages())
def test_python_runs(path, tmp_path, monkeypatch):
    """A page is one program; of the kernels, each section needs only the imports."""
    monkeypatch.chdir(tmp_path)
    first, *others = _sections(documents.read(path))
    names = {"__name__": path.stem}
    _run(path, first, names)
    for section in others:
        _run(path, section, dict(names) if path == KERNELS else names)


def _run(path, section, names):
    heading, code = section
    for number, block in enumerate(code):
        with hasty():
            exec(compile(block, f"{path.name}, {heading}, {number}", "exec"), names)


def _kernels_in(code):
    """Returns every name ``x`` that occurs in code as ``kernels.x``."""
    return {
        node.attr
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "kernels"
    }


def test_kernels_are_found_in_code_alone():
    code = "# kernels.a\nprint('kernels.b', kernels.c(1), map(kernels.d, x))\n"
    assert _kernels_in(code) == {"c", "d"}


def _kernel_functions():
    things = {name: getattr(jaxanon.kernels, name) for name in jaxanon.kernels.__all__}
    return {name for name, thing in things.items() if not isinstance(thing, type)}


def _kernel_code():
    blocks = documents.blocks(documents.read(KERNELS))
    return [code for what, code in blocks if what == "python"]


def test_every_kernel_is_shown_in_use():
    shown = set().union(*map(_kernels_in, _kernel_code()))
    assert not _kernel_functions() - shown


def test_examples_of_kernels_are_short():
    code = _kernel_code()
    assert len(code) > 40
    assert not [block for block in code if len(block.strip().splitlines()) > 8]


def test_every_kernel_is_listed():
    listed = re.findall(r"^\| (`.*?) \|", documents.read(KERNELS), re.MULTILINE)
    names = re.findall(r"`(\w+)`", " ".join(listed))
    assert sorted(names) == sorted(_kernel_functions())


def test_every_attack_is_listed():
    text = documents.read(documents.DOCS / "how-to" / "attacks.md")
    table = text.split("\n| `--attacks` |")[1].split("\n\n")[0]
    listed = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    names = re.findall(r"`([\w-]+)`", " ".join(listed))
    assert sorted(names) == sorted([*ATTACKERS, *attackers.ATTACKS])


def test_every_anonymizer_can_be_chosen():
    text = documents.read(documents.DOCS / "how-to" / "choose-a-method.md")
    named = set(re.findall(r"`(\w+)`", text))
    assert not set(jaxanon.methods.NAMES) - named


def test_every_learner_can_be_chosen():
    text = documents.read(documents.DOCS / "how-to" / "learners.md")
    named = set(re.findall(r"`(\w+)`", text))
    assert not set(jaxanon.learners.NAMES) - named
