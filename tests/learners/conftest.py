"""The made-up dataset of the methods' tests, and learners that are quickly trained."""

import importlib.util
import pathlib

import pytest

from jaxanon import learners, training

_PATH = pathlib.Path(__file__).parents[1] / "methods" / "toy.py"
_SPEC = importlib.util.spec_from_file_location("toy", _PATH)
_TOY = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_TOY)
SMALL = {"model": "mlp", "hidden": (6,), "local_steps": 2, "batch": 4}
SHARED, NOISY = {"shared_layers": 1}, {"records": 64, "rounds": 3}
BUDGET = {"rounds": 3}
OWN = {
    **{"fedper": SHARED, "fedrep": SHARED, "atlas": NOISY, "fedsgd_ldp": NOISY},
    **{"dpfedavg": BUDGET, "ldpfl": BUDGET},
    "clusterfl": {"clusters": 2, "probe": 8},
    "centralized_clustering": {"clusters": 2, "alone": 1},
}


@pytest.fixture(scope="session")
def data():
    """Five subjects' windows of three activities and two genders."""
    return _TOY.data()


@pytest.fixture(scope="session")
def small(data):
    """``(name, **settings) -> Learner``, of a network of a few numbers."""
    return lambda name, **settings: learners.build(
        name, data.spec, **SMALL | OWN.get(name, {}) | settings
    )


@pytest.fixture(scope="session")
def trained(data, small):
    """``(name, epochs=2, out=None, **settings) -> Run``."""

    def trained(name, epochs=2, out=None, resume=False, **settings):
        learner = small(name, **settings)
        return training.train(
            learner, data, epochs=epochs, out=out, resume=resume, progress=False
        )

    return trained
