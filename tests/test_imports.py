"""Allowed imports between packages, and requirements of every source file."""

import ast
import importlib
import pathlib
import pkgutil
import sys
from typing import NamedTuple

import pytest

import jaxanon

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
BENCH = HERE.parent / "bench"


class Row(NamedTuple):
    """Allowed imports of a package in addition to itself and the standard library."""

    ours: str  # packages, or single modules of them, without "jaxanon."
    theirs: str  # top-level packages of others


# The longest prefix of a module's name decides; ``kernels`` stands for
# ``jaxanon.kernels``, and so on. Every module may import ``jaxanon.__version__``.
MAY_IMPORT = {
    "": Row("cli", ""),  # ``jaxanon`` itself: ``__init__`` and ``__main__``.
    "kernels": Row("", "jax numpy"),
    "edge": Row("recordings", "numpy onnxruntime paho"),
    "datasets": Row("recordings", "numpy tensorflow_datasets etils edfio"),
    "datasets.importing": Row("recordings", "numpy pyarrow h5py"),
    "recordings": Row("", "numpy"),
    "report": Row("core.command_line datasets.writing", "numpy matplotlib jinja2"),
    "privacy": Row("kernels datasets.writing", "jax numpy optax scipy dp_accounting"),
    "models": Row("kernels", "jax numpy optax flax"),
    "federated": Row("kernels privacy", "jax numpy optax array_record grain"),
    "metrics": Row("kernels models", "jax numpy optax scipy sklearn"),
    "attacks": Row("kernels models metrics edge.forest", "jax numpy optax sklearn"),
    "attacks.auditing": Row("kernels models metrics federated", "jax numpy"),
    "core": Row("kernels datasets privacy federated edge.budget", "jax numpy"),
    "core.programs": Row("", "jax"),
    "core.command_line": Row("", ""),
    "learners": Row("kernels core models federated privacy", "jax numpy optax"),
    "energy": Row(
        "kernels core models federated metrics privacy datasets", "jax numpy optax"
    ),
    "methods": Row("kernels core models federated privacy datasets", "jax numpy optax"),
    "methods.dysan.online_selection": Row(
        "kernels core models datasets attacks methods.common methods.dysan edge.forest",
        "jax numpy",
    ),
    "training": Row("kernels core federated privacy datasets", "jax numpy orbax rich"),
    "flower": Row(
        "kernels core training federated privacy datasets edge.budget",
        "jax numpy flwr cryptography httpx starlette uvicorn",
    ),
    "exporting": Row(
        "kernels core methods.common methods.dysan models attacks datasets edge.forest",
        "jax numpy jax2onnx onnx onnxruntime",
    ),
    "evaluation": Row(
        "kernels core training learners energy attacks metrics federated privacy "
        "report datasets streaming",
        "jax numpy scipy",
    ),
    # It trains as sweeps do; the import is lazy, because sweeps evaluate.
    "evaluation.left_out": Row(
        "core training attacks metrics datasets sweeps", "jax numpy"
    ),
    "streaming": Row(
        "kernels core datasets recordings edge.budget edge.overlap_add "
        "edge.resampling edge.types",
        "jax numpy pyarrow",
    ),
    "sweeps": Row(
        "kernels core training evaluation methods.dysan attacks energy federated "
        "privacy report datasets",
        "jax numpy rich ray",
    ),
    "cli": Row(
        "kernels core training evaluation sweeps methods learners energy models "
        "privacy metrics attacks federated exporting edge flower report datasets "
        "streaming",
        "jax numpy rich tyro",
    ),
}

# Within a package in folders: folder -> other folders that its modules may import.
# Modules directly in the package may import every folder.
WITHIN = {
    "federated": {
        "engine": "",
        **dict.fromkeys(
            "averaging clustering gossip meta_learning personalised private".split(),
            "engine",
        ),
    },
    "methods": {
        "common": "",
        **dict.fromkeys(
            "blinder deeprotect dysan guided_diffusion malekzadeh obscurenet "
            "privatehub".split(),
            "common",
        ),
        "gan": "common privatehub",  # TimeGAN uses PrivateHub's fine-tuning.
    },
    "bench": {
        "harness": "",
        "anonymizers": "harness blinder",
        "devices": "harness blinder federated",
        "privatehub": "harness anonymizers",
        "rivals": "harness federated",
        "readme": "*",
    },
}
BENCH_ALONE = "harness"  # Modules that the other folders of ``bench/`` may import.

