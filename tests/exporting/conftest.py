"""The made-up dataset of the methods' tests, and runs that nobody trained."""

import importlib.util
import pathlib

import jax
import pytest

from jaxanon import methods
from jaxanon.run import Run

_PATH = pathlib.Path(__file__).parent.parent / "methods" / "toy.py"
_SPEC = importlib.util.spec_from_file_location("toy", _PATH)
_TOY = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_TOY)


@pytest.fixture(scope="session")
def data():
    """Five subjects' windows of three activities and two genders."""
    return _TOY.data()


@pytest.fixture(scope="session")
def untrained(data):
    """``(name, **settings) -> Run`` with weights as they were drawn."""

    def untrained(name, **settings):
        method = methods.build(name, data.spec, **settings)
        state = jax.jit(method.init)(jax.random.key(3))
        return Run(method, state, data.spec, None, [], {})

    return untrained
