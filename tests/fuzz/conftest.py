"""Scripts of this folder as modules."""

import importlib
import pathlib
import sys

import pytest

_HERE = str(pathlib.Path(__file__).parent)


@pytest.fixture(scope="session")
def script():
    """Returns ``script("fuzz_files")``, the module of that name in this folder."""

    def load(name):
        if _HERE not in sys.path:
            sys.path.append(_HERE)
        return importlib.import_module(name)

    return load