# Exceptions to the table: module -> (import, reason).
EXCEPTIONS: dict[str, tuple[str, str]] = {}


def _package(name):
    """Returns the name's first part without ``jaxanon.``; empty for ``jaxanon``."""
    first = name.partition(".")[0]
    return first if first in MAY_IMPORT else ""


def _sources():
    """Returns package -> dotted name without ``jaxanon.`` -> path, if installed."""
    found = {package: {} for package in MAY_IMPORT if "." not in package}
    for package, sources in found.items():
        room = importlib.import_module(f"jaxanon.{package}".rstrip("."))
        for folder in room.__path__:
            every = pathlib.Path(folder).rglob("*.py")
            for path in every if package else pathlib.Path(folder).glob("*.py"):
                inside = path.relative_to(folder).with_suffix("").parts
                name = ".".join((package, *inside)).removesuffix(".__init__")
                sources[name.lstrip(".")] = path
    return found


SOURCES = _sources()
each_package = pytest.mark.parametrize("package", SOURCES, ids=lambda name: name or ".")


def _imports(tree):
    """Returns the dotted names that a file imports, at any depth, as spelled."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: import jaxanon.* by full name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _begins(name, prefixes):
    return any(f"{name}.".startswith(f"{prefix}.") for prefix in prefixes)


def _forbidden(name, tree, exceptions=EXCEPTIONS):
    """Returns the imports of module ``name`` that the tables do not allow."""
    key = max((key for key in MAY_IMPORT if _begins(name, [key])), key=len, default="")
    package, row = _package(name), MAY_IMPORT[key]
    allowed = [*row.ours.split(), *exceptions.get(name, ("",))[0].split()]
    for imported in _imports(tree):
        top, _, ours = imported.partition(".")
        if top != "jaxanon":
            if top not in row.theirs.split() and top not in sys.stdlib_module_names:
                yield imported
        elif package and _package(ours) == package:
            if _across(package, name, ours):
                yield imported
        elif ours != "__version__" and not _begins(ours, allowed):
            yield imported


def _across(package, name, imported):
    """Returns whether an import between folders of a package is forbidden."""
    folders = WITHIN.get(package, {})
    mine, its = (f"{each}.".split(".")[1] for each in (name, imported))
    allowed = f"{mine} {folders.get(mine, '')}".split()
    return mine in folders and its not in allowed


@each_package
def test_imports_follow_the_table(package):
    found = {}
    for name, path in SOURCES[package].items():
        if forbidden := sorted(set(_forbidden(name, ast.parse(path.read_text())))):
            found[name] = forbidden
    assert not found


def test_exceptions_are_still_needed():
    for name, (ours, why) in EXCEPTIONS.items():
        tree = ast.parse(SOURCES[_package(name)][name].read_text())
        left = {
            _package(imported.removeprefix("jaxanon."))
            for imported in _forbidden(name, tree, exceptions={})
        }
        assert left == set(ours.split()), (name, why)


def test_every_package_and_folder_has_a_row():
    inside = pkgutil.iter_modules(jaxanon.__path__)
    packages = {info.name for info in inside if info.ispkg}
    assert packages | {"", "kernels", "federated", "datasets"} == set(SOURCES)
    assert set(SOURCES[""]) == {"", "__main__"}
    for package in ("federated", "methods"):
        room = importlib.import_module(f"jaxanon.{package}")
        inside = pkgutil.iter_modules(room.__path__)
        assert {info.name for info in inside if info.ispkg} == set(WITHIN[package])


@pytest.mark.parametrize(
    ("name", "line", "refused"),
    [
        ("kernels.a", "import flax.linen as nn", True),
        ("kernels.a", "import optax", True),
        ("kernels.a", "from jaxanon.kernels.b import c", False),
        ("kernels.a", "from jaxanon import federated", True),
        ("kernels.a", "from jaxanon import __version__", False),
        ("federated.a", "from jaxanon import kernels", False),
        ("federated.a", "import kernels", True),
        ("federated.a", "from jaxanon.federated.gossip import b", False),
        ("federated.gossip.a", "from jaxanon.federated.engine import b", False),
        ("federated.gossip.a", "from jaxanon.federated import engine", False),
        ("federated.gossip.a", "from jaxanon.federated import averaging", True),
        ("federated.gossip.a", "from jaxanon.federated.averaging import b", True),
        ("federated.engine.a", "from jaxanon.federated.averaging import b", True),
        ("methods.gan.a", "from jaxanon.methods.privatehub import b", False),
        ("methods.dysan.a", "from jaxanon.methods.privatehub import b", True),
        ("methods.dysan.a", "from jaxanon import attacks", True),
        ("methods.dysan.online_selection", "from jaxanon import attacks", False),
        ("edge.a", "import jax", True),
        ("edge.a", "from jaxanon.core import checks", True),
        ("edge.a", "from jaxanon import __version__", False),
        ("edge.a", "from jaxanon import kernels", True),
        ("edge.a", "from jaxanon.edge.b import c", False),
        ("models.a", "from flax import linen", False),
        ("models.a", "def f():\n  from jaxanon.training import train", True),
        ("datasets.a", "import jax", True),
        ("report.a", "from jaxanon.datasets import writing", False),
        ("report.a", "from jaxanon import datasets", True),
        ("core.a", "from jaxanon.edge.budget import Budget", False),
        ("core.a", "from jaxanon.edge.stream import Stream", True),
        ("core.a", "from jaxanon import methods", True),
        ("core.programs", "import numpy", True),
        ("training.a", "import flax", True),
        ("training.a", "import flwr", True),
        ("training.a", "from jaxanon.models import vae", True),
        ("flower.a", "from jaxanon.training.run_folder import describe", False),
        ("flower.a", "from jaxanon.models import vae", True),
        ("sweeps.a", "from jaxanon import train", True),
        ("cli.a", "from jaxanon.models import vae", False),
        ("__main__", "from jaxanon.cli.app import main", False),
        ("__main__", "from jaxanon import models", True),
    ],
)
def test_the_table_is_applied(name, line, refused):
    assert bool(list(_forbidden(name, ast.parse(line)))) == refused


def test_relative_imports_are_refused():
    with pytest.raises(AssertionError, match="import jaxanon"):
        list(_imports(ast.parse("from . import b")))


def _bench_forbidden(folder, tree, folders):
    """Returns the ``bench/`` folders that a file of ``folder`` must not import."""
    allowed = WITHIN["bench"].get(folder, BENCH_ALONE).split()
    found = {imported.partition(".")[0] for imported in _imports(tree)}
    return () if allowed == ["*"] else (found & folders) - {folder, *allowed}


def test_questions_of_the_bench_stand_alone():
    folders = {path.parent.name for path in BENCH.rglob("*.py")} - {BENCH.name}
    for path in BENCH.glob("*/*.py"):
        tree = ast.parse(path.read_text())
        assert not _bench_forbidden(path.parent.name, tree, folders), path
    planted = ast.parse("from audit import b")
    assert _bench_forbidden("atlas", planted, {"atlas", "audit"}) == {"audit"}
    assert not _bench_forbidden("readme", planted, {"readme", "audit"})


SCRIPTS = {
    "bench": BENCH.rglob("*.py"),
    "tests": HERE.rglob("*.py"),
    "docs": [*DOCS.glob("*.py"), *(DOCS / "extensions").glob("*.py")],
}


@pytest.mark.parametrize("place", [*SOURCES, *SCRIPTS], ids=lambda name: name or ".")
def test_files_say_what_they_are_for(place):
    paths = SOURCES[place].values() if place in SOURCES else SCRIPTS[place]
    for path in paths:
        assert not {"util", "utils"} & set(path.stem.split("_")), path
        said = ast.get_docstring(ast.parse(path.read_text())) or ""
        first = said.partition("\n")[0]
        assert len(first) > 10, f"{path}: the first line must state the file's one job"


def _literal_keys(tree):
    """Returns lines that make a key from a literal, or a legacy key."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "PRNGKey":
            yield node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_random = ast.unparse(node.func.value).endswith("random")
            literal = node.args and isinstance(node.args[0], ast.Constant)
            if of_random and node.func.attr == "key" and literal:
                yield node.lineno


@each_package
def test_no_key_is_made_of_a_literal(package):
    for path in SOURCES[package].values():
        assert not list(_literal_keys(ast.parse(path.read_text()))), path


def test_literal_keys_are_found():
    text = "a = jax.random.key(0)\nb = jax.random.key(seed)\nc = random.PRNGKey(s)"
    assert list(_literal_keys(ast.parse(text))) == [1, 3]
