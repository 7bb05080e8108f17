"""Models made by hand, for every test of the runtime."""

import importlib.util
import pathlib

import pytest

_PATH = pathlib.Path(__file__).with_name("handmade.py")
_SPEC = importlib.util.spec_from_file_location("handmade", _PATH)
_MODELS = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_MODELS)


@pytest.fixture(scope="session")
def models():
    """The module ``handmade``: functions that write model files, and their like."""
    return _MODELS
