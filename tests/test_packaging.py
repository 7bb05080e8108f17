"""Packaging: all folders, data files, and one name per module."""

import importlib
import pathlib
import pkgutil
import shutil
import subprocess
import sys
import tomllib

import pytest

import jaxanon
from jaxanon import kernels

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYPROJECT = ROOT / "pyproject.toml"
TOPS = {
    "jaxanon": "jaxanon",
    "kernels": "jaxanon.kernels",
    "federated": "jaxanon.federated",
    "datasets": "jaxanon.datasets",
    "recordings": "jaxanon.recordings",
}


@pytest.fixture(scope="module")
def setuptools():
    if not (ROOT / "kernels").exists():
        pytest.skip("the sources are not beside the tests; only a checkout has both")
    return tomllib.loads(PYPROJECT.read_text())["tool"]["setuptools"]


def _folders():
    """Returns the import name of every folder with an ``__init__.py``."""
    for top, name in TOPS.items():
        for path in (ROOT / top).rglob("__init__.py"):
            inside = path.parent.relative_to(ROOT / top).parts
            yield ".".join((name, *inside)), path.parent


def test_package_list_is_the_folders(setuptools):
    assert sorted(setuptools["packages"]) == sorted(name for name, _ in _folders())
    assert setuptools["package-dir"] == {name: top for top, name in TOPS.items()}


def test_every_folder_with_code_is_a_package():
    for top in TOPS:
        for path in (ROOT / top).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path


def test_no_public_kernel_has_the_name_of_a_folder():
    # jaxanon.kernels.dtw must not be both a function and a module.
    inside = {module.name for module in pkgutil.iter_modules(kernels.__path__)}
    assert {"checks", "warping"} < inside
    assert not inside & set(kernels.__all__)


def _data_files():
    """Returns (package, path inside it) of every file that is not Python."""
    for name, folder in _folders():
        for path in folder.iterdir():
            if path.is_file() and path.suffix not in (".py", ".pyc"):
                yield name, path.name


def test_every_data_file_is_packaged(setuptools):
    for name, file in _data_files():
        patterns = setuptools["package-data"].get(name, [])
        assert any(pathlib.PurePath(file).match(p) for p in patterns), (name, file)
    names = {name for name, _ in _folders()}
    assert set(setuptools["package-data"]) <= names


def test_data_files_are_installed():
    for name, file in [("jaxanon", "py.typed"), *_data_files()]:
        folders = importlib.import_module(name).__path__
        assert any((pathlib.Path(folder) / file).is_file() for folder in folders), file


TWICE = """
import collections, importlib, importlib.util, pkgutil, sys

import jaxanon

for name in ("kernels", "federated", "datasets", "models", "methods", "attacks",
             "metrics", "core", "training", "evaluation", "sweeps", "energy"):
    room = importlib.import_module("jaxanon." + name)
    for info in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        importlib.import_module(info.name)

files = collections.defaultdict(set)
for name, module in list(sys.modules.items()):
    if getattr(module, "__file__", None) and name.split(".")[0] in (
            "jaxanon", "kernels", "federated", "datasets"):
        files[module.__file__].add(name)
twice = {file: names for file, names in files.items() if len(names) > 1}
assert len(files) > 20, files
assert not twice, twice

for stranger in ("kernels", "federated", "datasets", "bench", "tests"):
    spec = importlib.util.find_spec(stranger)
    assert spec is None or spec.origin not in files, spec
"""


def test_no_module_is_imported_twice(tmp_path):
    # From another folder, where the checkout is not importable by accident.
    done = subprocess.run(
        [sys.executable, "-P", "-c", TWICE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_checkout_s_folder_in_the_package_s_place_says_what_to_do(tmp_path):
    (tmp_path / "jaxanon").mkdir()
    shutil.copy(jaxanon.__file__, tmp_path / "jaxanon")
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import jaxanon; jaxanon.load"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "jaxanon.datasets is not in" in done.stderr
    assert "Run Python from another folder or with -P" in done.stderr
