"""The made-up dataset of the methods' tests, and runs that nobody trained."""

import jax
import pytest
import toy

from jaxanon import methods
from jaxanon.run import Run


@pytest.fixture(scope="session")
def data():
    """Five subjects' windows of three activities and two genders."""
    return toy.data()


@pytest.fixture(scope="session")
def untrained(data):
    """``(name, **settings) -> Run`` with weights as they were drawn."""

    def untrained(name, **settings):
        method = methods.build(name, data.spec, **settings)
        state = jax.jit(method.init)(jax.random.key(3))
        return Run(method, state, data.spec, None, [], {})

    return untrained
