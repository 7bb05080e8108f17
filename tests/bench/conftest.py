"""The benchmark's modules, by name, for all of its tests."""

import importlib
import pathlib
import sys

import pytest

BENCH = pathlib.Path(__file__).parents[2] / "bench"


@pytest.fixture(scope="module")
def bench():
    """Imports a module of the benchmark's folder by name."""
    sys.path.insert(0, str(BENCH))
    yield importlib.import_module
    sys.path.remove(str(BENCH))
