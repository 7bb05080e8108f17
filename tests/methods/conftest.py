"""The made-up dataset, for every method's tests."""

import importlib.util
import pathlib

import pytest

_PATH = pathlib.Path(__file__).with_name("toy.py")
_SPEC = importlib.util.spec_from_file_location("toy", _PATH)
_TOY = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_TOY)


@pytest.fixture(scope="session")
def data():
    """Five subjects' windows of three activities and two genders."""
    return _TOY.data()
