"""Who may import whom, and what every source file owes its reader."""

import ast
import importlib
import pathlib
import sys
from typing import NamedTuple

import pytest


class Room(NamedTuple):
    """What the files of a room may import, beside the standard library."""

    rooms: set[str]
    packages: set[str]


# A room is the longest of these names that a module's own name begins with.
MAY_IMPORT = {
    "jaxanon.kernels": Room(set(), {"jax", "numpy"}),
    "jaxanon.datasets": Room(set(), {"numpy", "tensorflow_datasets", "etils", "edfio"}),
    "jaxanon.privacy": Room(
        {"kernels"}, {"jax", "numpy", "optax", "scipy", "dp_accounting"}
    ),
    "jaxanon.models": Room({"kernels"}, {"jax", "numpy", "optax", "flax"}),
    "jaxanon.federated": Room(
        {"kernels", "privacy"}, {"jax", "numpy", "optax", "array_record", "grain"}
    ),
    "jaxanon.metrics": Room(
        {"kernels", "models"}, {"jax", "numpy", "optax", "scipy", "sklearn"}
    ),
    "jaxanon.attacks": Room(
        {"kernels", "models", "metrics"}, {"jax", "numpy", "optax", "sklearn"}
    ),
    "jaxanon.methods": Room(
        {"kernels", "models", "federated", "datasets", "metrics", "privacy"},
        {"jax", "numpy", "optax"},
    ),
    "jaxanon.learners": Room(
        {"kernels", "models", "federated", "datasets", "methods", "privacy"},
        {"jax", "numpy", "optax"},
    ),
    "jaxanon.energy": Room(
        {"kernels", "models", "federated", "datasets", "metrics", "privacy"},
        {"jax", "numpy", "optax"},
    ),
    "jaxanon.edge": Room({"version"}, {"numpy", "onnxruntime", "paho"}),
    "jaxanon.flower": Room(
        {"federated", "datasets", "learners", "methods", "top"},
        {
            *("jax", "numpy", "flwr", "cryptography", "fastapi", "httpx", "starlette"),
            "uvicorn",
        },
    ),
    "jaxanon.exporting": Room(
        {"attacks", "datasets", "learners", "methods", "models", "top"},
        {"jax", "numpy", "jax2onnx", "onnx", "onnxruntime"},
    ),
    "jaxanon": Room(
        {
            *("attacks", "datasets", "edge", "energy", "exporting", "federated"),
            *("flower", "kernels"),
            *("learners", "methods", "metrics", "models", "privacy"),
        },
        {
            *("jax", "numpy", "optax", "orbax", "etils", "sklearn", "scipy"),
            *("jinja2", "matplotlib", "rich", "tyro"),
        },
    ),
}
ROOMS = sorted(MAY_IMPORT, key=len, reverse=True)
MOST_LINES = 300


def _room(module):
    return next(
        room for room in ROOMS if module == room or module.startswith(f"{room}.")
    )


def _sources():
    """(dotted name, path) of every module that is installed as jaxanon."""
    found = {}
    for room in ROOMS:
        if room == "jaxanon.privacy" and importlib.util.find_spec(room) is None:
            continue
        for folder in importlib.import_module(room).__path__:
            for path in sorted(pathlib.Path(folder).rglob("*.py")):
                inside = path.relative_to(folder).with_suffix("").parts
                name = ".".join((room, *inside)).removesuffix(".__init__")
                found.setdefault(path, name)
    return [(name, path) for path, name in found.items()]


SOURCES = _sources()
HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
SCRIPTS = [
    *sorted((HERE.parent / "bench").rglob("*.py")),
    *sorted(HERE.rglob("*.py")),
    *sorted([*DOCS.glob("*.py"), *(DOCS / "extensions").glob("*.py")]),
]
each_source = pytest.mark.parametrize(
    ("name", "path"), SOURCES, ids=[name for name, _ in SOURCES]
)


def _imports(tree):
    """Dotted names that a file imports, at whatever depth, as it spells them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: import jaxanon.* by full name"
            if node.module == "jaxanon":
                yield from (f"jaxanon.{alias.name}" for alias in node.names)
            else:
                yield node.module


def _forbidden(name, tree):
    """The imports of module ``name`` that its room does not allow."""
    room = _room(name)
    allowed = MAY_IMPORT[room]
    within = {room, *(f"jaxanon.{other}" for other in allowed.rooms)}
    within |= {"jaxanon"} if "top" in allowed.rooms else set()
    for imported in _imports(tree):
        top = imported.partition(".")[0]
        if imported == "jaxanon.__version__" and "version" in allowed.rooms:
            continue
        if top == "jaxanon":
            if _room(imported) not in within:
                yield imported
        elif top not in allowed.packages and top not in sys.stdlib_module_names:
            yield imported


@each_source
def test_imports_point_down(name, path):
    assert not sorted(set(_forbidden(name, ast.parse(path.read_text()))))


@pytest.mark.parametrize(
    ("name", "line", "refused"),
    [
        ("jaxanon.kernels.a", "import flax.linen as nn", True),
        ("jaxanon.kernels.a", "import optax", True),
        ("jaxanon.kernels.a", "from jaxanon.kernels.b import c", False),
        ("jaxanon.kernels.a", "from jaxanon import federated", True),
        ("jaxanon.federated.a", "from jaxanon import kernels", False),
        ("jaxanon.federated.a", "import kernels", True),
        ("jaxanon.edge.a", "import jax", True),
        ("jaxanon.edge.a", "from jaxanon import checks", True),
        ("jaxanon.edge.a", "from jaxanon import __version__", False),
        ("jaxanon.edge.a", "from jaxanon.edge.b import c", False),
        ("jaxanon.kernels.a", "from jaxanon import __version__", True),
        ("jaxanon.models.a", "from flax import linen", False),
        ("jaxanon.models.a", "from jaxanon.training import train", True),
        ("jaxanon.datasets.a", "import jax", True),
        ("jaxanon.training", "import flax", True),
        ("jaxanon.training", "import flwr", True),
        ("jaxanon.flower.a", "from jaxanon.training import describe", False),
        ("jaxanon.flower.a", "from jaxanon.models import vae", True),
        ("jaxanon.training", "from jaxanon.models import vae", False),
    ],
)
def test_the_table_is_applied(name, line, refused):
    assert bool(list(_forbidden(name, ast.parse(line)))) == refused


def test_relative_imports_are_refused():
    with pytest.raises(AssertionError, match="import jaxanon"):
        list(_imports(ast.parse("from . import b")))


@pytest.mark.parametrize(
    "path",
    [path for _, path in SOURCES] + SCRIPTS,
    ids=lambda path: "/".join(path.parts[-3:]),
)
def test_files_are_short_and_say_what_they_are_for(path):
    text = path.read_text()
    assert len(text.splitlines()) < MOST_LINES
    assert "util" not in path.stem
    first_line = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    assert len(first_line) > 10, "the first line must state the file's one job"


def _literal_keys(tree):
    """Lines that make a key of a literal, or a legacy key of anything."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "PRNGKey":
            yield node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_random = ast.unparse(node.func.value).endswith("random")
            literal = node.args and isinstance(node.args[0], ast.Constant)
            if of_random and node.func.attr == "key" and literal:
                yield node.lineno


@each_source
def test_no_key_is_made_of_a_literal(name, path):
    assert not list(_literal_keys(ast.parse(path.read_text())))


def test_literal_keys_are_found():
    text = "a = jax.random.key(0)\nb = jax.random.key(seed)\nc = random.PRNGKey(s)"
    assert list(_literal_keys(ast.parse(text))) == [1, 3]
