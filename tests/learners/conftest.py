"""The made-up dataset of the methods' tests, and learners that are quickly trained."""

import pytest
import toy

from jaxanon import learners
from jaxanon.training import trainer

SMALL = {"model": "mlp", "hidden_sizes": (6,), "local_steps": 2, "batch_size": 4}
SHARED, NOISY = {"shared_layers": 1}, {"max_examples": 64, "max_rounds": 3}
BUDGET = {"max_rounds": 3}
OWN = {
    **{"fedper": SHARED, "fedrep": SHARED, "atlas": NOISY, "fedsgd_ldp": NOISY},
    **{"dp_fedavg": BUDGET, "ldp_fl": BUDGET},
    "clusterfl": {"clusters": 2, "probe": 8},
    "centralized_clustering": {"clusters": 2, "alone": 1},
}


@pytest.fixture(scope="session")
def data():
    """Five subjects' windows of three activities and two genders."""
    return toy.data()


@pytest.fixture(scope="session")
def small(data):
    """``(name, **settings) -> Method``, of a network of a few numbers."""
    return lambda name, **settings: learners.build(
        name, data.spec, **SMALL | OWN.get(name, {}) | settings
    )


@pytest.fixture(scope="session")
def trained(data, small):
    """``(name, epochs=2, out=None, **settings) -> Run``."""

    def trained(name, epochs=2, out=None, resume=False, **settings):
        learner = small(name, **settings)
        return trainer.train(
            learner, data, epochs=epochs, output_dir=out, resume=resume, progress=False
        )

    return trained
